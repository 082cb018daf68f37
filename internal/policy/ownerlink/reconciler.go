package ownerlink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ttlab/vmwarden/internal/lab"
)

// The kinds that belong to a session.
var (
	secretKind        = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	serviceKind       = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	networkPolicyKind = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}
)

func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{secretKind, serviceKind, networkPolicyKind}
}

// Reconciler links the belongings of one session to its virtual machines. The request's name is the session's id.
type Reconciler struct {
	// Client reads from the cache; belongings are cached by their metadata alone.
	Client client.Client
	// Live reads from the API server: a link to a machine that is gone would delete what it is put on.
	Live     client.Reader
	Contract lab.Contract
}

// Reconcile links every belonging of the session. One that cannot be linked keeps no other from it.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	session := request.Name
	machines, err := r.machines(ctx, session)
	if err != nil || len(machines) == 0 {
		return reconcile.Result{}, err
	}
	var problems []error
	for _, kind := range kinds() {
		belongings, err := r.belongings(ctx, kind, session)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for i := range belongings {
			if err := r.link(ctx, kind, &belongings[i], machines); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return reconcile.Result{}, utilerrors.NewAggregate(problems)
}

// machines are the session's virtual machines that are not being deleted, the lead first.
func (r *Reconciler) machines(ctx context.Context, session string) ([]*kubevirtv1.VirtualMachine, error) {
	var list kubevirtv1.VirtualMachineList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Contract.VMNamespace), client.MatchingLabels{r.Contract.Labels.Session: session}); err != nil {
		return nil, fmt.Errorf("listing the virtual machines of session %s: %w", session, err)
	}
	var machines []*kubevirtv1.VirtualMachine
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			machines = append(machines, &list.Items[i])
		}
	}
	// A cache lists in no order of its own.
	slices.SortFunc(machines, byAge)
	return machines, nil
}

func (r *Reconciler) belongings(ctx context.Context, kind schema.GroupVersionKind, session string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Client.List(ctx, list, client.InNamespace(r.Contract.VMNamespace), client.MatchingLabels{r.Contract.Labels.Session: session}); err != nil {
		return nil, fmt.Errorf("listing the objects of kind %s of session %s: %w", kind.Kind, session, err)
	}
	return list.Items, nil
}

// link makes the right machines owners of one belonging.
func (r *Reconciler) link(ctx context.Context, kind schema.GroupVersionKind, belonging *metav1.PartialObjectMetadata, machines []*kubevirtv1.VirtualMachine) error {
	if belonging.DeletionTimestamp != nil {
		return nil
	}
	owners, err := r.owners(kind, belonging, machines)
	if err != nil {
		return err
	}
	if _, changed := linked(belonging.OwnerReferences, owners); !changed {
		return nil
	}
	if owners, err = r.alive(ctx, owners); err != nil {
		return err
	}
	wanted, changed := linked(belonging.OwnerReferences, owners)
	if !changed {
		return nil
	}
	return r.patch(ctx, kind, belonging, wanted)
}

// owners are the machines to which the belonging is to be linked: for a Secret those that name it, for the group's Service and
// NetworkPolicy the lead. Only machines of the belonging's own environment come into question.
func (r *Reconciler) owners(kind schema.GroupVersionKind, belonging *metav1.PartialObjectMetadata, machines []*kubevirtv1.VirtualMachine) ([]*kubevirtv1.VirtualMachine, error) {
	key := r.Contract.Labels.Environment
	environment := belonging.Labels[key]
	if environment == "" {
		return nil, nil
	}
	var own []*kubevirtv1.VirtualMachine
	for _, machine := range machines {
		if machine.Labels[key] == environment {
			own = append(own, machine)
		}
	}
	if kind != secretKind {
		return own[:min(1, len(own))], nil
	}
	var users []*kubevirtv1.VirtualMachine
	for _, machine := range own {
		names, err := secretNames(machine)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, belonging.Name) {
			users = append(users, machine)
		}
	}
	return users, nil
}

// secretNames are the Secrets that a virtual machine names, by the same reading that admission goes by.
func secretNames(machine *kubevirtv1.VirtualMachine) ([]string, error) {
	encoded, err := json.Marshal(machine)
	if err != nil {
		return nil, fmt.Errorf("encoding virtual machine %s: %w", machine.Name, err)
	}
	references, err := lab.ReadReferences(encoded)
	if err != nil {
		return nil, fmt.Errorf("virtual machine %s: %w", machine.Name, err)
	}
	var names []string
	for _, secret := range references.Secrets {
		names = append(names, secret.Name)
	}
	return names, nil
}

// alive keeps those machines that the API server still has under the very UID, and that are not being deleted.
func (r *Reconciler) alive(ctx context.Context, machines []*kubevirtv1.VirtualMachine) ([]*kubevirtv1.VirtualMachine, error) {
	var alive []*kubevirtv1.VirtualMachine
	for _, machine := range machines {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(kubevirtv1.VirtualMachineGroupVersionKind)
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(machine), found)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting virtual machine %s: %w", machine.Name, err)
		}
		if found.UID == machine.UID && found.DeletionTimestamp == nil {
			alive = append(alive, machine)
		}
	}
	return alive, nil
}

// patch writes the ownerReferences of exactly the object, at exactly the version, that was judged: the list is written whole, and
// somebody else's owner must not get lost in it.
func (r *Reconciler) patch(ctx context.Context, kind schema.GroupVersionKind, belonging *metav1.PartialObjectMetadata, owners []metav1.OwnerReference) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": belonging.UID, "resourceVersion": belonging.ResourceVersion, "ownerReferences": owners,
	}})
	if err != nil {
		return fmt.Errorf("encoding the ownerReferences of %s %s: %w", kind.Kind, belonging.Name, err)
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: belonging.Namespace, Name: belonging.Name}}
	target.SetGroupVersionKind(kind)
	err = r.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, body))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("linking %s %s: %w", kind.Kind, belonging.Name, err)
	}
	log.FromContext(ctx).Info("linked to its virtual machines", "kind", kind.Kind, "object", belonging.Name, "owners", len(owners))
	return nil
}
