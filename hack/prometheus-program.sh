#!/bin/sh
# Prints where a program of Prometheus is, prometheus or promtool: prometheus-program.sh NAME. Where there is none it is taken out of Debian's package
# prometheus, which is not installed: it would start a server.
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/debian.sh"

case ${1-} in
prometheus | promtool) ;;
*)
  echo "usage: prometheus-program.sh prometheus|promtool" >&2
  exit 2
  ;;
esac

if command -v "$1"; then
  exit 0
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmwarden
if [ ! -x "$cache/$1" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "prometheus-program.sh: $1 is needed; it comes with Prometheus" >&2
    exit 1
  fi
  extract_program prometheus "/usr/bin/$1" "$cache"
fi
echo "$cache/$1"
