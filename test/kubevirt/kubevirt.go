// Package kubevirt adds KubeVirt's own virt-api and virt-controller to a test's control plane, as virt-operator would install them
// and under their own accounts. What needs a hypervisor is played: a Hand does for virtual machine instances what virt-handler
// reports, a Stage plays nodes for those that need no kubelet, and an Importer plays CDI. See each for what it does not do.
package kubevirt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/binaries"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/process"
)

const (
	// Namespace is KubeVirt's own.
	Namespace = "kubevirt"
	// LauncherImage is what virt-controller runs launchers from.
	LauncherImage = "registry.lab.internal/kubevirt/virt-launcher:1"

	// startTimeout is long: on a machine that compiles at the same time a server takes many times its usual seconds.
	startTimeout = 2 * time.Minute
)

// Options change what Start starts.
type Options struct {
	// Progress is told what is being built; nil: nothing is said.
	Progress io.Writer
	// FeatureGates are KubeVirt's, besides those that are always on.
	FeatureGates []string
}

// KubeVirt is a running virt-api and virt-controller.
type KubeVirt struct {
	plane    *controlplane.ControlPlane
	group    *process.Group
	programs *binaries.KubeVirt
	clients  *kubernetes.Clientset
	objects  dynamic.Interface
	probes   *http.Client

	api, controller         *process.Process
	apiPort, controllerPort int
}

// Start installs KubeVirt, and returns when virt-api serves its subresources and webhooks and virt-controller leads. The control
// plane needs its scheduler. The context bounds the start alone. Stop it before the control plane.
func Start(ctx context.Context, plane *controlplane.ControlPlane, options Options) (*KubeVirt, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	programs, err := binaries.LocateKubeVirt(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	group, err := process.NewGroup("", "vmwarden-kubevirt")
	if err != nil {
		return nil, err
	}
	k := &KubeVirt{plane: plane, group: group, programs: programs}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s passed", startTimeout))
	defer cancel()
	if err := k.start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting KubeVirt: %w", err), k.Stop())
	}
	return k, nil
}

func (k *KubeVirt) start(ctx context.Context, options Options) error {
	var err error
	if k.clients, err = kubernetes.NewForConfig(k.plane.AdminConfig()); err != nil {
		return err
	}
	if k.objects, err = dynamic.NewForConfig(k.plane.AdminConfig()); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(k.plane.CA())
	k.probes = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: apiHost},
		// A server that is started again has forgotten the connection.
		DisableKeepAlives: true,
	}}
	// In a directory of their own: both servers read their certificates again whenever anything changes beside them.
	if err := os.Mkdir(k.path("tls"), 0o700); err != nil {
		return err
	}
	if err := k.plane.ServingCertificate(k.path("tls"), apiHost, "localhost", "127.0.0.1"); err != nil {
		return err
	}
	for _, port := range []*int{&k.apiPort, &k.controllerPort} {
		if *port, err = process.FreePort(); err != nil {
			return err
		}
	}
	installation, err := readInstallation(k.programs.Install)
	if err != nil {
		return err
	}
	if err := k.prepare(ctx, installation, options); err != nil {
		return err
	}
	if err := k.StartAPI(ctx); err != nil {
		return err
	}
	if err := k.StartController(ctx); err != nil {
		return err
	}
	return k.publish(ctx, installation)
}

// Dir is the directory that holds everything the two write, logs included. It goes with Stop.
func (k *KubeVirt) Dir() string { return k.group.Directory() }

func (k *KubeVirt) path(name string) string { return filepath.Join(k.Dir(), name) }

// StartAPI starts virt-api, also again after StopAPI, and waits until it serves.
func (k *KubeVirt) StartAPI(ctx context.Context) error {
	kubeconfig, err := k.kubeconfig(ctx, "kubevirt-apiserver")
	if err != nil {
		return err
	}
	k.api, err = k.group.Start(ctx, process.Spec{
		Name: "virt-api",
		Path: k.programs.API,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--listen=127.0.0.1", "--port=" + strconv.Itoa(k.apiPort), "--subresources-only",
			"--tls-cert-file=" + k.path("tls/tls.crt"), "--tls-key-file=" + k.path("tls/tls.key"),
			"--handler-cert-file=" + k.path("tls/tls.crt"), "--handler-key-file=" + k.path("tls/tls.key"),
		},
	})
	if err != nil {
		return err
	}
	return k.api.AwaitReady(ctx, func(ctx context.Context) error {
		_, err := k.get(ctx, k.apiPort, "/apis/subresources.kubevirt.io/v1/healthz")
		return err
	})
}

// StopAPI ends virt-api as a crash would.
func (k *KubeVirt) StopAPI() error { return k.api.Stop(0) }

// StartController starts virt-controller, also again after StopController, and waits until it leads.
func (k *KubeVirt) StartController(ctx context.Context) error {
	kubeconfig, err := k.kubeconfig(ctx, "kubevirt-controller")
	if err != nil {
		return err
	}
	k.controller, err = k.group.Start(ctx, process.Spec{
		Name: "virt-controller",
		Path: k.programs.Controller,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--listen=127.0.0.1", "--port=" + strconv.Itoa(k.controllerPort),
			"--launcher-image=" + LauncherImage, "--exporter-image=" + LauncherImage,
			"--prom-cert-file=" + k.path("tls/tls.crt"), "--prom-key-file=" + k.path("tls/tls.key"),
		},
		Env: append(os.Environ(), "SIDECAR_SHIM_IMAGE="+LauncherImage),
	})
	if err != nil {
		return err
	}
	return k.controller.AwaitReady(ctx, func(ctx context.Context) error {
		answer, err := k.get(ctx, k.controllerPort, "/leader")
		if err == nil && !strings.Contains(answer, "true") {
			err = fmt.Errorf("it does not lead: %s", answer)
		}
		return err
	})
}

// StopController ends virt-controller as a crash would. What it was doing is done by the next one.
func (k *KubeVirt) StopController() error { return k.controller.Stop(0) }

// ControllerLog is the end of what virt-controller has logged, for a test that fails.
func (k *KubeVirt) ControllerLog(lines int) string { return k.controller.LogTail(lines) }

// Stop ends both. The objects stay in the API server.
func (k *KubeVirt) Stop() error { return k.group.Close() }

// kubeconfig signs in as one of KubeVirt's accounts, with its real token.
func (k *KubeVirt) kubeconfig(ctx context.Context, account string) (string, error) {
	config, err := k.plane.ServiceAccountConfig(ctx, Namespace, account)
	if err != nil {
		return "", err
	}
	path := k.path(account + ".kubeconfig")
	return path, k.plane.WriteKubeconfig(path, config)
}

func (k *KubeVirt) get(ctx context.Context, port int, path string) (answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := k.probes.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", path, response.Status)
	}
	return string(body), err
}
