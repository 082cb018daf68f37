# shellcheck shell=sh
# The first process of a node's own process and mount namespace: runs containerd, and takes in what others leave behind. When it
# ends, the kernel ends every container and takes every mount away.
set -eu

# What containerd, its shims and the kubelet write to fixed places stays in this namespace.
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log

"$@" &
containerd=$!
trap 'kill "$containerd"' TERM
while kill -0 "$containerd" 2>/dev/null; do
  wait "$containerd" || true
done
