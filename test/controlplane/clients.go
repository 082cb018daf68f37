package controlplane

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// AdminConfig signs in as a member of system:masters. Each call returns a copy.
func (c *ControlPlane) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// UserConfig signs in with a client certificate as this user, with these groups and system:authenticated.
func (c *ControlPlane) UserConfig(user string, groups ...string) (*rest.Config, error) {
	certificate, err := c.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	config := c.anonymous(c.admin.Host)
	config.CertData, config.KeyData = certificate.certificate, certificate.key
	return config, nil
}

// ServiceAccountConfig signs in as an existing ServiceAccount, with a token that is valid for a day and goes with the account. It
// may do what RBAC gives that account.
func (c *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 60 * 60)}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := c.anonymous(c.admin.Host)
	config.BearerToken = token.Status.Token
	return config, nil
}

// anonymous is a client that knows the server and does not say who it is.
func (c *ControlPlane) anonymous(host string) *rest.Config {
	return &rest.Config{
		Host:            host,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA()},
		// client-go would hold a test back to 5 requests a second.
		QPS: -1,
	}
}

// WriteKubeconfig writes a configuration as a kubeconfig file, for a child process.
func (c *ControlPlane) WriteKubeconfig(path string, cfg *rest.Config) error {
	const name = "vmwarden-test"
	kubeconfig := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	if err := clientcmd.WriteToFile(kubeconfig, path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
