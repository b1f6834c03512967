"""The audit log of a real API server, read while it grows: users, requests and times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

__all__ = ["Audit", "Request"]

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Request(msgspec.Struct, frozen=True):
    """A request whose response is complete, or a watch whose response has started."""

    user: str
    verb: str
    resource: str
    name: str
    code: int
    received: float
    responded: float

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES and self.resource not in ("selfsubjectaccessreviews", "selfsubjectrulesreviews")


class _User(msgspec.Struct):
    username: str = ""


class _ObjectRef(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _ResponseStatus(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    user: _User
    request_received_timestamp: str
    stage_timestamp: str
    object_ref: _ObjectRef = msgspec.field(default_factory=_ObjectRef)
    response_status: _ResponseStatus = msgspec.field(default_factory=_ResponseStatus)


_decode = msgspec.json.Decoder(_Line).decode


class Audit:
    """The requests of one log since the last `clear`, in the order of their responses.

    A watch counts once, when it starts.
    """

    def __init__(self, log: Path) -> None:
        self._file = log.open("rb")
        self._partial_line = b""
        self.requests: list[Request] = []

    def read(self) -> None:
        """Read new lines."""
        *lines, self._partial_line = (self._partial_line + self._file.read()).split(b"\n")
        self.requests += (_request(line) for line in map(_decode, lines) if _counts(line))

    def clear(self) -> None:
        """Discard all requests so far."""
        self.read()
        self.requests.clear()

    def of(self, user: str, *, since: float = 0.0, until: float = float("inf")) -> list[Request]:
        """Return the requests of a user that the server received in a period."""
        return [one for one in self.requests if one.user == user and since <= one.received < until]

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *error: object) -> None:
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
        responded=_seconds(line.stage_timestamp),
    )


def _named(subject: _ObjectRef) -> Iterator[str]:
    yield subject.resource
    if subject.subresource:
        yield subject.subresource


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
