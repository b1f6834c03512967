"""Password rotation: a second login becomes valid, the Secret changes to it, and the first one is deleted later.

The Secret `<name>-app-next` has the new login from the first step on, so that a crash continues with the same password.
Two logins take turns; both are valid for `OVERLAP`, so that applications can read the Secret again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from konverge import Context
from konverge.k8s.core.v1 import Secret
from konverge_operators.database.api import Database, Rotation
from konverge_operators.database.credentials import find_secret, new_password
from konverge_operators.database.engine import Engine, Login, Target
from konverge_operators.database.names import (
    ROTATE_PASSWORD,
    labels_of,
    next_secret,
    read_write_service,
    secrets_of,
)
from konverge_operators.manifests import child

__all__ = ["OVERLAP", "rotate_password"]

OVERLAP: Final = timedelta(minutes=10)
"""For how long the old login stays valid."""


async def rotate_password(database: Database, ctx: Context, engine: Engine, target: Target, now: datetime) -> Database:
    """Go on with a rotation, if one was requested; return the database as it is stored then."""
    rotation, request = database.status.rotation, database.metadata.annotations.get(ROTATE_PASSWORD, "")
    if rotation.replaced:
        if rotation.since is None or now - rotation.since < OVERLAP:
            return database
        await engine.delete_login(target, rotation.replaced)
        ctx.event("LoginDeleted", f"{rotation.replaced} cannot log in any more", action="RotatePassword")
        if (stored := await find_secret(database, ctx, next_secret(database))) is not None:
            await ctx.delete(stored)  # or the next rotation would find it
        rotation.replaced, rotation.since = "", None
        return await ctx.update_status(database)
    if request and request != rotation.request:
        return await _replace_login(database, ctx, engine, target, now)
    return database


async def _replace_login(database: Database, ctx: Context, engine: Engine, target: Target, now: datetime) -> Database:
    names, usernames = secrets_of(database), engine.usernames(database)
    current = _login_of(await find_secret(database, ctx, names.application))
    pair = usernames["application"], usernames["alternate"]
    other = pair[0] if current.username == pair[1] else pair[1]
    content = {"username": other, "password": new_password()}
    stored = await ctx.create_once(child(Secret, next_secret(database), labels_of(database), stringData=content))
    login = _login_of(stored)
    if current != login:
        await engine.set_login(target, login)
        connection = engine.connection(database, read_write_service(database), login)
        await ctx.client.patch(Secret, names.application, {"stringData": connection}, namespace=database.namespace)
        ctx.event("PasswordRotated", f"{names.application} has a new login, {login.username}", action="RotatePassword")
    replaced = pair[0] if login.username == pair[1] else pair[1]
    request = database.metadata.annotations.get(ROTATE_PASSWORD, "")
    database.status.rotation = Rotation(request=request, replaced=replaced, since=now)
    database = await ctx.update_status(database)
    await ctx.delete(stored)
    return database


def _login_of(secret: Secret | None) -> Login:
    data = secret.data if secret is not None else {}
    return Login(data.get("username", b"").decode(), data.get("password", b"").decode())
