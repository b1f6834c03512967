"""Whether an object was changed, and in which fields, by their wire paths; values stay untold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec

__all__ = ["changed_fields", "content_and_status"]

_BOOKKEEPING: Final = ("resourceVersion", "generation", "managedFields", "creationTimestamp", "uid")
_NAME: Final = re.compile(r"[A-Za-z0-9_$-]+")
_ABSENT: Final[Any] = object()

_NULL: Final = msgspec.Raw(b"null")

_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_plain = msgspec.json.Decoder().decode
_steady = msgspec.json.Encoder(order="deterministic").encode


def changed_fields(old: bytes, new: bytes) -> list[str]:
    """Give the paths at which two states of an object differ, status and what the server keeps in metadata aside.

    `.spec.replicas`, `.metadata.annotations["example.com/mode"]`, `.spec.template.spec.containers[0].image`. Lists of
    another length differ as a whole.
    """
    return list(_paths("", _content(old), _content(new)))


def content_and_status(document: bytes) -> tuple[bytes, bytes]:
    """Give short hashes of an object without status and what the server keeps in metadata, and of its status."""
    parts = _parts(document)
    status = parts.pop("status", _NULL)
    metadata = _parts(parts.pop("metadata"))
    found = blake2b(digest_size=16)
    # Raw: a server writes the same values as the same bytes.
    for name, value in (*metadata.items(), *parts.items()):
        if name not in _BOOKKEEPING:
            found.update(name.encode())
            found.update(value)
    return found.digest(), blake2b(status, digest_size=16).digest()


def _content(document: bytes) -> dict[str, Any]:
    content: dict[str, Any] = _plain(document)
    content.pop("status", None)
    metadata = content.get("metadata", {})
    content["metadata"] = {name: value for name, value in metadata.items() if name not in _BOOKKEEPING}
    return content


def _paths(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            yield from _paths(path + _step(name), old.get(name, _ABSENT), new.get(name, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _paths(f"{path}[{place}]", one, other)
    elif old is _ABSENT or new is _ABSENT or _steady(old) != _steady(new):  # written again: in Python 1 == True
        yield path


def _step(name: str) -> str:
    return f".{name}" if _NAME.fullmatch(name) else f'["{name}"]'
