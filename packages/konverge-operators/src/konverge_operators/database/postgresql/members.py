"""The container of a member: the same on a real cluster and on process nodes."""

from __future__ import annotations

from typing import Final

from konverge_operators.database.certificate_files import tls_mounts
from konverge_operators.database.engine import SecretNames
from konverge_operators.database.postgresql.configuration import (
    CONFIGURATION_FILE,
    DIRECTORY,
    SUPERUSER,
)
from konverge_operators.database.postgresql.versions import image
from konverge_operators.manifests import Json

__all__ = [
    "DATA",
    "PATRONI_PORT",
    "POSTGRES_PORT",
    "PSQL",
    "RELOAD",
    "container",
    "data_directory",
]

POSTGRES_PORT: Final = 5432
PATRONI_PORT: Final = 8008

DATA: Final = "/var/lib/postgresql/data"
"""Where the claim is mounted; the database is in a directory below it, as a new volume may not be empty."""

PSQL: Final = (
    'PGPASSWORD="$PATRONI_SUPERUSER_PASSWORD" PGCONNECT_TIMEOUT=3 exec psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1'
    f' --host="$POD_IP" --port={POSTGRES_PORT} --username={SUPERUSER} --dbname=postgres'
)
"""The command that connects as the superuser, for a shell in the container."""

RELOAD: Final = f'{PSQL} --command="SELECT pg_reload_conf()"'
"""The command that lets PostgreSQL read its files again."""

_SERVES: Final = (
    "SELECT NOT pg_is_in_recovery() OR EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')"
)


def data_directory(version: str) -> str:
    """Return the directory of the data: each major version has its own, so that the old one outlives an upgrade."""
    return f"{DATA}/pgdata-{version.partition('.')[0]}"


def container(version: str, secrets: SecretNames, *, tls: bool = False) -> Json:
    """Return the container of a member, without what the reconciler adds.

    A listener is bound to the address of the pod, never to all addresses: process nodes share the loopback interface.
    The liveness probe fails when Patroni is stuck, not when PostgreSQL is down, which is Patroni's to repair. The
    readiness probe asks PostgreSQL: Patroni's own answer is no while a primary without the API server goes on in
    failsafe mode, and the Service would lead nowhere.
    """
    return {
        "image": image(version),
        "args": [f"{DIRECTORY}/{CONFIGURATION_FILE}"],
        "env": [
            _field("POD_IP", "status.podIP"),
            _field("PATRONI_NAME", "metadata.name"),
            _field("PATRONI_KUBERNETES_NAMESPACE", "metadata.namespace"),
            _value("PATRONI_KUBERNETES_POD_IP", "$(POD_IP)"),
            _value("PATRONI_POSTGRESQL_LISTEN", f"$(POD_IP):{POSTGRES_PORT}"),
            _value("PATRONI_POSTGRESQL_CONNECT_ADDRESS", f"$(POD_IP):{POSTGRES_PORT}"),
            _value("PATRONI_POSTGRESQL_DATA_DIR", data_directory(version)),
            _value("PATRONI_POSTGRESQL_PGPASS", "/tmp/pgpass"),
            _value("PATRONI_RESTAPI_LISTEN", f"$(POD_IP):{PATRONI_PORT}"),
            _value("PATRONI_RESTAPI_CONNECT_ADDRESS", f"$(POD_IP):{PATRONI_PORT}"),
            _value("PATRONI_RESTAPI_USERNAME", "patroni"),
            _password("PATRONI_RESTAPI_PASSWORD", secrets.replication),
            _password("PATRONI_SUPERUSER_PASSWORD", secrets.superuser),
            _password("PATRONI_REPLICATION_PASSWORD", secrets.replication),
            _password("PATRONI_REWIND_PASSWORD", secrets.replication),
            _password("APPLICATION_PASSWORD", secrets.application),
        ],
        "volumeMounts": tls_mounts(tls=tls),
        "ports": [
            {"name": "postgresql", "containerPort": POSTGRES_PORT},
            {"name": "patroni", "containerPort": PATRONI_PORT},
        ],
        "startupProbe": _probe("/liveness", period=1, failures=300),
        "livenessProbe": _probe("/liveness", period=10, failures=6),
        "readinessProbe": {
            "exec": {"command": ["sh", "-c", f'test "$({PSQL} --tuples-only --no-align --command="{_SERVES}")" = t']},
            "periodSeconds": 2,
            "timeoutSeconds": 5,
            "failureThreshold": 2,
        },
    }


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _value(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def _password(name: str, secret: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": "password"}}}


def _probe(path: str, *, period: int, failures: int) -> Json:
    request = {"path": path, "port": "patroni"}
    return {"httpGet": request, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
