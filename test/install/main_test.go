// Package install_test installs the chart for real: by Helm, on a real control plane and a real kubelet, from the image that `make
// image` makes. The tests tell the life of one installation, in the order of this package's files: each starts from what the one
// before left.
package install_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/chart"
	"github.com/ttlab/vmwarden/test/controlplane"
	"github.com/ttlab/vmwarden/test/node"
	"github.com/ttlab/vmwarden/test/postgres"
)

const (
	ownNamespace = "vmwarden"
	vmNamespace  = "lab-vms"
	podNamespace = "lab-pods"
)

// values are a newcomer's, but for what this machine asks for: the database is on loopback, where only a Pod with the host's network
// finds it.
const values = `
environments:
  - name: prod
    backends: [{namespace: ttlab-prod, name: backend}]
  - name: dev
    backends: [{namespace: ttlab-dev, name: backend}]
    sessionsDatabase: false
config:
  podNamespaces: [lab-pods]
  caps: {cpu: 40}
reaper: {hostNetwork: true}
resourceQuota: {hard: {count/virtualmachines.kubevirt.io: "8", requests.cpu: "40", requests.memory: 48Gi, persistentvolumeclaims: "12"}}
`

var (
	plane    *controlplane.ControlPlane
	worker   *node.Node
	database *postgres.Server
	helm     *chart.Helm
	clients  *kubernetes.Clientset
	prod     *backend.Backend
	admin    *backend.Backend
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if err := node.Unavailable(); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED: nothing is shown about a real installation:", err)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	} else {
		status = m.Run()
	}
	if err := stopAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	return status
}

func stopAll() error {
	var problems []error
	if worker != nil {
		problems = append(problems, worker.Stop())
	}
	if database != nil {
		problems = append(problems, database.Stop())
	}
	if plane != nil {
		problems = append(problems, plane.Stop())
	}
	return errors.Join(problems...)
}

func start(ctx context.Context) error {
	var err error
	if helm, err = chart.NewHelm(ctx); err != nil {
		return err
	}
	if plane, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr, Scheduler: true, APIServerFlags: []string{"--enable-aggregator-routing=true"},
		Controllers: []string{"daemonset-controller", "deployment-controller", "endpoints-controller", "endpointslice-controller", "replicaset-controller"},
	}); err != nil {
		return err
	}
	if worker, err = node.Start(ctx, plane, node.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	if database, err = postgres.Start(ctx, postgres.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	helm.Kubeconfig = filepath.Join(plane.Dir(), "helm.kubeconfig")
	if err := plane.WriteKubeconfig(helm.Kubeconfig, plane.AdminConfig()); err != nil {
		return err
	}
	if clients, err = kubernetes.NewForConfig(plane.AdminConfig()); err != nil {
		return err
	}
	if err := importImage(ctx); err != nil {
		return err
	}
	return prepare(ctx)
}

// importImage makes the image as `make image` does, and gives it to the node.
func importImage(ctx context.Context) error {
	command := exec.CommandContext(ctx, "make", "--directory", helm.Root(), "image")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("making the image: %w\n%s", err, output)
	}
	return worker.ImportArchive(ctx, filepath.Join(helm.Root(), "bin", "vmwarden-image.tar"))
}

// prepare makes what an admin finds before installing: namespaces, the backends with their rights, and prod's database.
func prepare(ctx context.Context) error {
	for _, name := range []string{ownNamespace, vmNamespace, podNamespace, "ttlab-prod", "ttlab-dev"} {
		if _, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	for _, namespace := range []string{"ttlab-prod", "ttlab-dev"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "backend"}}
		if _, err := clients.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating the backend of %s: %w", namespace, err)
		}
	}
	var err error
	if admin, err = backend.New("", plane.AdminConfig()); err != nil {
		return err
	}
	if _, err := admin.Create(ctx, backend.RBAC, backend.Lesson{}); err != nil {
		return err
	}
	identity, err := plane.ServiceAccountConfig(ctx, "ttlab-prod", "backend")
	if err != nil {
		return err
	}
	if prod, err = backend.New("prod", identity); err != nil {
		return err
	}
	return prepareDatabase(ctx)
}

func prepareDatabase(ctx context.Context) error {
	if err := database.CreateDatabase(ctx, "prod"); err != nil {
		return err
	}
	connection, err := pgx.Connect(ctx, database.URL("prod"))
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	for _, statement := range []string{
		`create role reaper login password 'reaper'`, `alter database prod set vmwarden.environment = 'prod'`,
		backend.Text(backend.Sessions), `delete from sessions`, `grant select, update (status, finished_at) on sessions to reaper`,
	} {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("preparing the database: %w", err), connection.Close(ctx))
		}
	}
	if err := connection.Close(ctx); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "vmwarden-database-prod"},
		StringData: map[string]string{"DATABASE_URL": strings.TrimSpace(database.URLFor("prod", "reaper", "reaper"))},
	}
	if _, err := clients.CoreV1().Secrets(ownNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the database's Secret: %w", err)
	}
	return nil
}
