"""Faults on the way to an API server, as values: what happens to which requests, and a log of all requests.

A `FaultScript` lists the faults. `FaultTransport` applies it without a socket, in virtual time too;
`konverge.testing.fault_proxy` applies the same script between a client and a server.

    script.add(watches("configmaps"), connection_reset(after=100), times=1)
    with script.active(lists("widgets"), status_response(503)):
        ...
    assert len(script.requests(watches("configmaps"))) == 2
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from konverge.wire.messages import Request

__all__ = [
    "End",
    "Fault",
    "FaultScript",
    "RecordedRequest",
    "RequestMatcher",
    "Rule",
    "any_request",
    "connection_refused",
    "connection_reset",
    "extra_data",
    "forbidden",
    "lists",
    "status_response",
    "stream_closed",
    "stream_paused",
    "watches",
]


class End(Enum):
    """How a body ends: as the server ends it, cleanly where it was truncated, by a reset, or not at all."""

    UPSTREAM = "upstream"
    CLEAN = "clean"
    RESET = "reset"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request, in the order of the fields.

    It waits for `delay`. With `refused`, the connection is closed without a response; with `status`, the response has
    that status, `headers` and `body`, and the request does not reach the server. Of the response body, `rewrite`
    changes each chunk, `before` comes first, `keep` bytes follow (None: all), `after` comes last, and the body ends as
    `end` specifies.
    """

    delay: float = 0.0
    refused: bool = False
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    rewrite: Callable[[bytes], bytes] | None = None
    before: bytes = b""
    keep: int | None = None
    after: bytes = b""
    end: End = End.UPSTREAM


NO_FAULT = Fault()


def connection_refused() -> Fault:
    """Close the connection without a response."""
    return Fault(refused=True)


def status_response(
    status: int,
    body: bytes | None = None,
    *,
    reason: str = "",
    message: str = "injected",
    details: Mapping[str, Any] | None = None,
) -> Fault:
    """Respond in place of the server: with `body`, or else with a Status object."""
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    document |= {"reason": reason, "message": message, "details": details or {}}
    content = json.dumps(document).encode() if body is None else body
    return Fault(status=status, headers={"content-type": "application/json"}, body=content)


def forbidden(permission: str, *, user: str = "operator") -> Fault:
    """Respond 403 as RBAC does; `permission` is a verb and a resource: "list widgets.example.com"."""
    verb, _, resource = permission.partition(" ")
    plural, _, group = resource.partition(".")
    message = (
        f'{resource} is forbidden: User "{user}" cannot {verb} resource "{plural}" in API group "{group}"'
        " at the cluster scope"
    )
    return status_response(403, reason="Forbidden", message=message)


def connection_reset(*, after: int = 0) -> Fault:
    """Reset the connection after so many bytes of the body."""
    return Fault(keep=after, end=End.RESET)


def stream_closed(*, after: int = 0) -> Fault:
    """End the body cleanly after so many bytes of it."""
    return Fault(keep=after, end=End.CLEAN)


def stream_paused(*, after: int = 0) -> Fault:
    """Send nothing after so many bytes of the body, and leave the connection open."""
    return Fault(keep=after, end=End.PAUSED)


def extra_data(data: bytes, *, after: int = 0, end: End = End.CLEAN) -> Fault:
    """Send bytes that the server never sent after so many of its own, and end the body."""
    return Fault(keep=after, after=data, end=end)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request: the time by the loop's clock, the request, and its connection (0 without sockets)."""

    time: float
    method: str
    path: str
    query: Mapping[str, str]
    connection: int = 0

    @classmethod
    def of(cls, request: Request, *, connection: int = 0) -> RecordedRequest:
        time = asyncio.get_running_loop().time()
        return cls(time, request.method, request.path, dict(request.query), connection)

    @property
    def watches(self) -> bool:
        return self.query.get("watch") in ("true", "1")

    @property
    def collection(self) -> str:
        """The last part of the path: the plural, when the request is for a collection."""
        return self.path.rpartition("/")[2]


RequestMatcher: TypeAlias = Callable[[RecordedRequest], bool]


def any_request(_: RecordedRequest) -> bool:
    """Match every request."""
    return True


def watches(plural: str = "") -> RequestMatcher:
    """Match watches of that collection, or of any; a streaming list is a watch too."""
    return lambda request: request.watches and plural in ("", request.collection)


def lists(plural: str = "") -> RequestMatcher:
    """Match lists of that collection, or of any, page by page."""
    return lambda request: request.method == "GET" and not request.watches and plural in ("", request.collection)


@dataclass(eq=False, slots=True)
class Rule:
    """A fault for the requests that `when` matches; `times` counts down, None means until the rule is removed."""

    when: RequestMatcher
    fault: Fault
    times: int | None


class FaultScript:
    """The faults to inject, and a log of all requests.

    Promises: of the rules that match a request the one added first is used; a rule is used as often as it specifies.
    """

    def __init__(self) -> None:
        self.log: list[RecordedRequest] = []
        self._rules: list[Rule] = []

    def add(self, when: RequestMatcher, fault: Fault, *, times: int | None = None) -> Rule:
        """Inject a fault so many times, or until the rule is removed."""
        rule = Rule(when, fault, times)
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule; do nothing when it is used up."""
        self._rules = [other for other in self._rules if other is not rule]

    def clear(self) -> None:
        """Remove every rule."""
        self._rules = []

    @contextmanager
    def active(self, when: RequestMatcher, fault: Fault) -> Iterator[None]:
        """Inject a fault every time while the block runs."""
        rule = self.add(when, fault)
        try:
            yield
        finally:
            self.remove(rule)

    def requests(self, when: RequestMatcher = any_request, *, since: float = 0.0) -> list[RecordedRequest]:
        """Return the matching requests since a time."""
        return [request for request in self.log if request.time >= since and when(request)]

    def choose(self, request: RecordedRequest) -> Fault:
        """Log a request and return the fault for it."""
        self.log.append(request)
        rule = next((rule for rule in self._rules if rule.when(request)), None)
        if rule is None:
            return NO_FAULT
        if rule.times is not None:
            rule.times -= 1
            if rule.times <= 0:
                self.remove(rule)
        return rule.fault
