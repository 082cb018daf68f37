package certificate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"
)

func secretWith(certificate, key []byte) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}}
}

func TestAReplicaIsReadyOnlyWithACertificateThatHolds(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(noon)
	source := &secretSource{}
	check := Check(source, clock)
	if err := check(nil); err == nil {
		t.Error("ready without a certificate")
	}
	m := made(t, noon)
	if err := source.load(secretWith(m.certificate, m.key)); err != nil {
		t.Fatal(err)
	}
	if err := check(nil); err != nil {
		t.Error(err)
	}
	clock.SetTime(noon.Add(servingLifetime + time.Minute))
	if err := check(nil); err == nil || !strings.Contains(err.Error(), "ended at 2027-02-28") {
		t.Errorf("after its end: %v", err)
	}
}

func TestAReplicaServesOnWithWhatItHasWhereTheSecretIsSpoilt(t *testing.T) {
	m, other := made(t, noon), made(t, noon)
	source := &secretSource{}
	if err := source.load(secretWith(m.certificate, m.key)); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]*corev1.Secret{
		"empty": {}, "another's key": secretWith(other.certificate, m.key), "garbage": secretWith([]byte("x"), []byte("y")),
	} {
		if err := source.load(secret); err == nil {
			t.Errorf("%s was loaded", name)
		}
		if _, held := NotAfter(source); !held {
			t.Errorf("after %s nothing is served", name)
		}
	}
}
