#!/bin/sh
# Sees to it that a program is there that is no Go program, and comes as Debian's package of the same name: ensure-program.sh NAME
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/debian.sh"

if command -v "$1" >/dev/null; then
  exit 0
fi
if ! remedy=$(installable "$1"); then
  echo "ensure-program.sh: $1 is needed: $remedy" >&2
  exit 1
fi
install_package "$1"
