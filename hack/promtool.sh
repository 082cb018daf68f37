#!/bin/sh
# Runs promtool. Where there is none it is taken out of Debian's package prometheus, which is not installed: it would start a server.
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/debian.sh"

if ! command -v promtool >/dev/null; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmwarden
  if [ ! -x "$cache/promtool" ]; then
    if ! command -v apt-get >/dev/null; then
      echo "promtool.sh: promtool is needed; it comes with Prometheus" >&2
      exit 1
    fi
    extract_program prometheus /usr/bin/promtool "$cache"
  fi
  PATH=$cache:$PATH
fi
exec promtool "$@"
