"""Password rotation without a restart: all servers accept a new password before anyone uses it, and the old one after.

The Secret `<name>-servers` has what the servers accept. It is written before they are told, so a crash continues, and
a server that restarts reads it. A rotation has three stages: the new password is accepted beside the current one; once
all servers do that it is the current one, for clients too; the previous one is removed after `OVERLAP`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Final

from konverge import Context
from konverge.k8s.core.v1 import Secret
from konverge.objects import now
from konverge_operators.redis.cluster import children
from konverge_operators.redis.cluster.api import ROTATE_PASSWORD, ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.engine import Engine, Unreachable
from konverge_operators.redis.cluster.forming import Step
from konverge_operators.redis.cluster.views import View
from konverge_operators.redis.servers import digest

__all__ = ["OVERLAP", "Passwords", "ensure_passwords", "find_passwords", "next_passwords", "rotate", "set_passwords"]

OVERLAP: Final = timedelta(minutes=10)
"""For how long the previous password is accepted, so that clients can read the Secret again."""


@dataclass(frozen=True)
class Passwords:
    """The content of the Secret of the servers: `password` is what they use; `since` when `previous` was replaced.

    `request` is the last annotation that was followed.
    """

    password: str
    next: str = ""
    previous: str = ""
    since: str = ""
    request: str = ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """The passwords that every server accepts, the current one first."""
        return tuple(dict.fromkeys(one for one in (self.password, self.next, self.previous) if one))


def next_passwords(
    known: Passwords, connection: str, request: str, *, accepted: bool, time: datetime, generate: Callable[[], str]
) -> Passwords:
    """Return the passwords of the next stage; the same ones if there is nothing to do.

    `connection` is the password of clients: one that was changed by hand is followed. `accepted` is whether all servers
    accept the next one.
    """
    if connection not in (known.password, known.next):
        return replace(known, next=connection)
    if request and request != known.request and not known.next:
        return replace(known, next=generate(), request=request)
    if known.next and accepted:
        return replace(known, password=known.next, next="", previous=known.password, since=time.isoformat())
    if known.previous and not known.next and time - datetime.fromisoformat(known.since) >= OVERLAP:
        return replace(known, previous="", since="")
    return known


async def find_passwords(cluster: RedisCluster, ctx: Context) -> Passwords | None:
    """Return what the servers accept; None if that is not stored."""
    stored = await ctx.get(Secret, children.servers_secret(cluster.name))
    return _stored_passwords(stored) if stored is not None else None


async def ensure_passwords(cluster: RedisCluster, ctx: Context, connection: Secret) -> Passwords:
    """Store the password of the connection as the one that the servers accept, unless others are stored."""
    request = cluster.metadata.annotations.get(ROTATE_PASSWORD, "")
    first = Passwords(connection.data["password"].decode(), request=request)
    return _stored_passwords(await ctx.create_once(_secret_of(cluster, first))) or first


def _stored_passwords(secret: Secret) -> Passwords | None:
    """Return the passwords in a Secret; None if it has none: somebody else has written it."""
    names = [one.name for one in fields(Passwords)]
    found = Passwords(**{name: secret.data.get(name, b"").decode() for name in names})
    return found if found.password else None


async def set_passwords(view: View, engine: Engine, passwords: Passwords) -> bool:
    """Let the servers accept the passwords, and use the current one; return whether some did not yet."""
    wanted = frozenset(map(digest, passwords.accepted)), digest(passwords.password)
    behind = [node for node in view.nodes if (node.state.passwords, node.state.primary_password) != wanted]
    for node in behind:
        with suppress(Unreachable):  # it is asked again, and the next stage waits for it
            await engine.set_passwords(node.server, passwords.accepted, passwords.password)
    return bool(behind)


async def rotate(
    cluster: RedisCluster, ctx: Context, view: View, known: Passwords, connection: Secret, generate: Callable[[], str]
) -> Step | None:
    """Go on with a rotation by one stage; return what is under way."""
    request = cluster.metadata.annotations.get(ROTATE_PASSWORD, "")
    accepted = not view.unreachable and all(digest(known.next) in one.state.passwords for one in view.nodes)
    found = next_passwords(
        known, connection.data["password"].decode(), request, accepted=accepted, time=now(), generate=generate
    )
    if found.password != known.password:
        await _write(ctx, children.secret_for(cluster, found.password), connection.resource_version)
        ctx.event("PasswordRotated", f"Secret {connection.name} has a new password", action="RotatePassword")
    if found != known:
        await _write(ctx, _secret_of(cluster, found))
    if known.previous and not found.previous:
        ctx.event("PasswordRemoved", "the previous password is not accepted any more", action="RotatePassword")
    if found.next:
        return Step(ClusterPhase.UPDATING, "waiting until all servers accept the new password")
    return None


def _secret_of(cluster: RedisCluster, passwords: Passwords) -> Secret:
    return children.servers_secret_for(cluster, asdict(passwords), passwords.accepted)


async def _write(ctx: Context, secret: Secret, version: str | None = None) -> None:
    """Write a Secret that exists; only the version that was read, if that is given."""
    change = {"metadata": {"resourceVersion": version} if version else {}, "stringData": secret.string_data}
    await ctx.client.patch(Secret, secret.name, change, namespace=ctx.key.namespace)
