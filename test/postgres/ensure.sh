#!/bin/sh
# Sees to it that the tests find PostgreSQL 15 or newer and PgBouncer, at the places where they look. Installs Debian's packages if they
# are missing and we may; else says what to install.
set -eu

# shellcheck source=hack/debian.sh
. "$(dirname "$0")/../../hack/debian.sh"

oldest=15

new_enough() { # new_enough DIRECTORY
  [ -x "$1/initdb" ] && [ -x "$1/postgres" ] || return 1
  major=$("$1/postgres" --version | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
  [ "${major:-0}" -ge "$oldest" ]
}

found() {
  if [ -n "${POSTGRES_BIN:-}" ]; then
    new_enough "$POSTGRES_BIN"
    return
  fi
  if initdb=$(command -v initdb) && new_enough "$(dirname "$(readlink -f "$initdb")")"; then
    return 0
  fi
  for directory in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin; do
    if new_enough "$directory"; then
      return 0
    fi
  done
  return 1
}

give_up() {
  echo "ensure.sh: PostgreSQL $oldest or newer and PgBouncer are needed: $1" >&2
  exit 1
}

pgbouncer_found() {
  command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]
}

if ! found; then
  [ -z "${POSTGRES_BIN:-}" ] || give_up "\$POSTGRES_BIN ($POSTGRES_BIN) does not hold it"
  missing=postgresql
  # Both at once, for whoever has to install them by hand.
  pgbouncer_found || missing="postgresql pgbouncer"
  remedy=$(installable "$missing") || give_up "$remedy (the server: initdb and postgres), or set POSTGRES_BIN to their directory"

  # The package would start a server on port 5432 for itself, which the tests do not use.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    as_root mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
  fi
  install_package postgresql

  found || give_up "the package postgresql of this system is older; use one that the PostgreSQL project publishes"
fi

if ! pgbouncer_found; then
  remedy=$(installable pgbouncer) || give_up "$remedy"
  install_package pgbouncer
  # Where there is systemd, the package has started a service for itself, on port 6432, which the tests do not use either.
  if command -v systemctl >/dev/null && as_root systemctl is-active --quiet pgbouncer; then
    as_root systemctl disable --now pgbouncer >&2
  fi
  pgbouncer_found || give_up "the package pgbouncer brought no program of that name"
fi
