"""What a request asks for besides its object: options, written as query or as body.

Each class refuses combinations that the server would refuse, at the place of the mistake. An option that is not set is
not written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

__all__ = ["DeleteOptions", "ListOptions", "Query", "WatchOptions", "WriteOptions"]

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Which objects of a collection, how fresh, and in pages of which size.

    `resource_version` "" asks for the newest state, "0" for any state that the server has at hand. A page after the
    first is asked for with `continue_` and no version: the token holds it.
    """

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: Literal["", "Exact", "NotOlderThan"] = ""

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit is a number of objects, 0 for all, got {self.limit}")
        if self.continue_ and (self.resource_version or self.resource_version_match):
            raise ValueError("continue_ holds the version already: leave out resource_version and its match")
        if self.resource_version_match and not self.resource_version:
            raise ValueError("resource_version_match needs a resource_version")

    def query(self) -> Query:
        """Write the options as a query."""
        return _query(
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
            ("limit", str(self.limit) if self.limit else ""),
            ("continue", self.continue_),
            ("resourceVersion", self.resource_version),
            ("resourceVersionMatch", self.resource_version_match),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """Which changes of a collection, from which version on, and how long.

    With `send_initial_events` the stream starts with what is there, at least as fresh as `resource_version`, and a
    bookmark says where that ends. `timeout` is in seconds: the server closes the stream after it.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    bookmarks: bool = True
    send_initial_events: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.send_initial_events and not self.bookmarks:
            raise ValueError("send_initial_events needs bookmarks=True: a bookmark says where they end")
        if self.timeout is not None and not (self.timeout > 0 and math.isfinite(self.timeout)):
            raise ValueError(f"timeout is a number of seconds above 0, got {self.timeout}")

    def query(self) -> Query:
        """Write the options as a query."""
        return _query(
            ("watch", "true"),
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
            ("resourceVersion", self.resource_version),
            ("allowWatchBookmarks", _flag(self.bookmarks)),
            ("sendInitialEvents", _flag(self.send_initial_events)),
            ("resourceVersionMatch", "NotOlderThan" if self.send_initial_events else ""),
            ("timeoutSeconds", "" if self.timeout is None else str(math.ceil(self.timeout))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a create, update, patch or apply is done. `force` is for applies: take fields that others own."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: Literal["", "Strict", "Warn", "Ignore"] = ""
    force: bool = False

    def query(self) -> Query:
        """Write the options as a query."""
        return _query(
            ("dryRun", "All" if self.dry_run else ""),
            ("fieldManager", self.field_manager),
            ("fieldValidation", self.field_validation),
            ("force", _flag(self.force)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How a delete is done. `uid` and `resource_version` are preconditions: another object of that name stays.

    `grace_period` is in whole seconds, 0 for at once, None for what the object says.
    """

    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    grace_period: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.grace_period is not None and self.grace_period < 0:
            raise ValueError(f"grace_period is a number of seconds, 0 for at once, got {self.grace_period}")

    def body(self) -> bytes:
        """Write the options as the body of a DELETE; b"" when none is set."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        options: dict[str, Any] = {
            "propagationPolicy": self.propagation,
            "preconditions": {name: value for name, value in preconditions.items() if value},
            "dryRun": ["All"] if self.dry_run else [],
        }
        options = {name: value for name, value in options.items() if value}
        if self.grace_period is not None:
            options["gracePeriodSeconds"] = self.grace_period
        return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **options}) if options else b""


def _flag(value: bool) -> str:
    return "true" if value else ""


def _query(*options: tuple[str, str]) -> Query:
    return tuple(option for option in options if option[1])
