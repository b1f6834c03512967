"""Comparison of two states of an object: which fields differ, by their wire paths. Values are never returned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec

__all__ = ["changed_fields", "hash_content_and_status", "path_step"]

_SYSTEM_FIELDS: Final = ("resourceVersion", "generation", "managedFields", "creationTimestamp", "uid")
_NAME: Final = re.compile(r"[A-Za-z0-9_$-]+")
_ABSENT: Final[Any] = object()

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="deterministic").encode


def changed_fields(old: bytes | dict[str, Any], new: bytes | dict[str, Any]) -> list[str]:
    """Return the paths at which two states of an object differ, except for status and the server's own metadata.

    The states are JSON, or JSON values.

    Examples: `.spec.replicas`, `.metadata.annotations["example.com/mode"]`, `.spec.containers[0].image`. Lists of
    different lengths differ as a whole.
    """
    return list(_paths("", _content(old), _content(new)))


def hash_content_and_status(document: bytes | dict[str, Any]) -> tuple[bytes, bytes]:
    """Return a short hash of an object without status and the server's own metadata, and one of its status."""
    values: dict[str, Any] = document if isinstance(document, dict) else _decode(document)
    content, status = _encode(_content(values)), _encode(values.get("status"))
    return blake2b(content, digest_size=16).digest(), blake2b(status, digest_size=16).digest()


def _content(document: bytes | dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = dict(document) if isinstance(document, dict) else _decode(document)
    content.pop("status", None)
    metadata = content.get("metadata", {})
    content["metadata"] = {name: value for name, value in metadata.items() if name not in _SYSTEM_FIELDS}
    return content


def _paths(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            yield from _paths(path + path_step(name), old.get(name, _ABSENT), new.get(name, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _paths(f"{path}[{index}]", one, other)
    elif old is _ABSENT or new is _ABSENT or _encode(old) != _encode(new):  # as JSON, since 1 == True in Python
        yield path


def path_step(name: str) -> str:
    """Return the name of a field as a step of a wire path: `.spec`, `["example.com/mode"]`."""
    return f".{name}" if _NAME.fullmatch(name) else f'["{name}"]'
