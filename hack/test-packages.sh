#!/bin/sh
# Names the packages with tests: `stack` those whose tests run the real control plane or PostgreSQL, and so need what
# `make setup` sets up, and `unit` all others.
set -eu

case ${1-} in
unit | stack) ;;
*)
  echo "usage: test-packages.sh unit|stack" >&2
  exit 2
  ;;
esac

# A list of its own, so that an error of go list ends the script.
programs=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./...)
echo "$programs" | awk -v wanted="$1" '
  $1 ~ /\.test$/ {
    kind = /\/vmwarden\/test\/(controlplane|postgres)( |$)/ ? "stack" : "unit"
    sub(/\.test$/, "", $1)
    if (kind == wanted) print $1
  }'
