"""What a request asks for besides its object: the options of lists, writes and deletions, read and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from konverge.objects.fields import FieldSelector
from konverge.objects.labels import LabelSelector
from konverge_cluster.api import status_errors
from konverge_cluster.api.field_errors import FieldError, forbidden, invalid, quote, required, too_long, unsupported

__all__ = [
    "DeleteOptions",
    "ListOptions",
    "Query",
    "WriteOptions",
    "field_manager_errors",
    "read_selectors",
    "unsigned",
]

_MAX_MANAGER: Final = 128
_DIGITS: Final = re.compile("[0-9]+")
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_POLICIES: Final = ("Foreground", "Background", "Orphan")


class Query:
    """The parameters of a URL; a name may repeat, and the first value counts."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def every(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def text(self, name: str) -> str:
        values = self._values.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool | None:
        """None when absent; everything but `false` and `0` is true, as the server has it."""
        values = self._values.get(name)
        return values[0].lower() not in ("false", "0") if values else None

    def number(self, name: str) -> int | None:
        """None when absent.

        Raises: StatusError 400 for what is no 64-bit integer.
        """
        values = self._values.get(name)
        if not values:
            return None
        return _signed(values[0])


def _signed(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not _DIGITS.fullmatch(digits):
        raise status_errors.bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(digits) < 25 else 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise status_errors.bad_request(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def unsigned(text: str) -> int:
    """Read a resource version.

    Raises: ValueError with the text of the server's parser.
    """
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(text) < 25 else 1 << 64
    if number >= 1 << 64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return number


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of create, update and patch; `validation` is Ignore, Warn or Strict."""

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None

    @classmethod
    def read(cls, query: Query, kind: str, *, apply: bool = False) -> WriteOptions:
        """Read the options of one request; `kind` is CreateOptions, UpdateOptions or PatchOptions.

        Raises: StatusError 422 for values that the server does not know.
        """
        if not query and not apply:
            return _PLAIN_WRITE
        dry_run = query.every("dryRun")
        manager, validation = query.text("fieldManager"), query.text("fieldValidation")
        force = query.flag("force")
        problems = _patch_problems(manager, force, apply=apply) if kind == "PatchOptions" else []
        problems += field_manager_errors(manager, "fieldManager")
        problems += _dry_run_problems(dry_run)
        if validation not in _VALIDATIONS:
            problems.append(unsupported("fieldValidation", validation, _VALIDATIONS))
        _refuse(kind, problems)
        return cls(bool(dry_run), manager, validation or "Warn", force)

    def document(self, kind: str) -> dict[str, Any]:
        """The options as an object, as admission sees them."""
        found: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            found["dryRun"] = ["All"]
        if self.manager:
            found["fieldManager"] = self.manager
        if self.validation != "Warn":
            found["fieldValidation"] = self.validation
        return found


_PLAIN_WRITE: Final = WriteOptions()


def _refuse(kind: str, problems: list[FieldError]) -> None:
    if problems:
        raise status_errors.invalid("meta.k8s.io", kind, "", problems)


def _patch_problems(manager: str, force: bool | None, *, apply: bool) -> list[FieldError]:
    if apply:
        return [] if manager else [required("fieldManager", "is required for apply patch")]
    return [] if force is None else [forbidden("force", "may not be specified for non-apply patch")]


def field_manager_errors(manager: str, path: str) -> list[FieldError]:
    """Check the name of a field manager: at most 128 bytes, all printable."""
    if manager.isascii() and manager.isprintable() and len(manager) <= _MAX_MANAGER:
        return []
    problems = [too_long(path, _MAX_MANAGER)] if len(manager.encode()) > _MAX_MANAGER else []
    offset = 0
    for letter in manager:
        if not letter.isprintable():
            problems.append(invalid(path, manager, f"invalid character U+{ord(letter):04X} (at position {offset})"))
        offset += len(letter.encode())
    return problems


def _dry_run_problems(values: list[str]) -> list[FieldError]:
    return [] if all(value == "All" for value in values) else [unsupported("dryRun", values, ("All",))]


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a deletion, from its body or, without one, from the query."""

    grace_period: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    orphan_dependents: bool | None = None
    propagation: str | None = None
    dry_run: bool = False
    document: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, query: Query, body: Mapping[str, Any] | None) -> DeleteOptions:
        """Read and check the options.

        Raises: StatusError 422 for values that the server does not know.
        """
        sent = _delete_query(query) if body is None else dict(body)
        if not sent:
            return _PLAIN_DELETE
        options = cls._from(sent)
        _refuse("DeleteOptions", options._problems(sent.get("dryRun") or []))
        return options

    @classmethod
    def _from(cls, sent: dict[str, Any]) -> DeleteOptions:
        preconditions = sent.get("preconditions") or {}
        return cls(
            grace_period=sent.get("gracePeriodSeconds"),
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            orphan_dependents=sent.get("orphanDependents"),
            propagation=sent.get("propagationPolicy"),
            dry_run=bool(sent.get("dryRun")),
            document={"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"} | sent,
        )

    def _problems(self, dry_run: list[str]) -> list[FieldError]:
        problems = []
        if self.orphan_dependents is not None and self.propagation is not None:
            text = "orphanDependents and deletionPropagation cannot be both set"
            problems.append(invalid("propagationPolicy", self.propagation, text))
        if self.propagation is not None and self.propagation not in _POLICIES:
            problems.append(unsupported("propagationPolicy", self.propagation, (*_POLICIES, "nil")))
        return problems + _dry_run_problems(dry_run)


_PLAIN_DELETE: Final = DeleteOptions(document={"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"})


def _delete_query(query: Query) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "gracePeriodSeconds": query.number("gracePeriodSeconds"),
        "orphanDependents": query.flag("orphanDependents"),
        "propagationPolicy": query.text("propagationPolicy") or None,
        "dryRun": query.every("dryRun"),
    }
    return {name: value for name, value in sent.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list or a watch, defaults of watches filled in."""

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continuation: str = ""
    timeout: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None

    @classmethod
    def read(cls, query: Query, *, watch: bool) -> ListOptions:
        """Read and check the options.

        Raises: StatusError 400 for numbers that are none, 422 for combinations that the server forbids.
        """
        if not query and not watch:
            return _PLAIN_LIST
        version, match = query.text("resourceVersion"), query.text("resourceVersionMatch")
        initial = query.flag("sendInitialEvents")
        if watch and initial is None and not match and version in ("", "0"):
            initial, match = True, "NotOlderThan"
        options = cls(
            labels=query.text("labelSelector"),
            fields=query.text("fieldSelector"),
            resource_version=version,
            match=match,
            limit=query.number("limit") or 0,
            continuation=query.text("continue"),
            timeout=query.number("timeoutSeconds"),
            bookmarks=bool(query.flag("allowWatchBookmarks")),
            initial_events=initial,
        )
        problems = options._watch_problems() if watch else options._list_problems()
        if problems:
            # Selectors that cannot be read are said first.
            read_selectors(options)
        _refuse("ListOptions", problems)
        return options

    def _list_problems(self) -> list[FieldError]:
        problems = []
        if self.match:
            if not self.resource_version:
                problems.append(_match_forbidden("is forbidden unless resourceVersion is provided"))
            if self.continuation:
                problems.append(_match_forbidden("is forbidden when continue is provided"))
            if self.match not in ("Exact", "NotOlderThan"):
                problems.append(unsupported("resourceVersionMatch", self.match, ("Exact", "NotOlderThan", "")))
            if self.match == "Exact" and self.resource_version == "0":
                problems.append(_match_forbidden('"exact" is forbidden for resourceVersion "0"'))
        if self.initial_events is not None:
            problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return problems

    def _watch_problems(self) -> list[FieldError]:
        problems = []
        if self.initial_events is not None and self.match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            problems.append(forbidden("resourceVersionMatch", text))
        if self.match:
            if self.initial_events is None:
                problems.append(_match_forbidden("is forbidden for watch unless sendInitialEvents is provided"))
            if self.match != "NotOlderThan":
                problems.append(unsupported("resourceVersionMatch", self.match, ("NotOlderThan",)))
            if self.continuation:
                problems.append(_match_forbidden("is forbidden when continue is provided"))
        return problems


_PLAIN_LIST: Final = ListOptions()


def read_selectors(options: ListOptions) -> tuple[LabelSelector | None, FieldSelector | None]:
    """Read the selectors of a request.

    Raises: StatusError 400 in the server's words.
    """
    try:
        labels = LabelSelector.parse(options.labels) if options.labels else None
        fields = FieldSelector.parse(options.fields) if options.fields else None
    except ValueError as error:
        raise status_errors.bad_request(str(error)) from None
    return labels, fields


def _match_forbidden(text: str) -> FieldError:
    return forbidden("resourceVersionMatch", f"resourceVersionMatch {text}")
