#!/bin/sh
# Sees to it that shellcheck is there. It is no Go program, so it comes as Debian's package.
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/debian.sh"

if command -v shellcheck >/dev/null; then
  exit 0
fi
if ! remedy=$(installable shellcheck); then
  echo "ensure-shellcheck.sh: shellcheck is needed: $remedy" >&2
  exit 1
fi
install_package shellcheck
