"""Parsing of resource paths.

/api/v1/...                      the core group
/apis/<group>/<version>/...      every other group
.../<plural>                     a collection, of all namespaces or of a cluster-scoped kind
.../namespaces/<ns>/<plural>/<name>/<subresource>
.../watch/...                    a watch of the same: the deprecated form, older than the parameter `watch`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Route", "route"]

_NAMESPACE_PARTS: Final = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Route:
    """A parsed resource path. `rest` is the part after the subresource."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    watch: bool = False


def route(path: str) -> Route | None:
    """Parse a path; return None when it is not a resource path."""
    parts = path.split("/")
    if parts[-1] == "" and len(parts) > 2:
        parts.pop()
    if len(parts) < 4 or parts[0]:
        return None
    if parts[1] == "api":
        group, version, rest = "", parts[2], parts[3:]
    elif parts[1] == "apis" and len(parts) > 4:
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_PARTS:
        namespace, rest = rest[1], rest[2:]
    name, subresource = [*rest[1:3], "", ""][:2]
    return Route(group, version, rest[0], namespace, name, subresource, "/".join(rest[3:]), watch)
