package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheCertificateComesFromFilesOrFromASecretAndWrongUseSaysWhatToWrite(t *testing.T) {
	whole := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.WriteFile(filepath.Join(whole, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const kept = "vmwarden/tls"
	for name, c := range map[string]struct {
		options certificateOptions
		// want are parts of the faults; none: it is right.
		want []string
	}{
		"files":                   {certificateOptions{dir: whole}, nil},
		"a Secret":                {certificateOptions{secret: kept, dnsNames: []string{"webhook.vmwarden.svc"}, registration: "vmwarden"}, nil},
		"neither":                 {certificateOptions{}, []string{"--cert-dir is missing", "--cert-secret"}},
		"both":                    {certificateOptions{dir: whole, secret: kept}, []string{"name one of them"}},
		"files that are missing":  {certificateOptions{dir: t.TempDir()}, []string{"tls.crt", "tls.key"}},
		"a Secret by name alone":  {certificateOptions{secret: "tls", dnsNames: []string{"x.y.svc"}, registration: "vmwarden"}, []string{`--cert-secret "tls": write namespace/name`}},
		"a Secret without a host": {certificateOptions{secret: "a/b", registration: "vmwarden"}, []string{"--cert-dns-name is missing"}},
		"an address for a host":   {certificateOptions{secret: "a/b", dnsNames: []string{"https://x"}, registration: "vmwarden"}, []string{`--cert-dns-name "https://x"`}},
		"no configuration":        {certificateOptions{secret: "a/b", dnsNames: []string{"x.y.svc"}}, []string{"--webhook-configuration"}},
	} {
		faults := c.options.check()
		if (len(c.want) == 0) != (len(faults) == 0) {
			t.Errorf("%s: faults %v, want some with %q", name, faults, c.want)
		}
		for _, want := range c.want {
			if !strings.Contains(errors.Join(faults...).Error(), want) {
				t.Errorf("%s: faults %v, want %q", name, faults, want)
			}
		}
	}
}
