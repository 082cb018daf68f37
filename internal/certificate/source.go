package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// Source is where a replica's serving certificate comes from.
type Source interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

var errNoCertificate = errors.New("there is no serving certificate yet")

// NotAfter is when the certificate that is served now ends; false where none is.
func NotAfter(source Source) (time.Time, bool) {
	served, err := source.GetCertificate(nil)
	if err != nil || served == nil || served.Leaf == nil {
		return time.Time{}, false
	}
	return served.Leaf.NotAfter, true
}

// Check is a readiness check: it fails while there is no certificate to serve with, or only one that has ended.
func Check(source Source, now clock.PassiveClock) func(*http.Request) error {
	return func(*http.Request) error {
		end, ok := NotAfter(source)
		if !ok {
			return errNoCertificate
		}
		if now.Now().After(end) {
			return fmt.Errorf("the serving certificate ended at %s", end.UTC().Format(time.RFC3339))
		}
		return nil
	}
}

// secretSource serves with what the Secret held last. It is in memory: a mounted Secret reaches a Pod up to two minutes late.
type secretSource struct {
	current atomic.Pointer[tls.Certificate]
}

// GetCertificate is a tls.Config's.
func (s *secretSource) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if served := s.current.Load(); served != nil {
		return served, nil
	}
	return nil, errNoCertificate
}

// load takes the Secret's pair. One that is not whole leaves what is served as it is: better an old certificate than none.
func (s *secretSource) load(secret *corev1.Secret) error {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("the Secret holds no usable certificate: %w", err)
	}
	s.current.Store(&pair)
	return nil
}
