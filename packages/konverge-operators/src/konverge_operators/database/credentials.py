"""The credentials of a Database: three Secrets that are created once, and never generated again.

Rules that hold here:

1. A Secret is created only before there is any data: neither the status says that the credentials were created, nor
   does a StatefulSet or a claim exist. Afterwards a missing Secret is reported; a new password would not be that of the
   data.
2. The status says so before anything else is created.
3. The Secrets have no owner: they outlive the object together with the claims, unless the policy is Delete.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from konverge import Context, NotFound
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Secret
from konverge_operators.database.api import Database
from konverge_operators.database.engine import Engine, Login
from konverge_operators.database.names import labels_of, read_write_service, secrets_of, selector_of
from konverge_operators.manifests import child

__all__ = ["create_credentials", "find_secret", "find_secrets", "foreign_secret", "new_password"]


def new_password() -> str:
    return secrets.token_urlsafe(24)


async def create_credentials(database: Database, ctx: Context, engine: Engine) -> Database:
    """Create the Secrets of a database without data, and record it; return the database as it is stored then."""
    if database.status.credentials_created or await _has_data(database, ctx):
        return database
    names, usernames = secrets_of(database), engine.usernames(database)
    application = Login(usernames["application"], new_password())
    await _create(database, ctx, names.superuser, _content(usernames["superuser"]))
    await _create(database, ctx, names.replication, _content(usernames["replication"]))
    connection = engine.connection(database, read_write_service(database), application)
    await _create(database, ctx, names.application, connection)
    database.status.credentials_created = True
    ctx.event("CredentialsCreated", f"the connection is in the Secret {names.application}", action="Create")
    return await ctx.update_status(database)


async def find_secrets(database: Database, ctx: Context) -> dict[str, Secret | None]:
    """Return the Secrets by name, None for one that does not exist."""
    names = secrets_of(database)
    wanted = (names.superuser, names.replication, names.application)
    return {name: await find_secret(database, ctx, name) for name in wanted}


def foreign_secret(database: Database, engine: Engine, found: Mapping[str, Secret | None]) -> str:
    """Return why the Secrets cannot be those of this database, or "": data of another engine may have been retained."""
    name = secrets_of(database).application
    secret = found[name]
    kind = (secret.data or {}).get("type", b"").decode(errors="replace") if secret is not None else ""
    own = engine.connection(database, read_write_service(database), Login("", ""))["type"]
    if kind in ("", own):
        return ""
    return f"the Secret {name} is that of data of {kind}: use another name, or delete it with its claims"


async def find_secret(database: Database, ctx: Context, name: str) -> Secret | None:
    """Return a Secret from the server, or None."""
    try:
        return await ctx.client.get(Secret, name, namespace=database.namespace)
    except NotFound:
        return None


async def _has_data(database: Database, ctx: Context) -> bool:
    """Report whether members may have data, with a StatefulSet or a claim as the sign; the server decides."""
    labels = ",".join(f"{name}={value}" for name, value in selector_of(database).items())
    sets = await ctx.client.list(StatefulSet, namespace=database.namespace, labels=labels)
    claims = await ctx.client.list(PersistentVolumeClaim, namespace=database.namespace, labels=labels)
    return bool(len(sets) or len(claims))


def _content(username: str) -> dict[str, str]:
    return {"username": username, "password": new_password()}


async def _create(database: Database, ctx: Context, name: str, content: dict[str, str]) -> None:
    secret = child(Secret, name, labels_of(database), stringData=content)
    secret.metadata.namespace = database.namespace
    await ctx.create_once(secret, owned=False)
