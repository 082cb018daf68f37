package kubevirt

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/ttlab/vmwarden/test/controlplane"
)

// ImporterDefinitions are the definitions of CDI's resources, for the control plane's Options: virt-controller looks at its start
// whether they are there.
//
//go:embed cdi.yaml
var ImporterDefinitions []byte

// DataVolumes are CDI's resource.
var DataVolumes = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}

// VolumeControllers bind volumes, and keep those that are used: names for the control plane's Options.
var VolumeControllers = []string{"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller"}

// Importer plays CDI and the storage behind it: each DataVolume gets a PersistentVolumeClaim that it owns, and is said to have
// succeeded; each claim gets a volume. Nothing is copied.
type Importer struct{ stop context.CancelFunc }

// PlayImporter plays CDI until the Importer is closed.
func PlayImporter(ctx context.Context, plane *controlplane.ControlPlane) (*Importer, error) {
	clients, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	playing, stop := context.WithCancel(context.WithoutCancel(ctx))
	factory := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	onEach(playing, factory.ForResource(DataVolumes).Informer(), func(ctx context.Context, volume *unstructured.Unstructured) error {
		return fillDataVolume(ctx, clients, objects, volume)
	})
	claims := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	onEach(playing, factory.ForResource(claims).Informer(), func(ctx context.Context, claim *unstructured.Unstructured) error {
		return provision(ctx, clients, claim)
	})
	factory.Start(playing.Done())
	return &Importer{stop: stop}, nil
}

// Close ends the play.
func (i *Importer) Close() { i.stop() }

func fillDataVolume(ctx context.Context, clients kubernetes.Interface, objects dynamic.Interface, volume *unstructured.Unstructured) error {
	if phase, _, _ := unstructured.NestedString(volume.Object, "status", "phase"); phase == "Succeeded" || volume.GetDeletionTimestamp() != nil {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: volume.GetName(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: volume.GetAPIVersion(), Kind: volume.GetKind(), Name: volume.GetName(), UID: volume.GetUID(),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}},
		},
	}
	_, err := clients.CoreV1().PersistentVolumeClaims(volume.GetNamespace()).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the claim of %s: %w", volume.GetName(), err)
	}
	status := []byte(`{"status":{"phase":"Succeeded","progress":"100.0%","claimName":"` + volume.GetName() + `"}}`)
	_, err = objects.Resource(DataVolumes).Namespace(volume.GetNamespace()).Patch(ctx, volume.GetName(), mergePatch, status, metav1.PatchOptions{})
	return ignoreGone(err)
}

// provision makes the volume that a claim waits for. The controller that binds the two is the real one.
func provision(ctx context.Context, clients kubernetes.Interface, claim *unstructured.Unstructured) error {
	if phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase"); phase == "Bound" || claim.GetDeletionTimestamp() != nil {
		return nil
	}
	modes, _, _ := unstructured.NestedStringSlice(claim.Object, "spec", "accessModes")
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(claim.GetUID())},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.GetNamespace(), Name: claim.GetName(), UID: claim.GetUID()},
			VolumeMode:                    ptr.To(corev1.PersistentVolumeFilesystem),
		},
	}
	for _, mode := range modes {
		volume.Spec.AccessModes = append(volume.Spec.AccessModes, corev1.PersistentVolumeAccessMode(mode))
	}
	_, err := clients.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
