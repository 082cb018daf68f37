#!/usr/bin/env bash
# Lists the licences of what is linked into the binaries (list), or puts their texts into a directory (save DIRECTORY). Before that stand the command
# that runs go-licenses, and --.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tool=()
while [ "$1" != -- ]; do
  tool+=("$1")
  shift
done
shift
# Its warnings about assembly files, in which it looks for no imports, are left out.
quiet=(--ignore github.com/ttlab/vmwarden --stderrthreshold=ERROR --logtostderr=false)

case $1 in
list)
  "${tool[@]}" report ./cmd/... --template hack/licenses.md.tmpl "${quiet[@]}"
  ;;
save)
  "${tool[@]}" save ./cmd/... --save_path "$2" --force "${quiet[@]}"
  # Its own tree, and Go's, are not among what it looks at.
  cp LICENSE "$2/LICENSE"
  mkdir "$2/go"
  cp "$(go env GOROOT)/LICENSE" "$2/go/LICENSE"
  ;;
*)
  echo "usage: licenses.sh COMMAND... -- list | save DIRECTORY" >&2
  exit 2
  ;;
esac
