"""The container of a member: the same on a real cluster and on process nodes."""

from __future__ import annotations

from typing import Any, Final

from konverge_operators.database.postgresql.configuration import CONFIGURATION_FILE, DIRECTORY

__all__ = ["DATA", "PATRONI_PORT", "POSTGRES_PORT", "container", "volumes"]

POSTGRES_PORT: Final = 5432
PATRONI_PORT: Final = 8008

DATA: Final = "/var/lib/postgresql/data"
"""Where the claim is mounted; the database is in a directory below it, as a new volume may not be empty."""
_TEMPORARY: Final = "/tmp"


def container(image: str, name: str, *, superuser: str, replication: str, application: str) -> dict[str, Any]:
    """Return the container of a member of the cluster `name`; the other arguments are the names of its Secrets.

    A listener is bound to the address of the pod, never to all addresses: process nodes share the loopback interface.
    The liveness probe fails when Patroni is stuck, not when PostgreSQL is down, which is Patroni's to repair.
    """
    return {
        "name": "postgresql",
        "image": image,
        "args": [f"{DIRECTORY}/{CONFIGURATION_FILE}"],
        "env": [
            _field("POD_IP", "status.podIP"),
            _field("PATRONI_NAME", "metadata.name"),
            _field("PATRONI_KUBERNETES_NAMESPACE", "metadata.namespace"),
            _value("PATRONI_KUBERNETES_POD_IP", "$(POD_IP)"),
            _value("PATRONI_POSTGRESQL_LISTEN", f"$(POD_IP):{POSTGRES_PORT}"),
            _value("PATRONI_POSTGRESQL_CONNECT_ADDRESS", f"$(POD_IP):{POSTGRES_PORT}"),
            _value("PATRONI_POSTGRESQL_DATA_DIR", f"{DATA}/pgdata"),
            _value("PATRONI_POSTGRESQL_PGPASS", f"{_TEMPORARY}/pgpass"),
            _value("PATRONI_RESTAPI_LISTEN", f"$(POD_IP):{PATRONI_PORT}"),
            _value("PATRONI_RESTAPI_CONNECT_ADDRESS", f"$(POD_IP):{PATRONI_PORT}"),
            _value("PATRONI_RESTAPI_USERNAME", "patroni"),
            _secret("PATRONI_RESTAPI_PASSWORD", replication),
            _secret("PATRONI_SUPERUSER_PASSWORD", superuser),
            _secret("PATRONI_REPLICATION_PASSWORD", replication),
            _secret("PATRONI_REWIND_PASSWORD", replication),
            _secret("APPLICATION_PASSWORD", application),
        ],
        "ports": [
            {"name": "postgresql", "containerPort": POSTGRES_PORT},
            {"name": "patroni", "containerPort": PATRONI_PORT},
        ],
        "startupProbe": _probe("/liveness", period=1, failures=300),
        "livenessProbe": _probe("/liveness", period=10, failures=6),
        "readinessProbe": _probe("/readiness", period=2, failures=2),
        "volumeMounts": [
            {"name": "data", "mountPath": DATA},
            {"name": "configuration", "mountPath": DIRECTORY, "readOnly": True},
            {"name": "temporary", "mountPath": _TEMPORARY},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }


def volumes(config_map: str) -> list[dict[str, Any]]:
    """Return the volumes of a member beside its claim."""
    return [
        {"name": "configuration", "configMap": {"name": config_map}},
        {"name": "temporary", "emptyDir": {}},
    ]


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _value(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value}


def _secret(name: str, secret: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": "password"}}}


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    request = {"path": path, "port": "patroni"}
    return {"httpGet": request, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
