"""Request options of lists, watches, writes and deletions: parsed and validated."""

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
    """The query parameters of a URL; a name may occur several times, and the first value counts."""

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
        """Return a boolean, None when absent; everything but `false` and `0` is true, as on the real server."""
        values = self._values.get(name)
        return values[0].lower() not in ("false", "0") if values else None

    def number(self, name: str) -> int | None:
        """Return an integer, None when absent.

        Raises: StatusError 400 for a value that is not a 64-bit integer.
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
    """Parse a resource version.

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

        Raises: StatusError 422 for invalid values.
        """
        if not query and not apply:
            return _DEFAULT_WRITE
        dry_run = query.every("dryRun")
        manager, validation = query.text("fieldManager"), query.text("fieldValidation")
        force = query.flag("force")
        errors = _patch_errors(manager, force, apply=apply) if kind == "PatchOptions" else []
        errors += field_manager_errors(manager, "fieldManager")
        errors += _dry_run_errors(dry_run)
        if validation not in _VALIDATIONS:
            errors.append(unsupported("fieldValidation", validation, _VALIDATIONS))
        _raise_invalid(kind, errors)
        return cls(bool(dry_run), manager, validation or "Warn", force)

    def document(self, kind: str) -> dict[str, Any]:
        """Return the options as an object, for admission."""
        found: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            found["dryRun"] = ["All"]
        if self.manager:
            found["fieldManager"] = self.manager
        if self.validation != "Warn":
            found["fieldValidation"] = self.validation
        return found


_DEFAULT_WRITE: Final = WriteOptions()


def _raise_invalid(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise status_errors.invalid("meta.k8s.io", kind, "", errors)


def _patch_errors(manager: str, force: bool | None, *, apply: bool) -> list[FieldError]:
    if apply:
        return [] if manager else [required("fieldManager", "is required for apply patch")]
    return [] if force is None else [forbidden("force", "may not be specified for non-apply patch")]


def field_manager_errors(manager: str, path: str) -> list[FieldError]:
    """Validate the name of a field manager: at most 128 bytes, all printable."""
    if manager.isascii() and manager.isprintable() and len(manager) <= _MAX_MANAGER:
        return []
    errors = [too_long(path, _MAX_MANAGER)] if len(manager.encode()) > _MAX_MANAGER else []
    offset = 0
    for character in manager:
        if not character.isprintable():
            errors.append(invalid(path, manager, f"invalid character U+{ord(character):04X} (at position {offset})"))
        offset += len(character.encode())
    return errors


def _dry_run_errors(values: list[str]) -> list[FieldError]:
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

        Raises: StatusError 422 for invalid values.
        """
        values = _delete_options_from_query(query) if body is None else dict(body)
        if not values:
            return _DEFAULT_DELETE
        options = cls._from_document(values)
        _raise_invalid("DeleteOptions", options._errors(values.get("dryRun") or []))
        return options

    @classmethod
    def _from_document(cls, values: dict[str, Any]) -> DeleteOptions:
        preconditions = values.get("preconditions") or {}
        return cls(
            grace_period=values.get("gracePeriodSeconds"),
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            orphan_dependents=values.get("orphanDependents"),
            propagation=values.get("propagationPolicy"),
            dry_run=bool(values.get("dryRun")),
            document={"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"} | values,
        )

    def _errors(self, dry_run: list[str]) -> list[FieldError]:
        errors = []
        if self.orphan_dependents is not None and self.propagation is not None:
            text = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(invalid("propagationPolicy", self.propagation, text))
        if self.propagation is not None and self.propagation not in _POLICIES:
            errors.append(unsupported("propagationPolicy", self.propagation, (*_POLICIES, "nil")))
        return errors + _dry_run_errors(dry_run)


_DEFAULT_DELETE: Final = DeleteOptions(document={"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"})


def _delete_options_from_query(query: Query) -> dict[str, Any]:
    values: dict[str, Any] = {
        "gracePeriodSeconds": query.number("gracePeriodSeconds"),
        "orphanDependents": query.flag("orphanDependents"),
        "propagationPolicy": query.text("propagationPolicy") or None,
        "dryRun": query.every("dryRun"),
    }
    return {name: value for name, value in values.items() if value not in (None, [])}


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

        Raises: StatusError 400 for invalid numbers, 422 for combinations that the server forbids.
        """
        if not query and not watch:
            return _DEFAULT_LIST
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
        errors = options._watch_errors() if watch else options._list_errors()
        if errors:
            # An invalid selector is reported first.
            read_selectors(options)
        _raise_invalid("ListOptions", errors)
        return options

    def _list_errors(self) -> list[FieldError]:
        errors = []
        if self.match:
            if not self.resource_version:
                errors.append(_match_forbidden("is forbidden unless resourceVersion is provided"))
            if self.continuation:
                errors.append(_match_forbidden("is forbidden when continue is provided"))
            if self.match not in ("Exact", "NotOlderThan"):
                errors.append(unsupported("resourceVersionMatch", self.match, ("Exact", "NotOlderThan", "")))
            if self.match == "Exact" and self.resource_version == "0":
                errors.append(_match_forbidden('"exact" is forbidden for resourceVersion "0"'))
        if self.initial_events is not None:
            errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return errors

    def _watch_errors(self) -> list[FieldError]:
        errors = []
        if self.initial_events is not None and self.match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(forbidden("resourceVersionMatch", text))
        if self.match:
            if self.initial_events is None:
                errors.append(_match_forbidden("is forbidden for watch unless sendInitialEvents is provided"))
            if self.match != "NotOlderThan":
                errors.append(unsupported("resourceVersionMatch", self.match, ("NotOlderThan",)))
            if self.continuation:
                errors.append(_match_forbidden("is forbidden when continue is provided"))
        return errors


_DEFAULT_LIST: Final = ListOptions()


def read_selectors(options: ListOptions) -> tuple[LabelSelector | None, FieldSelector | None]:
    """Parse the selectors of a request.

    Raises: StatusError 400 with the text of the real server.
    """
    try:
        labels = LabelSelector.parse(options.labels) if options.labels else None
        fields = FieldSelector.parse(options.fields) if options.fields else None
    except ValueError as error:
        raise status_errors.bad_request(str(error)) from None
    return labels, fields


def _match_forbidden(text: str) -> FieldError:
    return forbidden("resourceVersionMatch", f"resourceVersionMatch {text}")
