"""What the servers of both kinds share: port, environment and probes."""

from __future__ import annotations

from konverge_operators.manifests import Json

__all__ = ["OPERATOR", "PORT", "probes", "variables"]

OPERATOR = "redis-operator"
PORT = 6379


def variables(secret: str) -> list[Json]:
    """Return the environment of a server: its address, and the password of a Secret, where redis-cli looks for it."""
    password = {"secretKeyRef": {"name": secret, "key": "password"}}
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [{"name": "REDISCLI_AUTH", "valueFrom": password}, {"name": "POD_IP", "valueFrom": address}]


def probes(*, startup_seconds: int = 60) -> Json:
    """Return the probes of a server: it must answer a command, not only accept connections."""
    ping = {"exec": {"command": ["sh", "-c", 'test "$(redis-cli -h "$POD_IP" ping)" = PONG']}, "timeoutSeconds": 5}
    return {
        "startupProbe": {**ping, "periodSeconds": 1, "failureThreshold": startup_seconds},
        "readinessProbe": {**ping, "periodSeconds": 5},
        "livenessProbe": {**ping, "periodSeconds": 10, "failureThreshold": 6},
    }
