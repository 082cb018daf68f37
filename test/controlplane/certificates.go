package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// serviceAddress is the first of the Services' range: the API server's own, inside a cluster.
const serviceAddress = "10.96.0.1"

// writeCertificates makes what kube-apiserver reads from files at its start.
func (c *ControlPlane) writeCertificates() error {
	var err error
	if c.authority, err = newAuthority("vmwarden-test"); err != nil {
		return err
	}
	if err := writeFile(c.path("ca.crt"), c.CA()); err != nil {
		return err
	}
	serving, err := c.authority.server("127.0.0.1", serviceAddress, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	if err := serving.write(c.Dir(), "apiserver"); err != nil {
		return err
	}
	kubelets, err := c.authority.client("vmwarden-test-apiserver", "system:masters")
	if err != nil {
		return err
	}
	if err := kubelets.write(c.Dir(), "kubelet-client"); err != nil {
		return err
	}
	// An authority of its own: who could get a certificate of the clients' authority under the front proxy's name could speak as
	// any user.
	frontProxy, err := newAuthority("vmwarden-test-front-proxy")
	if err != nil {
		return err
	}
	if err := writeFile(c.path("front-proxy-ca.crt"), encodeCertificate(frontProxy.certificate)); err != nil {
		return err
	}
	proxy, err := frontProxy.client(frontProxyName)
	if err != nil {
		return err
	}
	if err := proxy.write(c.Dir(), "front-proxy"); err != nil {
		return err
	}
	tokens, err := newKey()
	if err != nil {
		return err
	}
	encoded, err := encodeKey(tokens)
	if err != nil {
		return err
	}
	return writeFile(c.path("service-account.key"), encoded)
}

// CA is the certificate, as PEM, of the authority that signs the API server's certificate, those of UserConfig and of
// ServingCertificate: the caBundle of a webhook served with the latter.
func (c *ControlPlane) CA() []byte { return encodeCertificate(c.authority.certificate) }

// ServingCertificate writes tls.crt and tls.key, for a server reached by these host names and IP addresses, into the directory.
func (c *ControlPlane) ServingCertificate(dir string, hosts ...string) error {
	serving, err := c.authority.server(hosts...)
	if err != nil {
		return err
	}
	return serving.write(dir, "tls")
}

// ExpiredServingCertificate does what ServingCertificate does with a certificate that has just ended.
func (c *ControlPlane) ExpiredServingCertificate(dir string, hosts ...string) error {
	serving, err := c.authority.serverUntil(time.Now().Add(-time.Second), hosts...)
	if err != nil {
		return err
	}
	return serving.write(dir, "tls")
}

// write makes <name>.crt and <name>.key.
func (c *certificate) write(directory, name string) error {
	if err := writeFile(filepath.Join(directory, name+".crt"), c.certificate); err != nil {
		return err
	}
	return writeFile(filepath.Join(directory, name+".key"), c.key)
}

func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing a file of the control plane: %w", err)
	}
	return nil
}
