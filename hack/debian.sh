# shellcheck shell=sh
# For scripts that need a program which comes as a package of the system only. To be sourced.

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

# installable PACKAGE succeeds where install_package may install it, and else says what a person has to do.
installable() {
  if ! command -v apt-get >/dev/null; then
    echo "install the package $1 of this system"
    return 1
  fi
  if ! as_root true 2>/dev/null; then
    echo "as root, run: apt-get install $1"
    return 1
  fi
}

# install_package PACKAGE asks no questions, and waits for another installation that is under way.
install_package() {
  echo "installing the package $1" >&2
  as_root apt-get -q -o DPkg::Lock::Timeout=300 update >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install --no-install-recommends "$1" >&2
}

# extract_program PACKAGE PATH DIRECTORY puts one program of a package into a directory and installs nothing. No right is needed but
# where apt has no lists of packages yet.
extract_program() {
  echo "taking $2 from the package $1" >&2
  mkdir -p "$3"
  extracting=$(mktemp -d "$3/extracting.XXXXXX")
  if ! (cd "$extracting" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1") >&2; then
    as_root apt-get -q -o DPkg::Lock::Timeout=300 update >&2
    (cd "$extracting" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1") >&2
  fi
  dpkg-deb --fsys-tarfile "$extracting"/*.deb | tar -x -C "$extracting" ".$2"
  # In one step: another run may be at it.
  mv "$extracting$2" "$3/"
  rm -rf "$extracting"
}
