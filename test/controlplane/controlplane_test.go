package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

func newClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := newClient(t, shared.AdminConfig()).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func newVirtualMachine(t *testing.T, namespace string) {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	machine := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1",
		"kind":       "VirtualMachine",
		"metadata":   map[string]any{"name": "vm"},
		"spec": map[string]any{
			"runStrategy": "Always",
			"template":    map[string]any{"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}},
		},
	}}
	if _, err := client.Resource(virtualMachines).Namespace(namespace).Create(t.Context(), machine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// signedInAs is who the API server takes the user of the configuration for.
func signedInAs(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	review, err := newClient(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

// eventually waits for what controllers and other processes bring about.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = condition()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("a minute passed, and it is not so that %s: %v", what, last)
	}
}

// gone turns the answer to a GET into an error unless it is NotFound.
func gone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New("it is there")
	default:
		return err
	}
}

func TestTwoControlPlanesRunBesideEachOther(t *testing.T) {
	neighbour := livingNeighbour(t)
	if neighbour.server == shared.AdminConfig().Host {
		t.Errorf("both are at %s", neighbour.server)
	}
	// The neighbour's authority is not ours: a connection that succeeds has met the right server.
	stranger := shared.AdminConfig()
	stranger.Host = neighbour.server
	_, err := newClient(t, stranger).Discovery().ServerVersion()
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
		t.Errorf("the neighbour answers %v to our client, want that it is a stranger", err)
	}
}

func TestTheServerIsTheReleaseItIsMeantToBe(t *testing.T) {
	version, err := newClient(t, shared.AdminConfig()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, "v1.34.") || version.Major != "1" || version.Minor != "34" {
		t.Errorf("the server is %+v, want v1.34", version)
	}
}

func TestASecretWhoseOwnerNeverWasIsCollected(t *testing.T) {
	t.Parallel()
	secrets := newClient(t, shared.AdminConfig()).CoreV1().Secrets(newNamespace(t))
	// Of a custom resource, which the garbage collector knows only if its definition came first.
	owner := metav1.OwnerReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "vm", UID: uuid.NewUUID()}
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "orphan", OwnerReferences: []metav1.OwnerReference{owner}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "free"}},
	} {
		if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the orphan is collected", func() error {
		_, err := secrets.Get(t.Context(), "orphan", metav1.GetOptions{})
		return gone(err)
	})
	if _, err := secrets.Get(t.Context(), "free", metav1.GetOptions{}); err != nil {
		t.Errorf("the Secret without an owner: %v", err)
	}
}

func TestTheDeletionOfANamespaceCompletes(t *testing.T) {
	t.Parallel()
	name := newNamespace(t)
	newVirtualMachine(t, name)
	namespaces := newClient(t, shared.AdminConfig()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() error {
		_, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
		return gone(err)
	})
}

func TestAServiceAccountSignsInAsItselfWithItsOwnRights(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "backend"}}
	admin := newClient(t, shared.AdminConfig())
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := shared.ServiceAccountConfig(t.Context(), namespace, "backend")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := signedInAs(t, config).Username, "system:serviceaccount:"+namespace+":backend"; got != want {
		t.Errorf("the ServiceAccount signs in as %q, want %q", got, want)
	}
	_, err = newClient(t, config).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a ServiceAccount without rights lists Secrets: %v", err)
	}
	if _, err := shared.ServiceAccountConfig(t.Context(), namespace, "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("a ServiceAccount that does not exist: %v, want NotFound", err)
	}
}

func TestAUserSignsInWithItsGroups(t *testing.T) {
	t.Parallel()
	config, err := shared.UserConfig("alice", "teachers", "oncall")
	if err != nil {
		t.Fatal(err)
	}
	got := signedInAs(t, config)
	slices.Sort(got.Groups)
	if want := []string{"oncall", "system:authenticated", "teachers"}; got.Username != "alice" || !slices.Equal(got.Groups, want) {
		t.Errorf("signed in as %q with groups %q, want alice with %q", got.Username, got.Groups, want)
	}
}

func TestAKubeconfigSignsInLikeTheConfigurationItWasMadeFrom(t *testing.T) {
	t.Parallel()
	user, err := shared.UserConfig("alice")
	if err != nil {
		t.Fatal(err)
	}
	account, err := shared.ServiceAccountConfig(t.Context(), metav1.NamespaceDefault, "default")
	if err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string]*rest.Config{
		"vmwarden-test-admin": shared.AdminConfig(), "alice": user, "system:serviceaccount:default:default": account,
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := shared.WriteKubeconfig(path, config); err != nil {
			t.Fatal(err)
		}
		read, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		if got := signedInAs(t, read).Username; got != want {
			t.Errorf("the kubeconfig of %s signs in as %s", want, got)
		}
	}
}

func TestWritesAreInTheAuditLogWhenTheyAreAnswered(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cloud-init"}, StringData: map[string]string{"token": "never in a log"}}
	if _, err := newClient(t, shared.AdminConfig()).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	newVirtualMachine(t, namespace)
	content, err := os.ReadFile(shared.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	var machine, secretSeen bool
	for line := range strings.Lines(string(content)) {
		if !strings.Contains(line, `"namespace":"`+namespace+`"`) {
			continue
		}
		machine = machine || strings.Contains(line, `"resource":"virtualmachines"`) && strings.Contains(line, `"runStrategy":"Always"`) && strings.Contains(line, `"code":201`)
		secretSeen = secretSeen || strings.Contains(line, `"resource":"secrets"`) && strings.Contains(line, `"code":201`)
	}
	if !machine {
		t.Error("the creation of the VM is not in the log, or not in full")
	}
	if !secretSeen {
		t.Error("the creation of the Secret is not in the log")
	}
	if strings.Contains(string(content), "stringData") || strings.Contains(string(content), "never in a log") {
		t.Error("a Secret's data is in the log")
	}
}

func TestAServingCertificateIsTrustedUnderItsNamesAlone(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	if err := shared.ServingCertificate(directory, "127.0.0.1", "vmwarden.lab.svc"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shared.CA())
	for name, trusted := range map[string]bool{"127.0.0.1": true, "vmwarden.lab.svc": true, "localhost": false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		if (err == nil) != trusted {
			t.Errorf("under the name %s: %v, want it trusted: %t", name, err, trusted)
		}
	}
}

func TestAComponentThatEndsEarlyIsReportedWithItsLogAndLeavesNothing(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{APIServerFlags: []string{"--no-such-flag"}}, "unknown flag: --no-such-flag"},
		{Options{AdmissionPlugins: []string{"NoSuchPlugin"}}, `"NoSuchPlugin\" is unknown`},
	} {
		c, err := Start(t.Context(), test.options)
		if err == nil {
			t.Errorf("the control plane starts in spite of %s: %v", test.want, c.Stop())
			continue
		}
		for _, part := range []string{"kube-apiserver ended before it was ready", test.want} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
	}
	left, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s is left behind", entry.Name())
	}
}

func TestAStartThatIsCalledOffLeavesNothing(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	ctx, cancel := context.WithCancelCause(t.Context())
	calledOff := errors.New("called off")
	// The first word of progress comes in the middle of the start.
	_, err := Start(ctx, Options{Progress: writerFunc(func(text []byte) (int, error) {
		cancel(calledOff)
		return len(text), nil
	})})
	if !errors.Is(err, calledOff) {
		t.Errorf("the start ends with %v, want the reason why it was called off", err)
	}
	left, err := os.ReadDir(directory)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

func TestAPausedServerAcceptsConnectionsAndAnswersWhenResumed(t *testing.T) {
	if err := shared.Pause("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(shared.AdminConfig().Host, "https://")
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Errorf("a paused server refuses connections: %v", err)
	} else if err := connection.Close(); err != nil {
		t.Error(err)
	}
	config := shared.AdminConfig()
	config.Timeout = 100 * time.Millisecond
	_, err = newClient(t, config).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{})
	if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a paused server answers %v", err)
	}
	if err := shared.Resume("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(t, shared.AdminConfig()).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
		t.Errorf("the resumed server: %v", err)
	}
}

func TestEveryComponentRestartsInItsPlaceWithItsData(t *testing.T) {
	host := shared.AdminConfig().Host
	kept := newNamespace(t)
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := shared.Restart(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the control plane still has its data after "+name+" restarted", func() error {
			_, err := newClient(t, shared.AdminConfig()).CoreV1().Namespaces().Get(t.Context(), kept, metav1.GetOptions{})
			return err
		})
	}
	if got := shared.AdminConfig().Host; got != host {
		t.Errorf("the API server moved from %s to %s", host, got)
	}
	if err := shared.Restart(t.Context(), "kubelet"); err == nil {
		t.Error("a component that does not exist was restarted")
	}
}

func TestNothingOutlivesAKilledOwner(t *testing.T) {
	neighbour := livingNeighbour(t)
	if err := neighbour.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = neighbour.command.Wait() // It was killed.
	eventually(t, "its directory is gone", func() error {
		_, err := os.Stat(neighbour.directory)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	eventually(t, "its API server is gone", func() error {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(neighbour.server, "https://"))
		if err != nil {
			return nil
		}
		return errors.Join(errors.New("it accepts connections"), connection.Close())
	})
	// The watchdog and its rm outlive the directory by a moment.
	eventually(t, "none of its processes runs", func() error {
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		var running error
		for _, path := range commands {
			command, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(command), neighbour.directory) {
				running = errors.Join(running, errors.New(strings.ReplaceAll(string(command), "\x00", " ")))
			}
		}
		return running
	})
}
