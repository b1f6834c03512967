"""The options of requests, encoded as query or as body.

Each class raises ValueError for a combination that the server rejects. An option that is not set is not encoded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import msgspec

__all__ = ["DeleteOptions", "ListOptions", "Query", "WatchOptions", "WriteOptions"]

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list: selectors, consistency and page size.

    `resource_version` "" requests the newest state, "0" any state in the cache of the server. Pages after the first are
    requested with `continue_` and without a version: the token contains it.
    """

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: Literal["", "Exact", "NotOlderThan"] = ""

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit: expected a number of objects, 0 for all, got {self.limit}")
        if self.continue_ and (self.resource_version or self.resource_version_match):
            raise ValueError("continue_ contains the version (leave out resource_version and resource_version_match)")
        if self.resource_version_match and not self.resource_version:
            raise ValueError("resource_version_match needs a resource_version")

    def query(self) -> Query:
        """Return the options as a query."""
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
    """The options of a watch: selectors, first version and timeout.

    With `send_initial_events` the stream starts with the existing objects, at `resource_version` or newer, and a
    bookmark marks their end. The server closes the stream after `timeout` seconds.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    bookmarks: bool = True
    send_initial_events: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.send_initial_events and not self.bookmarks:
            raise ValueError("send_initial_events needs bookmarks=True: a bookmark marks their end")
        if self.timeout is not None and not (self.timeout > 0 and math.isfinite(self.timeout)):
            raise ValueError(f"timeout: expected a number of seconds above 0, got {self.timeout}")

    def query(self) -> Query:
        """Return the options as a query."""
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


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a create, update, patch or apply. `force` is for apply: it takes over fields of other managers."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: Literal["", "Strict", "Warn", "Ignore"] = ""
    force: bool = False

    def query(self) -> Query:
        """Return the options as a query."""
        return _write_query(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The options of a delete. `uid` and `resource_version` are preconditions: an object that differs is not deleted.

    `grace_period` is in whole seconds, 0 for immediately, None for the default of the object.
    """

    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    grace_period: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.grace_period is not None and self.grace_period < 0:
            raise ValueError(f"grace_period: expected a number of seconds, 0 for immediately, got {self.grace_period}")

    def body(self) -> bytes:
        """Return the options as the body of a DELETE, b"" if none is set."""
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


@lru_cache(maxsize=64)  # the writes of an operator have one of a few
def _write_query(options: WriteOptions) -> Query:
    return _query(
        ("dryRun", "All" if options.dry_run else ""),
        ("fieldManager", options.field_manager),
        ("fieldValidation", options.field_validation),
        ("force", _flag(options.force)),
    )


def _query(*options: tuple[str, str]) -> Query:
    return tuple(option for option in options if option[1])
