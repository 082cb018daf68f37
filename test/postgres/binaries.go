package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// oldestMajor is the oldest release that vmwarden promises to work with.
const oldestMajor = 15

// binariesVariable names the directory with the server's programs, for those who have it at an unusual place.
const binariesVariable = "POSTGRES_BIN"

// usualPlaces is where Debian and others keep the server's programs, outside PATH. The script ensure.sh looks there too.
var usualPlaces = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// findBinaries is the directory with initdb and postgres: $POSTGRES_BIN, that of PATH, or the newest of those that match the patterns.
func findBinaries(ctx context.Context, patterns []string) (string, error) {
	if directory := os.Getenv(binariesVariable); directory != "" {
		major, err := majorVersion(ctx, directory)
		if err != nil {
			return "", fmt.Errorf("looking for PostgreSQL in $%s: %w", binariesVariable, err)
		}
		if major < oldestMajor {
			return "", fmt.Errorf("$%s has PostgreSQL %d; at least %d is needed", binariesVariable, major, oldestMajor)
		}
		return directory, nil
	}
	if found, err := exec.LookPath("initdb"); err == nil {
		// A link in PATH may stand for itself alone: its neighbours are where it points to.
		if found, err = filepath.EvalSymlinks(found); err == nil {
			if major, err := majorVersion(ctx, filepath.Dir(found)); err == nil && major >= oldestMajor {
				return filepath.Dir(found), nil
			}
		}
	}
	best, bestMajor := "", oldestMajor-1
	for _, pattern := range patterns {
		// The patterns are well formed, which is all that could fail.
		directories, _ := filepath.Glob(pattern)
		for _, directory := range directories {
			if major, err := majorVersion(ctx, directory); err == nil && major > bestMajor {
				best, bestMajor = directory, major
			}
		}
	}
	if best == "" {
		return "", fmt.Errorf("the programs of PostgreSQL %d or newer were not found: on Debian and Ubuntu run `apt-get install postgresql`, "+
			"elsewhere install the package with the PostgreSQL server (initdb and postgres), or set $%s to the directory that holds them",
			oldestMajor, binariesVariable)
	}
	return best, nil
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// majorVersion asks the server itself: initdb alone may come with a client package.
func majorVersion(ctx context.Context, directory string) (int, error) {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(directory, program)); err != nil {
			return 0, err
		}
	}
	output, err := exec.CommandContext(ctx, filepath.Join(directory, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("asking for the version of PostgreSQL in %s: %w", directory, err)
	}
	match := versionPattern.FindSubmatch(output)
	if match == nil {
		return 0, fmt.Errorf("PostgreSQL in %s names no version, but %q", directory, output)
	}
	return strconv.Atoi(string(match[1]))
}
