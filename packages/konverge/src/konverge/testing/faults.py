"""Faults on the way to an API server, as values: what happens to which requests, and a log of all of them.

A `FaultScript` says what goes wrong. `FaultyTransport` plays it without a socket, on virtual time too;
`konverge.testing.fault_proxy` plays the same script between a client and a server.

    script.add(watches("configmaps"), cut(after=100), times=1)
    with script.standing(lists("widgets"), answered(503)):
        ...
    assert len(script.asked(watches("configmaps"))) == 2
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
    "Asked",
    "Condition",
    "End",
    "Fault",
    "FaultScript",
    "Rule",
    "answered",
    "anything",
    "cut",
    "ended",
    "frozen",
    "injected",
    "lists",
    "refused",
    "refusing",
    "watches",
]


class End(Enum):
    """How a body ends: as the server ends it, in order where it was stopped, by a reset, or not at all."""

    ITS_OWN = "its own"
    CLEAN = "clean"
    CUT = "cut"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request, in the order of the fields.

    It waits for `delay`. When `refused`, the connection is closed without an answer; when `status` is set, it is
    answered with that status, `headers` and `body` and does not reach the server. Of the body that then comes,
    `rewrite` changes each piece, `before` comes first, only `keep` bytes come through (None: all), `after` comes last,
    and it ends as `end` says.
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
    end: End = End.ITS_OWN


NO_FAULT = Fault()


def refused() -> Fault:
    """Close the connection without an answer."""
    return Fault(refused=True)


def answered(
    status: int,
    body: bytes | None = None,
    *,
    reason: str = "",
    message: str = "injected",
    details: Mapping[str, Any] | None = None,
) -> Fault:
    """Answer in the server's place: with `body`, or else with a Status."""
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    document |= {"reason": reason, "message": message, "details": details or {}}
    said = json.dumps(document).encode() if body is None else body
    return Fault(status=status, headers={"content-type": "application/json"}, body=said)


def refusing(right: str, *, user: str = "operator") -> Fault:
    """Answer 403 as RBAC does; `right` is a verb and a resource: "list widgets.example.com"."""
    verb, _, resource = right.partition(" ")
    plural, _, group = resource.partition(".")
    said = (
        f'{resource} is forbidden: User "{user}" cannot {verb} resource "{plural}" in API group "{group}"'
        " at the cluster scope"
    )
    return answered(403, reason="Forbidden", message=said)


def cut(*, after: int = 0) -> Fault:
    """Break the connection off after so many bytes of the body."""
    return Fault(keep=after, end=End.CUT)


def ended(*, after: int = 0) -> Fault:
    """End the body in order after so many bytes of it."""
    return Fault(keep=after, end=End.CLEAN)


def frozen(*, after: int = 0) -> Fault:
    """Let nothing through after so many bytes of the body, and leave the connection open."""
    return Fault(keep=after, end=End.FROZEN)


def injected(data: bytes, *, after: int = 0, end: End = End.CLEAN) -> Fault:
    """Write bytes that the server never sent after so many of its own, and end the body."""
    return Fault(keep=after, after=data, end=end)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it was seen: when (by the loop's clock), what, and on which connection (0 without sockets)."""

    time: float
    method: str
    path: str
    query: Mapping[str, str]
    connection: int = 0

    @classmethod
    def of(cls, request: Request, *, connection: int = 0) -> Asked:
        time = asyncio.get_running_loop().time()
        return cls(time, request.method, request.path, dict(request.query), connection)

    @property
    def watches(self) -> bool:
        return self.query.get("watch") in ("true", "1")

    @property
    def collection(self) -> str:
        """The last part of the path: the plural, where a collection is asked for."""
        return self.path.rpartition("/")[2]


Condition: TypeAlias = Callable[[Asked], bool]


def anything(_: Asked) -> bool:
    """Any request at all."""
    return True


def watches(plural: str = "") -> Condition:
    """Watches of that collection, or of any; a list that is asked for as a stream is one too."""
    return lambda asked: asked.watches and plural in ("", asked.collection)


def lists(plural: str = "") -> Condition:
    """Lists of that collection, or of any, page by page."""
    return lambda asked: asked.method == "GET" and not asked.watches and plural in ("", asked.collection)


@dataclass(eq=False, slots=True)
class Rule:
    """A fault for the requests that a condition holds for; `times` counts down, None stands until it is removed."""

    when: Condition
    fault: Fault
    times: int | None


class FaultScript:
    """What goes wrong, and all that was asked.

    Promises: of the rules that hold for a request the one added first is used; a rule is used as often as it says.
    """

    def __init__(self) -> None:
        self.log: list[Asked] = []
        self._rules: list[Rule] = []

    def add(self, when: Condition, fault: Fault, *, times: int | None = None) -> Rule:
        """Have something go wrong so many times, or until the rule is removed."""
        rule = Rule(when, fault, times)
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Take a rule back; one that is used up is gone already."""
        self._rules = [kept for kept in self._rules if kept is not rule]

    def clear(self) -> None:
        """Take every rule back."""
        self._rules = []

    @contextmanager
    def standing(self, when: Condition, fault: Fault) -> Iterator[None]:
        """Have something go wrong every time while the block runs."""
        rule = self.add(when, fault)
        try:
            yield
        finally:
            self.remove(rule)

    def asked(self, when: Condition = anything, *, since: float = 0.0) -> list[Asked]:
        """The requests that a condition holds for, from a time on."""
        return [asked for asked in self.log if asked.time >= since and when(asked)]

    def choose(self, asked: Asked) -> Fault:
        """Note a request and say what happens to it."""
        self.log.append(asked)
        rule = next((rule for rule in self._rules if rule.when(asked)), None)
        if rule is None:
            return NO_FAULT
        if rule.times is not None:
            rule.times -= 1
            if rule.times <= 0:
                self.remove(rule)
        return rule.fault
