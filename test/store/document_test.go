package store

import (
	"strings"
	"testing"

	"github.com/ttlab/vmwarden/test/backend"
	"github.com/ttlab/vmwarden/test/documents"
)

// TestTheDocumentedStatementsSetADatabaseUp runs docs/reaping.md on a database of its name and the backend's table.
func TestTheDocumentedStatementsSetADatabaseUp(t *testing.T) {
	lines, err := documents.Lines("docs/reaping.md", "sql")
	if err != nil {
		t.Fatal(err)
	}
	const name = "prod"
	if err := server.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	execute(t, name, backend.Text(backend.Sessions), `delete from sessions`)
	documentsGrant := false
	for _, line := range lines {
		if strings.HasPrefix(line, "CREATE ROLE") {
			// The tests before this one have made it: roles are the server's.
			line = `do $$ begin ` + line + ` exception when duplicate_object then null; end $$`
		}
		documentsGrant = documentsGrant || strings.EqualFold(strings.TrimSuffix(line, ";"), grant)
		execute(t, name, line)
	}
	if !documentsGrant {
		t.Errorf("the document does not tell the grant that the tests run with: %s", grant)
	}
	execute(t, name, expiredRow)
	store := plain(t, name)
	if rows := read(t, store); rows.Fence != "prod" || len(rows.Sessions) != 1 {
		t.Errorf("rows = %+v", rows)
	}
	if left, err := store.Expire(t.Context(), first, nothing); err != nil || left != "" {
		t.Errorf("expiring: left %q, %v", left, err)
	}
}
