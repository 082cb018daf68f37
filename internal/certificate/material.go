package certificate

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret. tls.crt and tls.key are those of every TLS Secret.
const (
	bundleKey       = "ca.crt"
	authorityKeyKey = "ca.key"
)

// material is the content of the Secret; all of it is PEM.
type material struct {
	// bundle are the authorities to be trusted, the signing one first. The others signed what may still be served somewhere.
	bundle [][]byte
	// authorityKey is the key of the first authority.
	authorityKey []byte
	// certificate and key are what every replica serves with.
	certificate, key []byte
}

func readMaterial(secret *corev1.Secret, now time.Time) material {
	return material{
		bundle:       parseBundle(secret.Data[bundleKey], now),
		authorityKey: secret.Data[authorityKeyKey],
		certificate:  secret.Data[corev1.TLSCertKey],
		key:          secret.Data[corev1.TLSPrivateKeyKey],
	}
}

func (m material) writeTo(secret *corev1.Secret) {
	secret.Data = map[string][]byte{
		bundleKey:               bytes.Join(m.bundle, nil),
		authorityKeyKey:         m.authorityKey,
		corev1.TLSCertKey:       m.certificate,
		corev1.TLSPrivateKeyKey: m.key,
	}
}

// signer is the signing authority; nil where there is none.
func (m material) signer() []byte {
	if len(m.bundle) == 0 {
		return nil
	}
	return m.bundle[0]
}

// isServable tells whether what the Secret holds would be accepted by whoever trusts the bundle.
func (m material) isServable(by issuer, now time.Time) bool {
	for _, authority := range m.bundle {
		if by.serves(authority, m.certificate, m.key, now) {
			return true
		}
	}
	return false
}
