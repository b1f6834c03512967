"""Where things are: the URL paths of collections, objects and subresources.

Rules that hold here:

1. Paths are built unescaped, as `Request.path` wants them; `target` escapes path and query, once, on the way out.
2. No name can leave its place: one that is empty, ".", "..", or has a slash in it is refused.
3. Scope is checked here: an object of a namespaced kind needs a namespace, one of a cluster-scoped kind has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from konverge.objects.keys import Key
from konverge.objects.kinds import Kind

__all__ = ["collection_path", "group_path", "object_path", "target"]

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~:-]*")


def group_path(group: str, version: str) -> str:
    """Give the path below which a group's version is served: `/apis/apps/v1`, `/api/v1` for the core group."""
    if group:
        return f"/apis/{_segment('group', group)}/{_segment('version', version)}"
    return f"/api/{_segment('version', version)}"


def collection_path(kind: Kind, namespace: str = "") -> str:
    """Give the path of all objects of a kind: in one namespace, or in all when `namespace` is "".

    Raises: ValueError when the kind is cluster-scoped and a namespace is given.
    """
    root = group_path(kind.group, kind.version)
    plural = _segment("plural", kind.plural)
    if not namespace:
        return f"{root}/{plural}"
    if not kind.namespaced:
        raise ValueError(f"{kind.kind} is cluster-scoped: leave out the namespace {namespace!r}")
    return f"{root}/namespaces/{_segment('namespace', namespace)}/{plural}"


def object_path(kind: Kind, key: Key, *, subresource: str = "") -> str:
    """Give the path of one object, or of one of its subresources: `.../deployments/web/scale`.

    Raises: ValueError when the key does not fit the kind's scope, or a part of it cannot be part of a path.
    """
    if kind.namespaced and not key.namespace:
        raise ValueError(f"{kind.kind} {key.name} needs a namespace: it is a namespaced kind")
    path = f"{collection_path(kind, key.namespace)}/{_segment('name', key.name)}"
    return f"{path}/{_segment('subresource', subresource)}" if subresource else path


def target(path: str, query: Iterable[tuple[str, str]] = ()) -> str:
    """Escape path and query as they stand in the first line of an HTTP request."""
    escaped = path if _PLAIN_PATH.fullmatch(path) else quote(path, safe="/:")
    asked = urlencode(tuple(query), quote_via=quote, safe=":")
    return f"{escaped}?{asked}" if asked else escaped


def _segment(what: str, text: str) -> str:
    if not text:
        raise ValueError(f"the {what} is empty")
    if not isinstance(text, str):
        raise TypeError(f"the {what} is a str, got {text!r:.100}")
    if what == "name" and "/" in text:
        raise ValueError(f"{text!r} cannot be a name: write Key.parse({text!r}), or give the namespace by itself")
    if "/" in text or text in (".", ".."):
        raise ValueError(f"{text!r} cannot be a {what}: it would point to another place")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{text!r} cannot be a {what}: it has half of a surrogate pair in it")
    return text
