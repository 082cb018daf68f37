package install_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// expectNewCertificate waits until the Secret holds another serving certificate.
func expectNewCertificate(t *testing.T, old []byte) {
	t.Helper()
	await(t, "there is another serving certificate", func(ctx context.Context) error {
		secret, err := clients.CoreV1().Secrets(ownNamespace).Get(ctx, "vmwarden-webhook-tls", metav1.GetOptions{})
		if err == nil && (len(secret.Data["tls.crt"]) == 0 || bytes.Equal(secret.Data["tls.crt"], old)) {
			err = errors.New("it is the old one, or none")
		}
		return err
	})
}

func dropFromSecret(t *testing.T, keys ...string) {
	t.Helper()
	secret := certificateSecret(t)
	for _, key := range keys {
		delete(secret.Data, key)
	}
	if _, err := clients.CoreV1().Secrets(ownNamespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestNoCreateIsLostWhileCertificateAndAuthorityAreRenewed(t *testing.T) {
	authorities := func() int {
		bundles, err := caBundles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(bundles["validating"], "BEGIN CERTIFICATE")
	}
	if got := authorities(); got != 1 {
		t.Fatalf("the API server trusts %d authorities, want 1", got)
	}
	for _, c := range []struct {
		what string
		keys []string
		// authorities is how many are trusted afterwards: those before stay until they end.
		authorities int
	}{
		{"the serving certificate is lost", []string{"tls.crt", "tls.key"}, 1},
		{"the authority's key is lost, and with it the authority", []string{"ca.key"}, 2},
		{"the whole Secret is emptied", []string{"ca.crt", "ca.key", "tls.crt", "tls.key"}, 3},
	} {
		old := certificateSecret(t).Data["tls.crt"]
		stop := stream(t)
		dropFromSecret(t, c.keys...)
		expectNewCertificate(t, old)
		t.Logf("%s: %d creates went through", c.what, stop())
		if got := authorities(); got != c.authorities {
			t.Errorf("%s: the API server trusts %d authorities, want %d", c.what, got, c.authorities)
		}
	}
}

func TestABlankedCABundleHeals(t *testing.T) {
	before, err := caBundles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	blank := []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
	if _, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(t.Context(), "vmwarden", types.JSONPatchType, blank, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the API server trusts again what it trusted, or less, and it suffices", func(ctx context.Context) error {
		bundles, err := caBundles(ctx)
		if err == nil && (bundles["validating"] == "" || !strings.Contains(before["validating"], bundles["validating"])) {
			err = fmt.Errorf("it trusts %q", bundles["validating"])
		}
		return err
	})
	stop := stream(t)
	await(t, "machines are created again", func(ctx context.Context) error {
		list, err := admin.Machines(vmNamespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("none is there just now")
		}
		return err
	})
	stop()
}

func TestAnExpiredCertificateAtTheStartIsReplaced(t *testing.T) {
	scale(t, 0)
	secret := certificateSecret(t)
	secret.Data["tls.crt"], secret.Data["tls.key"] = expiredPair(t)
	if _, err := clients.CoreV1().Secrets(ownNamespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	scale(t, 2)
	if bytes.Equal(certificateSecret(t).Data["tls.crt"], secret.Data["tls.crt"]) {
		t.Error("the expired certificate is still there")
	}
	create(t, "d0000000-0000-4000-8000-000000000001")
	if err := prod.Machines(vmNamespace).Delete(t.Context(), "lab-d0000000", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// expiredPair is a certificate for the right host that ended an hour ago.
func expiredPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old"}, DNSNames: []string{"vmwarden-webhook.vmwarden.svc"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// TestADrainLosesNoCreate evicts one replica after the other, as `kubectl drain` does: through the eviction API, which obeys the
// PodDisruptionBudget.
func TestADrainLosesNoCreate(t *testing.T) {
	stop := stream(t)
	pods, err := webhookPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		await(t, pod.Name+" may be evicted", func(ctx context.Context) error {
			err := clients.PolicyV1().Evictions(ownNamespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: pod.Name}})
			if err != nil && !apierrors.IsTooManyRequests(err) {
				t.Fatal(err)
			}
			return err
		})
	}
	awaitReplicas(t, 2)
	t.Logf("%d creates went through", stop())
}
