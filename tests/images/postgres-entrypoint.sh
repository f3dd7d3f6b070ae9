#!/bin/bash
# The behaviour of the official image's entry point, as far as docker-compose.yaml meets it: root gives the data folder to postgres; an empty
# folder is initialised with the user and password of POSTGRES_*; a server that listens on a socket file only runs the files of
# /docker-entrypoint-initdb.d; then the server starts for good.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
    chown postgres "$PGDATA" && chmod 700 "$PGDATA"
    exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD")
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    # The official image's sample file listens on every interface; Debian's on the loopback alone.
    echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
    pg_ctl -D "$PGDATA" -o "$(printf '%q ' "${@:2}") -c listen_addresses=''" -w start
    for file in /docker-entrypoint-initdb.d/*.sql; do
        psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --no-password --dbname "${POSTGRES_DB:-$POSTGRES_USER}" -f "$file"
    done
    pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
