#!/bin/sh
# Names the packages with tests: `node` those whose tests run a real kubelet, `kubevirt` those that run KubeVirt's own servers,
# `stack` those that run the real control plane or PostgreSQL without either, and `unit` all others.
set -eu

case ${1-} in
unit | stack | kubevirt | node) ;;
*)
  echo "usage: test-packages.sh unit|stack|kubevirt|node" >&2
  exit 2
  ;;
esac

# A list of its own, so that an error of go list ends the script.
programs=$(go list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./...)
echo "$programs" | awk -v wanted="$1" '
  $1 ~ /\.test$/ {
    kind = "unit"
    if (/\/vmwarden\/test\/(controlplane|postgres)( |$)/) kind = "stack"
    if (/\/vmwarden\/test\/kubevirt( |$)/) kind = "kubevirt"
    if (/\/vmwarden\/test\/node( |$)/) kind = "node"
    sub(/\.test$/, "", $1)
    if (kind == wanted) print $1
  }'
