"""Who asked a real API server for what, and when: its audit log, read as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Audit", "Request"]

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Request(msgspec.Struct, frozen=True):
    """One request that was answered, or whose answer is a stream that began."""

    user: str
    verb: str
    resource: str
    name: str
    code: int
    received: float
    answered: float

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES and self.resource not in ("selfsubjectaccessreviews", "selfsubjectrulesreviews")


class _User(msgspec.Struct):
    username: str = ""


class _Subject(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Answer(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    user: _User
    request_received_timestamp: str
    stage_timestamp: str
    object_ref: _Subject = msgspec.field(default_factory=_Subject)
    response_status: _Answer = msgspec.field(default_factory=_Answer)


_decode = msgspec.json.Decoder(_Line).decode


class Audit:
    """The requests of one log since the last `forget`, in the order in which they were answered.

    A watch counts once, when it begins.
    """

    def __init__(self, log: Path) -> None:
        self._file = log.open("rb")
        self._rest = b""
        self.requests: list[Request] = []

    def read(self) -> None:
        """Take in what is new."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        self.requests += (_request(line) for line in map(_decode, lines) if _counts(line))

    def forget(self) -> None:
        """Begin anew: what was read so far is not of interest any more."""
        self.read()
        self.requests.clear()

    def of(self, user: str, *, since: float = 0.0, until: float = float("inf")) -> list[Request]:
        """Give what a user asked for in a time, by when the request was received."""
        return [one for one in self.requests if one.user == user and since <= one.received < until]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _counts(line: _Line) -> bool:
    return line.stage == ("ResponseStarted" if line.verb == "watch" else "ResponseComplete")


def _request(line: _Line) -> Request:
    subject = line.object_ref
    return Request(
        user=line.user.username,
        verb=line.verb,
        resource="/".join(_named(subject)),
        name=subject.name,
        code=line.response_status.code,
        received=_seconds(line.request_received_timestamp),
        answered=_seconds(line.stage_timestamp),
    )


def _named(subject: _Subject) -> Iterator[str]:
    yield subject.resource
    if subject.subresource:
        yield subject.subresource


def _seconds(moment: str) -> float:
    found: Any = datetime.fromisoformat(moment)
    return float(found.timestamp())
