#!/bin/sh
# Sees to it that chromium is there, as Debian's package: a real browser opens the page of `webhook denials -o html`.
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/debian.sh"

if command -v chromium >/dev/null; then
  exit 0
fi
if ! remedy=$(installable chromium); then
  echo "ensure-chromium.sh: chromium is needed: $remedy" >&2
  exit 1
fi
install_package chromium
