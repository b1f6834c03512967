"""What the servers of both kinds share: port, environment and probes."""

from __future__ import annotations

from hashlib import sha256

from konverge_operators.manifests import Json

__all__ = ["OPERATOR", "PORT", "digest", "probes", "variables"]

OPERATOR = "redis-operator"
PORT = 6379


def variables(secret: str) -> list[Json]:
    """Return the environment of a server: its address, and the password of a Secret, where redis-cli looks for it."""
    password = {"secretKeyRef": {"name": secret, "key": "password"}}
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [{"name": "REDISCLI_AUTH", "valueFrom": password}, {"name": "POD_IP", "valueFrom": address}]


def digest(password: str) -> str:
    """Return the hash by which servers know a password."""
    return sha256(password.encode()).hexdigest()


def probes(*, startup_seconds: int = 60, password_file: str = "") -> Json:
    """Return the probes of a server: it must answer a command. One that refuses it is not ready, but alive.

    The password is that of REDISCLI_AUTH, or of a file, which may change.
    """
    ping = 'redis-cli -h "$POD_IP" ping'
    if password_file:
        ping = f'REDISCLI_AUTH="$(cat {password_file})" {ping}'
    ready, alive = (
        {"exec": {"command": ["sh", "-c", test]}, "timeoutSeconds": 5}
        for test in (f'test "$({ping})" = PONG', f'test -n "$({ping})"')
    )
    return {
        "startupProbe": {**ready, "periodSeconds": 1, "failureThreshold": startup_seconds},
        "readinessProbe": {**ready, "periodSeconds": 5},
        "livenessProbe": {**alive, "periodSeconds": 10, "failureThreshold": 6},
    }
