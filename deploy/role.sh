#!/bin/sh
# Row-level security does not bind superusers, so Keelwork connects as a role that is none.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE keelwork LOGIN PASSWORD :'password';
ALTER DATABASE keelwork OWNER TO keelwork;
SQL
