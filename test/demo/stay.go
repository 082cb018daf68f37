package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ttlab/vmwarden/test/lab"
)

// tryThis is what somebody may want to try first, after the story: prod's live session has a machine, and so has dev's.
const tryThis = `
=== It is yours, until Ctrl-C ===

In another shell:

  source %[1]s/env

  webhook caps --config $CONFIG
  reapjob plan --config $CONFIG --environment prod
  reapjob status --config $CONFIG --environment prod
  webhook denials $AUDIT_LOG
  webhook denials -o html $AUDIT_LOG > denials.html
  webhook trace lab-a0000000 --config $CONFIG $AUDIT_LOG
  kubectl -n %[2]s get vm --show-labels
  kubectl -n %[2]s delete vm lab-a1000000 --as %[3]s
  psql "$DATABASE_URL" -c 'select id, status, vm_name, expires_at from sessions'

kubectl and psql are yours to bring. You are an admin, and prod's reaper in its database.
`

// stay leaves the lab up until the context ends.
func stay(ctx context.Context, l *lab.Lab, out io.Writer) error {
	directory := filepath.Join(l.Dir(), "playground")
	if err := os.Mkdir(directory, 0o700); err != nil {
		return fmt.Errorf("making the playground: %w", err)
	}
	path := func(name string) string { return filepath.Join(directory, name) }
	if err := l.ControlPlane.WriteKubeconfig(path("kubeconfig"), l.Admin); err != nil {
		return err
	}
	environment := fmt.Sprintf("export PATH=%q:\"$PATH\"\nexport KUBECONFIG=%q\nexport CONFIG=%q\nexport DATABASE_URL=%q\nexport AUDIT_LOG=%q\n",
		l.BinaryDir(), path("kubeconfig"), path("config.yaml"), l.ReaperURL("prod"), l.ControlPlane.AuditLog())
	for name, content := range map[string]string{"config.yaml": lab.Config, "env": environment} {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing what the playground is tried with: %w", err)
		}
	}
	fmt.Fprintf(out, tryThis, directory, lab.VMNamespace, "system:serviceaccount:ttlab-dev:backend")
	<-ctx.Done()
	fmt.Fprintln(out, "\nTaking everything down. That make calls Ctrl-C an error means nothing.")
	return nil
}
