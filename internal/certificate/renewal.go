package certificate

import "time"

// settling is how long the API server is to have trusted a new authority before anything that it signed is served. Each
// kube-apiserver learns of a changed configuration by its own watch; that takes milliseconds, and this is ample.
const settling = 30 * time.Second

// renewAuthority gives the material a new authority where the present one cannot sign for much longer. The old ones stay trusted
// until they end, and the serving certificate stays as it is.
func renewAuthority(m material, by issuer, now time.Time) (material, bool, error) {
	if by.canSign(m.signer(), m.authorityKey, now.Add(renewBefore)) {
		return m, false, nil
	}
	authority, key, err := by.newAuthority(now)
	if err != nil {
		return m, false, err
	}
	m.bundle, m.authorityKey = addOnce([][]byte{authority}, m.bundle...), key
	return m, true, nil
}

// wantedTrust is what a configuration ought to trust: all of ours, and whatever else it trusts already and that has not ended.
// Somebody may be serving with it: a replica that holds a certificate from before the Secret was lost, or from before the
// certificates were ours to keep.
func wantedTrust(m material, present [][]byte) [][]byte {
	return addOnce(addOnce(nil, m.bundle...), present...)
}

// renewServing gives the material a new serving certificate where the present one is not the signing authority's, is under other
// names, or ends soon. Where something that is still good may be served, the new one waits until the signing authority has been
// trusted for the time of settling; wait says for how long.
func renewServing(m material, by issuer, now time.Time, trust trust) (next material, renewed bool, wait time.Duration, err error) {
	if by.serves(m.signer(), m.certificate, m.key, now.Add(renewBefore)) {
		return m, false, 0, nil
	}
	if m.isServable(by, now) || trust.others {
		if remaining := settling - now.Sub(trust.since); remaining > 0 {
			return m, false, remaining, nil
		}
	}
	m.certificate, m.key, err = by.sign(m.signer(), m.authorityKey, now)
	return m, err == nil, 0, err
}

// trust is what is known of the API server's trust in the signing authority.
type trust struct {
	// since is when every configuration was first seen to trust it.
	since time.Time
	// others tells that some configuration trusts an authority that is none of the Secret's.
	others bool
}
