"""The Secret with the connection of clients, which both kinds have: its password is generated once."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from konverge import Context
from konverge.k8s.core.v1 import Secret
from konverge.workflow import Waiting
from konverge_operators.manifests import child
from konverge_operators.redis.servers import PORT

__all__ = ["connection_secret", "generate_password", "secret_for"]


def generate_password() -> str:
    """Return a new password."""
    return secrets.token_urlsafe(24)


def secret_for(name: str, labels: dict[str, str], password: str) -> Secret:
    """Return the Secret with the connection to the Service of a name: the keys of servicebinding.io."""
    values = {"type": "redis", "host": name, "port": str(PORT), "username": "default", "database": "0"}
    uri = f"redis://default:{password}@{name}:{PORT}/0"
    return child(Secret, name, labels, stringData={**values, "password": password, "uri": uri})


async def connection_secret(ctx: Context, name: str, known: str, new: Callable[[], Secret]) -> Secret:
    """Return the Secret with the connection; create it unless it is known from before.

    A lost one is reported: another password would lock out the clients that still know the old one.

    Raises: Waiting when it was deleted, or has no password.
    """
    secret = await ctx.get(Secret, name) if known else await ctx.create_once(new())
    if secret is None:
        raise Waiting("SecretMissing", f"Secret {name} was deleted: restore it, with the key password")
    if not secret.data.get("password"):
        raise Waiting("PasswordMissing", f"Secret {name} has no key password")
    return secret
