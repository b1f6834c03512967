"""Fields of the children that others have set: the condition ForeignFields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from konverge import Context, Key
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Service
from konverge_operators.database.api import Database
from konverge_operators.database.names import read_only_service, read_write_service

__all__ = ["ForeignFields"]

_SHOWN: Final = 5
_Versions: TypeAlias = list[tuple[str, int | str | None]]


class ForeignFields:
    """Sets the condition of databases. It reads the children again only after one of them has changed."""

    def __init__(self) -> None:
        self._found: dict[Key, tuple[_Versions, list[str]]] = {}

    async def report(self, database: Database, ctx: Context) -> None:
        """Set the condition ForeignFields: what other managers have added to the specs of the children."""
        found = await self._find(database, ctx)
        hidden = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        reason = "ForeignFields" if found else "NoForeignFields"
        ctx.condition(database, "ForeignFields", bool(found), reason=reason, message=", ".join(found[:_SHOWN]) + hidden)

    def forget(self, key: Key) -> None:
        self._found.pop(key, None)

    async def _find(self, database: Database, ctx: Context) -> list[str]:
        children = await _children(database, ctx)
        versions = [(one.uid, one.metadata.generation or one.metadata.resource_version) for one in children]
        known = self._found.get(database.key)
        if known is not None and known[0] == versions:
            return known[1]
        found = [line for child in children for line in await _foreign_fields(child, ctx)]
        self._found[database.key] = versions, found
        return found


async def _children(database: Database, ctx: Context) -> Sequence[StatefulSet | Service]:
    names = (database.name, read_write_service(database), read_only_service(database))
    services = [await ctx.get(Service, name) for name in names]
    return [one for one in (await ctx.get(StatefulSet, database.name), *services) if one is not None]


async def _foreign_fields(child: StatefulSet | Service, ctx: Context) -> list[str]:
    """Return a line for each field of the spec that another manager alone has set."""
    fields = await ctx.foreign_fields(child)
    own = [one for one in fields if not one.shared and one.path.startswith(".spec.")]
    lines = [f"{child.kind} {child.name} {_shortened(one.path)} by {one.manager}" for one in own]
    return list(dict.fromkeys(lines))


def _shortened(path: str) -> str:
    """Return the item of a list that a field belongs to, without the field: one line for a container, not ten."""
    return path[: path.rindex("]") + 1] if "]" in path else path
