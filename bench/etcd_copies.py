"""Copies of stored objects, written to etcd directly: tens of thousands per minute, where creating takes half an hour.

A copy is the stored object with another name, uid and container ids of the same length, so that the result is valid in
JSON and in protobuf. An API server returns copies like objects that it stored itself.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator
from random import Random

from konverge.testing import ControlPlane

__all__ = ["copy_stored"]

_STORED = {"widgets": b"/registry/bench.example.com/widgets/", "pods": b"/registry/pods/"}
_PAGE = 200
_BATCH = 50
_NAME = re.compile(rb"item-(?=\d)")
_UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_CONTAINER = re.compile(rb"(?<=containerd://)[0-9a-f]{64}")

Stored = tuple[bytes, bytes]


def copy_stored(plane: ControlPlane, what: str, count: int) -> None:
    """Add `count` copies of the objects that `load` stored, up to nine of each object."""
    random = Random(count)
    copies = (_copy(one, number, random) for number in range(1, 10) for one in _stored(plane, _STORED[what]))
    remaining = itertools.islice(copies, count)
    while batch := list(itertools.islice(remaining, _BATCH)):
        puts = [{"requestPut": {"key": _text(key), "value": _text(value)}} for key, value in batch]
        plane.call_etcd("kv/txn", {"success": puts})


def _stored(plane: ControlPlane, prefix: bytes) -> Iterator[Stored]:
    begin, end = prefix, prefix[:-1] + bytes([prefix[-1] + 1])
    while True:
        request = {"key": _text(begin), "range_end": _text(end), "limit": _PAGE}
        page = plane.call_etcd("kv/range", request).get("kvs", [])
        for one in page:
            begin = base64.b64decode(one["key"]) + b"\0"
            if _NAME.search(begin):
                yield begin[:-1], base64.b64decode(one["value"])
        if not page:
            return


def _copy(one: Stored, number: int, random: Random) -> Stored:
    key, value = (_NAME.sub(b"it%dm-" % number, text) for text in one)
    value = _UID.sub(lambda _: _uid(random), value)
    return key, _CONTAINER.sub(lambda _: random.randbytes(32).hex().encode(), value)


def _uid(random: Random) -> bytes:
    text = random.randbytes(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}".encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
