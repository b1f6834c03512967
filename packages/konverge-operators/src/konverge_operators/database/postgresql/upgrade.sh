# Upgrades the data in $OLD to a new directory, $NEW. The old directory can be started before, during and after.
set -eu
umask 077
programs=$(eval "printf %s \"\${POSTGRESQL_$OLD_MAJOR:-}\"")
work=$(mktemp -d)
new=$NEW.partial
trap 'rm -rf "$work" "$new"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

value() { # of pg_controldata: directory of programs, data directory, name
    "$1/pg_controldata" "$2" | sed -n "s/^$3: *//p"
}

run() { # a server for one command: directory of programs, data directory, configuration, command
    "$1/pg_ctl" --pgdata="$2" --silent --wait --timeout=3600 --log="$work/server.log" \
        --options="-c config_file=$3 -k $work -h ''" start || fail "the server does not start: $(tail -n 5 "$work/server.log")"
    status=0
    PATH="$1:$PATH" sh -eu -c "$4" || status=$?
    "$1/pg_ctl" --pgdata="$2" --silent --wait --timeout=3600 --mode=fast stop
    return $status
}

# The number of relations and of large objects in each database.
summary='
export PGHOST="'$work'" PGUSER=postgres
names=$(psql --no-psqlrc --tuples-only --no-align --dbname=postgres \
    --command="SELECT datname FROM pg_database WHERE datallowconn ORDER BY datname")
printf "%s\n" "$names" | while read -r name; do
    printf "%s " "$name"
    PGDATABASE="$name" psql --no-psqlrc --tuples-only --no-align --command="
        SELECT (SELECT count(*) FROM pg_class WHERE oid >= 16384 AND relnamespace >= 2200 AND relkind IN ('"'r','m','i','S','v','p'"')),
               (SELECT count(*) FROM pg_largeobject_metadata)"
done'

test -n "$programs" || fail "this image has no programs of PostgreSQL $OLD_MAJOR"
current=$(dirname "$(command -v pg_upgrade)")
test "$(cat "$OLD/PG_VERSION")" = "$OLD_MAJOR" || fail "$OLD is not of version $OLD_MAJOR"
test ! -e "$OLD/standby.signal" || fail "$OLD is that of a replica"
test ! -e "$NEW/postmaster.pid" || fail "$NEW is in use"
rm -rf "$NEW" "$new"

echo "local all all trust" >"$work/hba.conf"
echo "hba_file = '$work/hba.conf'" >"$work/old.conf"
cp "$work/old.conf" "$work/new.conf"
# What the old version has not archived yet is kept for it: without this a checkpoint would remove it.
echo "archive_mode = on" >>"$work/old.conf"
# As Patroni does, leave out parameters that the new version does not know. Extensions have a point in theirs.
postgres --describe-config | cut -f1 >"$work/known"
printf '%s\n' "$PARAMETERS" | while read -r name rest; do
    case $name in unix_socket_directories | ssl | ssl_*) continue ;; esac # the Job has no certificate, and no network
    if grep -qix "$name" "$work/known" || test "$name" != "${name#*.}"; then printf '%s %s\n' "$name" "$rest"; fi
done >>"$work/new.conf"
printf '%s\n' "$PARAMETERS" | grep -i '^shared_preload_libraries ' >>"$work/old.conf" || true

# A server that was killed recovers here; pg_upgrade refuses its data otherwise.
run "$programs" "$OLD" "$work/old.conf" "$summary" >"$work/before"

checksums=--data-checksums
if test "$(value "$programs" "$OLD" "Data page checksum version")" = 0; then
    checksums=
    if initdb --help | grep -q -- --no-data-checksums; then checksums=--no-data-checksums; fi
fi
segment=$(($(value "$programs" "$OLD" "Bytes per WAL segment") / 1048576))
initdb --pgdata="$new" --username=postgres --encoding=UTF8 --locale=C.UTF-8 --auth=scram-sha-256 --auth-local=trust \
    --wal-segsize="$segment" $checksums >"$work/initdb.log" 2>&1 || fail "initdb: $(tail -n 5 "$work/initdb.log")"

# A value that the new version refuses is found here.
run "$current" "$new" "$work/new.conf" :

cd "$work"
pg_upgrade --old-bindir="$programs" --new-bindir="$current" --old-datadir="$OLD" --new-datadir="$new" --username=postgres \
    --socketdir="$work" --old-options="-c config_file=$work/old.conf" --new-options="-c config_file=$work/new.conf" \
    >"$work/upgrade.log" 2>&1 || fail "pg_upgrade: $(tail -n 15 "$work/upgrade.log") $(cat "$new"/pg_upgrade_output.d/*/*.txt | head -n 20)"

analyze="vacuumdb --host=$work --username=postgres --all --analyze-in-stages --quiet"
if vacuumdb --help | grep -q -- --missing-stats-only; then analyze="$analyze --missing-stats-only"; fi
run "$current" "$new" "$work/new.conf" "$analyze; $summary" >"$work/after"
cmp -s "$work/before" "$work/after" || fail "the new data differs: $(cat "$work/before"), then $(cat "$work/after")"

sync
mv "$new" "$NEW"
sync
printf '{"systemIdentifier": "%s"}' "$(value "$current" "$NEW" "Database system identifier")" >/dev/termination-log
