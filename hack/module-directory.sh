#!/bin/sh
# Prints where the Go command keeps the files of a module, after downloading it: module-directory.sh DIRECTORY MODULE, at the version that the
# go.mod in the directory names.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: module-directory.sh DIRECTORY MODULE" >&2
  exit 2
fi
# What it downloads it tells as JSON, an error too, one field to a line.
answer=$(go -C "$1" mod download -json "$2") || {
  echo "module-directory.sh: downloading $2: $answer" >&2
  exit 1
}
echo "$answer" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'
