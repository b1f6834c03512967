"""The container of a member: the same on a real cluster and on process nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from konverge_operators.database.certificate_files import TLS_DIRECTORY, tls_mounts
from konverge_operators.database.engine import SecretNames
from konverge_operators.database.mariadb.configuration import DIRECTORY, OPTIONS_FILE, SCRIPT_FILE
from konverge_operators.database.mariadb.member.status_server import PORT as STATUS_PORT
from konverge_operators.database.mariadb.versions import image
from konverge_operators.manifests import Json, secret_variable

__all__ = ["CLIENT", "DATA", "MARIADB_PORT", "MEMBER_PORTS", "RELOAD", "container"]

MARIADB_PORT: Final = 3306
MEMBER_PORTS: Final = (STATUS_PORT, 4444, 4567, 4568)
"""Status, transfer of all data, replication, transfer of what is missing."""
DATA: Final = "/var/lib/mysql"
CLIENT: Final = (
    'cd "$DATA/data" && MYSQL_PWD="$SUPERUSER_PASSWORD" exec mariadb --no-defaults --socket=./mariadb.sock --user=root'
    " --batch --skip-column-names"
)
"""The command that connects as the superuser, for a shell in the container."""


RELOAD: Final = f"echo \"FLUSH LOCAL SSL; SET GLOBAL wsrep_provider_options = 'socket.ssl_reload=1';\" | ({CLIENT})"
"""The command that lets the server and Galera read the certificate again. Without LOCAL all members would execute it,
also those that do not have the renewed files yet.
"""


def container(
    version: str, cluster: str, labels: Mapping[str, str], secrets: SecretNames, *, tls: bool = False
) -> Json:
    """Return the container of a member, without what the reconciler adds.

    Listeners are bound to the address of the pod: process nodes share the loopback interface. The liveness probe fails
    when the program is stuck, not when the server is down, which the program repairs.
    """
    passwords = {"SUPERUSER": secrets.superuser, "REPLICATION": secrets.replication, "APPLICATION": secrets.application}
    return {
        "image": image(version),
        "command": ["sh", "-c", 'exec "$PYTHON" -m konverge_operators.database.mariadb.member'],
        "env": [
            _field("POD_IP", "status.podIP"),
            _field("POD_NAME", "metadata.name"),
            _value("CLUSTER", cluster),
            _value("SELECTOR", ",".join(f"{name}={value}" for name, value in labels.items())),
            _value("DATA", DATA),
            _value("DEFAULTS", f"{DIRECTORY}/{OPTIONS_FILE}"),
            _value("SCRIPT", f"{DIRECTORY}/{SCRIPT_FILE}"),
            _value("TMPDIR", "/tmp"),
            *([_value("TLS", TLS_DIRECTORY)] if tls else []),
            *(secret_variable(f"{name}_PASSWORD", secret, "password") for name, secret in passwords.items()),
        ],
        "volumeMounts": tls_mounts(tls=tls),
        "ports": [
            {"name": "mariadb", "containerPort": MARIADB_PORT},
            {"name": "status", "containerPort": STATUS_PORT},
            {"name": "replication", "containerPort": 4567},
        ],
        "startupProbe": _probe("/liveness", period=1, failures=300),
        "livenessProbe": _probe("/liveness", period=10, failures=6),
        "readinessProbe": _probe("/readiness", period=2, failures=2),
    }


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _value(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def _probe(path: str, *, period: int, failures: int) -> Json:
    request = {"path": path, "port": "status"}
    return {"httpGet": request, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
