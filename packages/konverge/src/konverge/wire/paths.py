"""The URL paths of collections, objects and subresources.

Rules:

1. Paths are unescaped, as in `Request.path`; `request_target` escapes path and query, once, when a request is sent.
2. A name is one path segment: an empty one, ".", ".." or one with a slash raises ValueError.
3. The scope is checked: an object of a namespaced kind needs a namespace, one of a cluster-scoped kind has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, urlencode

from konverge.objects.keys import Key
from konverge.objects.kinds import Kind

__all__ = ["collection_path", "group_path", "object_path", "request_target"]

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~:-]*")


def group_path(group: str, version: str) -> str:
    """Return the path of a version of an API group: `/apis/apps/v1`, `/api/v1` for the core group."""
    if group:
        return f"/apis/{_segment('group', group)}/{_segment('version', version)}"
    return f"/api/{_segment('version', version)}"


def collection_path(kind: Kind, namespace: str = "") -> str:
    """Return the path of a collection: in one namespace, or in all if `namespace` is "".

    Raises: ValueError when the kind is cluster-scoped and a namespace is given.
    """
    root, plural = _segments_of(kind)
    if not namespace:
        return f"{root}/{plural}"
    if not kind.namespaced:
        raise ValueError(f"{kind.kind} is cluster-scoped (leave out the namespace {namespace!r})")
    return f"{root}/namespaces/{_segment('namespace', namespace)}/{plural}"


def object_path(kind: Kind, key: Key, *, subresource: str = "") -> str:
    """Return the path of an object, or of one of its subresources: `.../deployments/web/scale`.

    Raises: ValueError when the key does not match the scope of the kind, or a part of it is not a path segment.
    """
    if kind.namespaced and not key.namespace:
        raise ValueError(f"{kind.kind} {key.name} needs a namespace: the kind is namespaced")
    path = f"{collection_path(kind, key.namespace)}/{_segment('name', key.name)}"
    return f"{path}/{_segment('subresource', subresource)}" if subresource else path


def request_target(path: str, query: Iterable[tuple[str, str]] = ()) -> str:
    """Return the escaped path and query for the first line of an HTTP request (the request target of RFC 9112)."""
    escaped = path if _PLAIN_PATH.fullmatch(path) else quote(path, safe="/:")
    encoded = _encode_query(tuple(query))
    return f"{escaped}?{encoded}" if encoded else escaped


@lru_cache(maxsize=256)  # most requests of an operator have one of a few queries
def _encode_query(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query, quote_via=quote, safe=":")


@lru_cache(maxsize=256)
def _segments_of(kind: Kind) -> tuple[str, str]:
    return group_path(kind.group, kind.version), _segment("plural", kind.plural)


def _segment(what: str, text: str) -> str:
    if not text:
        raise ValueError(f"the {what} is empty")
    if not isinstance(text, str):
        raise TypeError(f"the {what} must be a str, got {text!r:.100}")
    if what == "name" and "/" in text:
        raise ValueError(f"{text!r} is not a name (write Key.parse({text!r}), or pass the namespace separately)")
    if "/" in text or text in (".", ".."):
        raise ValueError(f"{text!r} is not a valid {what}: it would change the path")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{text!r} is not a valid {what}: it contains half of a surrogate pair")
    return text
