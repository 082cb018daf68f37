package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A URL that cannot be right is wrong use, and is told before the cluster is asked anything.
func TestAWrongDatabaseURLIsToldByWhereItStandsAndHowToWriteIt(t *testing.T) {
	for _, variable := range []string{"DATABASE_URL", "PGHOST", "PGDATABASE", "PGSERVICE", "PGOPTIONS", "PGPORT"} {
		t.Setenv(variable, "")
	}
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment map[string]string
		file        string
		want        []string
	}{
		"nothing":       {nil, "", []string{"no database is named", "DATABASE_URL", "--database-url-file"}},
		"no URL":        {map[string]string{"DATABASE_URL": "nonsense"}, "", []string{"DATABASE_URL: ", "postgres://USER:PASSWORD@HOST:5432/DATABASE"}},
		"a file's":      {nil, file, []string{"--database-url-file " + file + ": ", "postgres://"}},
		"no file":       {nil, "none", []string{"--database-url-file none: no such file or directory"}},
		"a wrong port":  {map[string]string{"PGHOST": "db", "PGPORT": "port"}, "", []string{"the PG* variables: ", "port"}},
		"its own fence": {map[string]string{"DATABASE_URL": "postgres://db/x", "PGOPTIONS": "-c vmwarden.environment=prod"}, "", []string{"DATABASE_URL: ", "only the database itself may"}},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			_, err := databaseURL(c.file)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

func TestTheDatabaseIsNamedByFileOrURLOrVariables(t *testing.T) {
	for _, variable := range []string{"DATABASE_URL", "PGHOST", "PGDATABASE", "PGSERVICE", "PGOPTIONS"} {
		t.Setenv(variable, "")
	}
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("postgres://file/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGHOST", "db")
	if url, err := databaseURL(""); err != nil || url != "" {
		t.Errorf("variables: %q, %v", url, err)
	}
	t.Setenv("DATABASE_URL", "postgres://variable/x")
	for name, want := range map[string]string{"": "postgres://variable/x", file: "postgres://file/x"} {
		if url, err := databaseURL(name); err != nil || url != want {
			t.Errorf("%q: %q, %v, want %q", name, url, err, want)
		}
	}
}
