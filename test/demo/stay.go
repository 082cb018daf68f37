package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ttlab/vmwarden/test/lab"
)

// tries are what somebody may want to try first, after the story: prod's live session has a machine, and so has dev's.
var tries = []string{
	"webhook caps --config $CONFIG",
	"reapjob plan --config $CONFIG --environment prod",
	"reapjob status --config $CONFIG --environment prod",
	"webhook denials $AUDIT_LOG",
	"webhook denials -o html $AUDIT_LOG > denials.html",
	"webhook trace lab-a0000000 --config $CONFIG $AUDIT_LOG",
	"kubectl -n " + lab.VMNamespace + " get vm --show-labels",
	"kubectl -n " + lab.VMNamespace + " delete vm lab-a1000000 --as system:serviceaccount:ttlab-dev:backend",
	`psql "$DATABASE_URL" -c 'select id, status, vm_name, expires_at from sessions'`,
}

// stay leaves the lab up until the context ends.
func stay(ctx context.Context, l *lab.Lab, kubectl string, out io.Writer) error {
	environment, err := furnish(l, kubectl)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n=== It is yours, until Ctrl-C ===\n\nIn another shell:\n\n  source %s\n\n", environment)
	for _, try := range tries {
		fmt.Fprintln(out, "  "+try)
	}
	fmt.Fprintln(out, "\nYou are an admin, and prod's reaper in its database. psql comes with PostgreSQL's client.")
	<-ctx.Done()
	fmt.Fprintln(out, "\nTaking everything down. That make calls Ctrl-C an error means nothing.")
	return nil
}

// furnish writes what another shell needs, and names the file that it sources for that. kubectl is for whoever has none.
func furnish(l *lab.Lab, kubectl string) (environment string, err error) {
	directory := filepath.Join(l.Dir(), "playground")
	if err := os.Mkdir(directory, 0o700); err != nil {
		return "", fmt.Errorf("making the playground: %w", err)
	}
	path := func(name string) string { return filepath.Join(directory, name) }
	if err := l.ControlPlane.WriteKubeconfig(path("kubeconfig"), l.Admin); err != nil {
		return "", err
	}
	variables := fmt.Sprintf("export PATH=%q:%q:\"$PATH\"\nexport KUBECONFIG=%q\nexport CONFIG=%q\nexport DATABASE_URL=%q\nexport AUDIT_LOG=%q\n",
		l.BinaryDir(), filepath.Dir(kubectl), path("kubeconfig"), path("config.yaml"), l.ReaperURL("prod"), l.ControlPlane.AuditLog())
	for name, content := range map[string]string{"config.yaml": lab.Config, "env": variables} {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("writing what the playground is tried with: %w", err)
		}
	}
	return path("env"), nil
}
