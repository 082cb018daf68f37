#!/usr/bin/env bash
# Makes the image twice of the last commit, and compares all that is given away, byte by byte: in two directories, the second time with nothing that
# was compiled before, in another time zone and with another mask for the modes of files.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=$work/first second=$work/a/second/place
git clone --quiet . "$first"
git clone --quiet . "$second"

make -C "$first" image
(
  umask 077
  export TZ=Asia/Tokyo LC_ALL=C
  echo "== again, with an empty build cache: some minutes"
  GOCACHE=$work/cache make -C "$second" build
  # The tools that pack it are not what is compared, and need not be compiled anew.
  make -C "$second" --old-file=build image
)
made='webhook reapjob webhook.sbom.json reapjob.sbom.json vmwarden-image.tar'
differ=0
for file in $made; do
  if cmp "$first/bin/$file" "$second/bin/$file"; then
    (cd "$first/bin" && sha256sum "$file")
  else
    differ=1
  fi
done
if [ $differ = 1 ]; then
  echo "verify-reproducible.sh: two builds of one commit differ" >&2
  exit 1
fi
