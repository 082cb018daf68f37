#!/bin/sh
# Sees to it that the tests with a real kubelet find what it needs of the system: containerd, runc and the basic network plugins.
# Installs Debian's packages if they are missing and we may; else says what to install. Nothing of it is started or configured.
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/../../hack/debian.sh"

ensure() { # ensure PACKAGE FILE...
  package=$1
  shift
  for file in "$@"; do
    if [ -x "$file" ]; then
      return 0
    fi
  done
  if ! remedy=$(installable "$package"); then
    echo "ensure.sh: $package is needed for the tests with a real kubelet: $remedy" >&2
    exit 1
  fi
  install_package "$package"
}

ensure containerd /usr/bin/containerd /usr/local/bin/containerd
ensure runc /usr/sbin/runc /usr/bin/runc /usr/local/sbin/runc
ensure containernetworking-plugins /usr/lib/cni/ptp /opt/cni/bin/ptp
