package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ttlab/vmwarden/internal/certificate"
)

// certificateOptions are the flags that say where the serving certificate comes from: files that somebody else renews, or a
// Secret that the webhook keeps itself.
type certificateOptions struct {
	dir string
	// secret is namespace/name.
	secret       string
	dnsNames     []string
	registration string
}

func (o *certificateOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "cert-dir", "", "directory with tls.crt and tls.key, which somebody else renews; this or --cert-secret is required")
	flags.StringVar(&o.secret, "cert-secret", "", "Secret, as namespace/name, in which the webhook keeps and renews its certificate itself; it has to exist, and may be empty")
	flags.StringSliceVar(&o.dnsNames, "cert-dns-name", nil, "with --cert-secret, name under which kube-apiserver reaches the webhook, such as vmwarden-webhook.vmwarden.svc; may be repeated")
	flags.StringVar(&o.registration, "webhook-configuration", "vmwarden", "with --cert-secret, name of the two webhook configurations whose caBundle is kept up to date")
}

// check gives all faults at once.
func (o *certificateOptions) check() []error {
	switch {
	case o.dir == "" && o.secret == "":
		return []error{fmt.Errorf("--cert-dir is missing: name the directory with tls.crt and tls.key, or with --cert-secret a Secret for a certificate that the webhook keeps itself")}
	case o.dir != "" && o.secret != "":
		return []error{fmt.Errorf("--cert-dir and --cert-secret: name one of them")}
	case o.dir != "":
		return o.checkFiles()
	}
	return o.checkSecret()
}

func (o *certificateOptions) checkFiles() []error {
	var faults []error
	for _, path := range []string{o.certificateFile(), o.keyFile()} {
		if _, err := os.Stat(path); err != nil {
			faults = append(faults, fmt.Errorf("--cert-dir %s: %w", o.dir, err))
		}
	}
	return faults
}

func (o *certificateOptions) certificateFile() string { return filepath.Join(o.dir, "tls.crt") }

func (o *certificateOptions) keyFile() string { return filepath.Join(o.dir, "tls.key") }

func (o *certificateOptions) checkSecret() []error {
	var faults []error
	namespace, name, found := strings.Cut(o.secret, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		faults = append(faults, fmt.Errorf("--cert-secret %q: write namespace/name", o.secret))
	}
	if len(o.dnsNames) == 0 {
		faults = append(faults, fmt.Errorf("--cert-dns-name is missing: name the host by which kube-apiserver reaches the webhook, such as vmwarden-webhook.vmwarden.svc"))
	}
	for _, host := range o.dnsNames {
		for _, problem := range validation.IsDNS1123Subdomain(host) {
			faults = append(faults, fmt.Errorf("--cert-dns-name %q: %s", host, problem))
		}
	}
	if len(validation.IsDNS1123Subdomain(o.registration)) > 0 {
		faults = append(faults, fmt.Errorf("--webhook-configuration %q is no name of a webhook configuration", o.registration))
	}
	return faults
}

// newCertificateSource adds to the manager what keeps or follows the certificate.
func newCertificateSource(mgr manager.Manager, s settings) (certificate.Source, error) {
	o := s.certificate
	if o.dir != "" {
		watcher, err := certwatcher.New(o.certificateFile(), o.keyFile())
		if err != nil {
			return nil, fmt.Errorf("reading the certificate in %s: %w", o.dir, err)
		}
		if err := mgr.Add(watcher); err != nil {
			return nil, fmt.Errorf("adding the watch of the certificate to the manager: %w", err)
		}
		return watcher, nil
	}
	client, err := kubernetes.NewForConfig(s.cluster)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	namespace, name, _ := strings.Cut(o.secret, "/")
	return certificate.SetUp(mgr, client, certificate.Options{
		Namespace: namespace, Secret: name, Registration: o.registration, DNSNames: o.dnsNames, Clock: s.clock, Log: s.log,
	})
}
