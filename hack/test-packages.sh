#!/bin/sh
# Names the packages with tests: `node` those whose tests run a real kubelet, `kubevirt` those that run KubeVirt's own servers, `faults`
# the fault suite, `stack` others that run the real control plane or PostgreSQL, and `unit` all others.
set -eu

case ${1-} in
unit | stack | kubevirt | node | faults) ;;
*)
  echo "usage: test-packages.sh unit|stack|kubevirt|node|faults" >&2
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
    if ($1 ~ /\/vmwarden\/test\/faults\.test$/) kind = "faults"
    sub(/\.test$/, "", $1)
    if (kind == wanted) print $1
  }'
