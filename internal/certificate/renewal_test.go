package certificate

import (
	"bytes"
	"testing"
	"time"
)

var (
	noon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	names = []string{"vmwarden-webhook.vmwarden.svc"}
)

// made is a material with an authority and a serving certificate of that time.
func made(t *testing.T, at time.Time) material {
	t.Helper()
	m, renewed, err := renewAuthority(material{}, newIssuer(names), at)
	if err != nil || !renewed {
		t.Fatalf("renewed = %t, %v", renewed, err)
	}
	m, renewed, _, err = renewServing(m, newIssuer(names), at, trust{since: at})
	if err != nil || !renewed {
		t.Fatalf("renewed = %t, %v", renewed, err)
	}
	return m
}

func TestAFreshCertificateIsLeftAlone(t *testing.T) {
	m := made(t, noon)
	if _, renewed, err := renewAuthority(m, newIssuer(names), noon); renewed || err != nil {
		t.Errorf("the authority was renewed (%v)", err)
	}
	if _, renewed, wait, err := renewServing(m, newIssuer(names), noon, trust{since: noon}); renewed || wait != 0 || err != nil {
		t.Errorf("the serving certificate was renewed, or is waited for: %s, %v", wait, err)
	}
}

func TestTheFirstCertificateIsNotWaitedFor(t *testing.T) {
	if m := made(t, noon); !newIssuer(names).serves(m.signer(), m.certificate, m.key, noon) {
		t.Error("what was made does not serve")
	}
}

func TestANewAuthorityIsTrustedBesideTheOldOneAndSignsNothingBeforeItHasSettled(t *testing.T) {
	by := newIssuer(names)
	old := made(t, noon)
	// The authority is near its end, the serving certificate was signed by it lately.
	late := noon.Add(authorityLifetime - renewBefore + time.Hour)
	old.certificate, old.key, _ = by.sign(old.signer(), old.authorityKey, late)
	m, renewed, err := renewAuthority(old, by, late)
	if err != nil || !renewed {
		t.Fatalf("renewed = %t, %v", renewed, err)
	}
	if len(m.bundle) != 2 || !bytes.Equal(m.bundle[1], old.signer()) {
		t.Fatalf("the bundle has %d authorities, want the new one and the old one", len(m.bundle))
	}
	if !bytes.Equal(m.certificate, old.certificate) {
		t.Error("the serving certificate was replaced together with the authority")
	}
	waiting, renewed, wait, err := renewServing(m, by, late, trust{since: late})
	if renewed || wait != settling || err != nil {
		t.Errorf("at once: renewed %t, wait %s, %v; want to wait for %s", renewed, wait, err, settling)
	}
	settled, renewed, _, err := renewServing(waiting, by, late.Add(settling), trust{since: late})
	if !renewed || err != nil || !by.serves(m.signer(), settled.certificate, settled.key, late) {
		t.Errorf("after settling: renewed %t, %v; want a certificate of the new authority", renewed, err)
	}
}

func TestASecretThatWasLostIsMadeAnewOnlyAfterSettlingSinceReplicasServeOnWithWhatTheyHold(t *testing.T) {
	by := newIssuer(names)
	m, _, err := renewAuthority(material{}, by, noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, renewed, wait, err := renewServing(m, by, noon, trust{since: noon, others: true}); renewed || wait != settling || err != nil {
		t.Errorf("renewed %t, wait %s, %v; want to wait for %s", renewed, wait, err, settling)
	}
}

func TestAnExpiredCertificateIsReplacedAtOnce(t *testing.T) {
	by := newIssuer(names)
	old := made(t, noon)
	late := noon.Add(servingLifetime + time.Hour)
	m, renewed, wait, err := renewServing(old, by, late, trust{since: late})
	if !renewed || wait != 0 || err != nil || !by.serves(m.signer(), m.certificate, m.key, late) {
		t.Errorf("renewed %t, wait %s, %v", renewed, wait, err)
	}
}

func TestAnotherNameMakesAnotherCertificate(t *testing.T) {
	m := made(t, noon)
	more := newIssuer(append([]string{"localhost"}, names...))
	next, renewed, _, err := renewServing(m, more, noon.Add(settling), trust{since: noon})
	if !renewed || err != nil || !more.serves(m.signer(), next.certificate, next.key, noon) {
		t.Errorf("renewed %t, %v", renewed, err)
	}
}

func TestAServingCertificateEndsNoLaterThanItsAuthority(t *testing.T) {
	by := newIssuer(names)
	old := made(t, noon)
	late := noon.Add(authorityLifetime - 24*time.Hour)
	certificate, key, err := by.sign(old.signer(), old.authorityKey, late)
	if err != nil {
		t.Fatal(err)
	}
	if by.serves(old.signer(), certificate, key, noon.Add(authorityLifetime+time.Minute)) {
		t.Error("it serves after its authority's end")
	}
	if pair := (&secretSource{}); pair.load(secretWith(certificate, key)) != nil {
		t.Error("it cannot be loaded")
	} else if end, _ := NotAfter(pair); !end.Equal(noon.Add(authorityLifetime)) {
		t.Errorf("it ends at %s, want the authority's end %s", end, noon.Add(authorityLifetime))
	}
}

func TestWhatIsTrustedAlreadyStaysTrustedUntilItEnds(t *testing.T) {
	ours, foreign := made(t, noon), made(t, noon)
	wanted := wantedTrust(ours, parseBundle(foreign.signer(), noon))
	if len(wanted) != 2 || !bytes.Equal(wanted[0], ours.signer()) || !bytes.Equal(wanted[1], foreign.signer()) {
		t.Errorf("%d authorities are trusted, want ours and then the foreign one", len(wanted))
	}
	if again := wantedTrust(ours, parseBundle(bytes.Join(wanted, nil), noon)); len(again) != 2 {
		t.Errorf("a second look trusts %d authorities", len(again))
	}
	if ended := parseBundle(foreign.signer(), noon.Add(authorityLifetime+time.Hour)); len(ended) != 0 {
		t.Error("an authority that has ended stays trusted")
	}
	if garbage := parseBundle([]byte("blanked"), noon); len(garbage) != 0 {
		t.Error("garbage is trusted")
	}
}
