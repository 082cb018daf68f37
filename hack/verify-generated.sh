#!/usr/bin/env bash
# Generates everything anew in a copy of the tree, and shows how the result differs from what is there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
tar --create --exclude=./.git --exclude=./bin . | tar --extract --directory "$work/tree"
cp --archive "$work/tree" "$work/generated"
make --no-print-directory --directory "$work/generated" generate
if ! diff --recursive --unified --new-file "$work/tree" "$work/generated"; then
  echo "verify-generated.sh: generated files are out of date; run: make generate" >&2
  exit 1
fi
