package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

const (
	authorityName = "vmwarden-webhook-ca"
	// authorityLifetime is long: a new authority has to be made known to the API server before it may sign.
	authorityLifetime = 10 * 365 * 24 * time.Hour
	servingLifetime   = 90 * 24 * time.Hour
	// renewBefore is how long before its end each of the two is replaced. An outage of the leader of that length goes unnoticed.
	renewBefore = 30 * 24 * time.Hour
	// backdating is for an API server whose clock is behind.
	backdating = time.Hour
)

// issuer makes and checks certificates, by cert-controller's own means. The order in which that library replaces them is not
// used: it replaces authority and serving certificate in one write, and until it has told the API server, which comes after, no
// review is answered.
type issuer struct {
	rotator  *rotator.CertRotator
	dnsNames []string
}

func newIssuer(dnsNames []string) issuer {
	return issuer{dnsNames: dnsNames, rotator: &rotator.CertRotator{
		CAName: authorityName, CAOrganization: "vmwarden",
		DNSName: dnsNames[0], ExtraDNSNames: dnsNames[1:],
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}}
}

// newAuthority makes a self-signed authority; both results are PEM.
func (i issuer) newAuthority(now time.Time) (certificate, key []byte, err error) {
	authority, err := i.rotator.CreateCACert(now.Add(-backdating), now.Add(authorityLifetime))
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	return authority.CertPEM, authority.KeyPEM, nil
}

// sign makes a serving certificate; all arguments and results are PEM. It ends no later than its authority.
func (i issuer) sign(authority, authorityKey []byte, now time.Time) (certificate, key []byte, err error) {
	pair, err := tls.X509KeyPair(authority, authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	block, _ := pem.Decode(authorityKey)
	rsaKey, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate authority's key: %w", err)
	}
	end := now.Add(servingLifetime)
	if pair.Leaf.NotAfter.Before(end) {
		end = pair.Leaf.NotAfter
	}
	certificate, key, err = i.rotator.CreateCertPEM(&rotator.KeyPairArtifacts{Cert: pair.Leaf, Key: rsaKey, CertPEM: authority, KeyPEM: authorityKey},
		now.Add(-backdating), end)
	if err != nil {
		return nil, nil, fmt.Errorf("making a serving certificate: %w", err)
	}
	return certificate, key, nil
}

// canSign tells whether an authority and its key belong together and hold at that time.
func (i issuer) canSign(authority, key []byte, at time.Time) bool {
	good, err := rotator.ValidCert(authority, authority, key, authorityName, nil, at)
	return err == nil && good
}

// serves tells whether the API server, trusting that authority alone, would accept the certificate at that time under each name.
func (i issuer) serves(authority, certificate, key []byte, at time.Time) bool {
	for _, name := range i.dnsNames {
		if good, err := rotator.ValidCert(authority, certificate, key, name, i.rotator.ExtKeyUsages, at); err != nil || !good {
			return false
		}
	}
	return true
}

// parseBundle reads the certificates of a bundle that hold at that time, each once and as PEM. What is no certificate is left
// out: whoever wrote it there, it makes nobody trust anything.
func parseBundle(bundle []byte, at time.Time) [][]byte {
	var certificates [][]byte
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return certificates
		}
		if parsed, err := x509.ParseCertificate(block.Bytes); err != nil || at.After(parsed.NotAfter) {
			continue
		}
		certificates = addOnce(certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}))
	}
}

func addOnce(certificates [][]byte, added ...[]byte) [][]byte {
	for _, one := range added {
		if !contains(certificates, one) {
			certificates = append(certificates, one)
		}
	}
	return certificates
}

func contains(certificates [][]byte, wanted []byte) bool {
	for _, one := range certificates {
		if bytes.Equal(one, wanted) {
			return true
		}
	}
	return false
}
