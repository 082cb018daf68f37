#!/usr/bin/env bash
# Looks for known vulnerabilities that the binaries reach. The arguments are the command that runs govulncheck. Its database is a Go module, at
# the version in hack/data: a scan says today what it said yesterday. VULNDB=URL takes another, such as the one that govulncheck itself takes,
# which knows what was found since.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${VULNDB-}" ]; then
  directory=$(hack/module-directory.sh hack/data golang.org/x/vulndb)
  VULNDB=file://$directory/data/osv
fi
echo "database: ${VULNDB##*/mod/}"
toolchain=$(go mod edit -json | sed -n 's/^\t"Toolchain": "\(.*\)",*$/\1/p')
scan=$(mktemp)
trap 'rm -f "$scan"' EXIT
"$@" -format json -db "$VULNDB" ./cmd/... >"$scan"
go run ./hack/vulnerabilities -toolchain "$toolchain" <"$scan"
