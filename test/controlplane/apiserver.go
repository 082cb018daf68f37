package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ttlab/vmwarden/test/process"
)

const (
	frontProxyName = "front-proxy-client"
	// portTries is how often another port is tried when somebody took the one that had been free.
	portTries = 5
)

func (c *ControlPlane) startAPIServer(ctx context.Context, path string, options Options) error {
	policy, err := auditPolicyFor(options.AuditedUsers)
	if err != nil {
		return err
	}
	if err := writeFile(c.path("audit-policy.yaml"), policy); err != nil {
		return err
	}
	for try := 1; ; try++ {
		port, err := process.FreePort()
		if err != nil {
			return err
		}
		if c.admin, err = c.newAdmin(port); err != nil {
			return err
		}
		c.apiServer = &component{
			spec: process.Spec{
				Name:             "kube-apiserver",
				Path:             path,
				Args:             c.apiServerArguments(port, options),
				WorkingDirectory: c.Dir(),
			},
			ready: c.apiServerReady,
		}
		err = c.apiServer.run(ctx, c.group)
		if err == nil || try == portTries || c.apiServer.process == nil || !c.apiServer.process.PortTaken() {
			return err
		}
	}
}

func (c *ControlPlane) apiServerArguments(port int, options Options) []string {
	return slices.Concat([]string{
		"--etcd-servers=" + etcdAddress,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.path("apiserver.crt"),
		"--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		// For the logs of Pods. Nodes' names are in no DNS.
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + c.path("kubelet-client.crt"),
		"--kubelet-client-key=" + c.path("kubelet-client.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		// No endpoints of the kubernetes Service: they may not be loopback addresses.
		"--endpoint-reconciler-type=none",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("service-account.key"),
		"--service-account-signing-key-file=" + c.path("service-account.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=" + strings.Join(append([]string{"NodeRestriction", "ResourceQuota"}, options.AdmissionPlugins...), ","),
		"--allow-privileged=true",
		// An aggregated API server, such as virt-api, reads from the cluster whose proxy it may believe, and dies without.
		"--requestheader-client-ca-file=" + c.path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.path("front-proxy.crt"),
		"--proxy-client-key-file=" + c.path("front-proxy.key"),
		// Without nodes only a Service's name leads to an aggregated API server, not its endpoints.
		"--enable-aggregator-routing=false",
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.AuditLog(),
		// A test reads the log right after the answer.
		"--audit-log-mode=blocking",
	}, options.APIServerFlags)
}

// newAdmin is made anew for every port that is tried.
func (c *ControlPlane) newAdmin(port int) (*rest.Config, error) {
	certificate, err := c.authority.client("vmwarden-test-admin", "system:masters")
	if err != nil {
		return nil, err
	}
	admin := c.anonymous(fmt.Sprintf("https://127.0.0.1:%d", port))
	admin.CertData, admin.KeyData = certificate.certificate, certificate.key
	return admin, nil
}

func (c *ControlPlane) apiServerReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}
