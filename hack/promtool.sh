#!/bin/sh
# Runs promtool, which is taken out of Debian's package prometheus where there is none.
set -eu

promtool=$("$(dirname "$0")/prometheus-program.sh" promtool)
exec "$promtool" "$@"
