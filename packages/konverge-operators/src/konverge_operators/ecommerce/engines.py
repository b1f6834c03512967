"""The plain database by engine: what the images of PostgreSQL and of MariaDB, as their projects publish them, need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from konverge_operators.ecommerce.api import DatabaseOptions
from konverge_operators.manifests import Json, secret_variable

__all__ = ["USER", "PlainEngine", "plain_engine"]

USER: Final = 999
"""The user of the server in both images."""


@dataclass(frozen=True, kw_only=True)
class PlainEngine:
    """What is different between the two."""

    name: str
    """Also the name of the port, and the prefix of the URL."""
    type: str
    """The type of servicebinding.io."""
    port: int
    image: str
    variables: Mapping[str, str]
    """Keys of the connection Secret, by the variable of the image."""
    constants: Mapping[str, str]
    data_path: str
    run_path: str
    """Where the socket is."""
    is_ready: tuple[str, ...]
    """The command of the probes."""
    dump: str
    """The command of a backup, for a shell; its environment has the keys of the connection Secret."""

    def environment(self, secret: str) -> list[Json]:
        """Return the variables of the server."""
        constants: list[Json] = [{"name": name, "value": value} for name, value in self.constants.items()]
        return [*(secret_variable(name, secret, key) for name, key in self.variables.items()), *constants]

    def connection(self, host: str, password: str) -> dict[str, str]:
        """Return the content of the connection Secret: the keys of servicebinding.io."""
        values = {"type": self.type, "host": host, "port": str(self.port), "username": "shop", "database": "shop"}
        return {**values, "password": password, "uri": f"{self.type}://shop:{password}@{host}:{self.port}/shop"}


def plain_engine(options: DatabaseOptions) -> PlainEngine:
    """Return the engine that was chosen, in its version."""
    return (_mariadb if options.engine == "mariadb" else _postgresql)(options.version)


def _postgresql(version: str) -> PlainEngine:
    return PlainEngine(
        name="postgresql",
        type="postgresql",
        port=5432,
        image=f"postgres:{version}",
        variables={"POSTGRES_USER": "username", "POSTGRES_PASSWORD": "password", "POSTGRES_DB": "database"},
        constants={"PGDATA": "/var/lib/postgresql/data/pgdata"},
        data_path="/var/lib/postgresql/data",
        run_path="/var/run/postgresql",
        is_ready=("pg_isready", "-U", "shop"),
        dump='pg_dump --format=custom --file="/backup/$(date +%Y%m%d%H%M%S).dump" "$DATABASE_URI"',
    )


def _mariadb(version: str) -> PlainEngine:
    """Return MariaDB. Its image listens on no port until the data is complete, so the probes ask at the port.

    The superuser has the same password and connects in the pod only: a random one would be printed to the log.
    """
    ping = 'MYSQL_PWD="$MARIADB_PASSWORD" exec mariadb-admin --host="${POD_IP:-127.0.0.1}" --user=shop ping'
    variables = {"MARIADB_USER": "username", "MARIADB_PASSWORD": "password", "MARIADB_DATABASE": "database"}
    return PlainEngine(
        name="mariadb",
        type="mysql",
        port=3306,
        image=f"mariadb:{version}",
        variables={**variables, "MARIADB_ROOT_PASSWORD": "password"},
        constants={"MARIADB_ROOT_HOST": "localhost"},
        data_path="/var/lib/mysql",
        run_path="/run/mysqld",
        is_ready=("sh", "-c", ping),
        dump='file="/backup/$(date +%Y%m%d%H%M%S).sql" && export MYSQL_PWD="$DATABASE_PASSWORD" &&'
        ' mariadb-dump --host="$DATABASE_HOST" --user="$DATABASE_USERNAME" --single-transaction --routines'
        ' --result-file="$file.part" "$DATABASE_DATABASE" && mv "$file.part" "$file"',
    )
