package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// authority signs certificates. Its keys, like those of the certificates, are on an elliptic curve: RSA takes a second to find one.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certificate is a certificate with its private key, both as PEM.
type certificate struct{ certificate, key []byte }

func newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	signed, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate authority %s: %w", name, err)
	}
	return &authority{certificate: signed, key: key}, nil
}

// client issues the certificate with which a user signs in: Kubernetes takes the user from the common name and the groups from the
// organizations.
func (a *authority) client(user string, groups ...string) (*certificate, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server issues the certificate of a server that is reached by these names and addresses.
func (a *authority) server(hosts ...string) (*certificate, error) {
	return a.serverUntil(time.Time{}, hosts...)
}

// serverUntil issues one that ends at a given time; the zero time is the usual one.
func (a *authority) serverUntil(end time.Time, hosts ...string) (*certificate, error) {
	template := &x509.Certificate{
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotAfter:    end,
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	if len(hosts) > 0 {
		template.Subject.CommonName = hosts[0]
	}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (*certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	signed, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %q: %w", template.Subject.CommonName, err)
	}
	encodedKey, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &certificate{certificate: encodeCertificate(signed), key: encodedKey}, nil
}

func sign(template, parent *x509.Certificate, subject, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// A clock that is set back while the tests run must not make a certificate one of the future.
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().AddDate(1, 0, 0)
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, parent, &subject.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(signed)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a private key: %w", err)
	}
	return key, nil
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}
