"""Conflicts between the names of definitions in a group.

Names are accepted one by one. A definition is served only if all its names are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from konverge_cluster.api.field_errors import quote

__all__ = ["AcceptedNames", "accept_names"]

Names = Mapping[str, Any]

_RESOURCES = ("plural", "singular")
_KINDS = ("kind", "listKind")


class AcceptedNames(NamedTuple):
    """The accepted names of a definition; `reason` is "NoConflicts" if all were accepted."""

    accepted: dict[str, Any]
    reason: str
    message: str

    @property
    def is_complete(self) -> bool:
        return self.reason == "NoConflicts"


def accept_names(requested: Names, accepted: Names, others: Iterable[Names]) -> AcceptedNames:
    """Accept the names of a definition that do not conflict with those of others in its group."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for names in (*others, accepted):
        resources |= {names.get(key, "") for key in _RESOURCES} | set(names.get("shortNames") or ())
        kinds |= {names.get(key, "") for key in _KINDS}
    new = dict(accepted)
    reason, message = "NoConflicts", "no conflicts found"
    for key, used in (("plural", resources), ("singular", resources), ("shortNames", resources)):
        conflict = (
            _short_names(requested, accepted, used)
            if key == "shortNames"
            else _conflict(requested, accepted, key, used)
        )
        if conflict:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", conflict
        else:
            _copy_name(new, requested, key)
    for key in _KINDS:
        conflict = _conflict(requested, accepted, key, kinds)
        if conflict:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", conflict
        else:
            _copy_name(new, requested, key)
    _copy_name(new, requested, "categories")
    return AcceptedNames(new, reason, message)


def _copy_name(new: dict[str, Any], requested: Names, key: str) -> None:
    if requested.get(key):
        new[key] = requested[key]
    else:
        new.pop(key, None)


def _conflict(requested: Names, accepted: Names, key: str, used: set[str]) -> str:
    name = requested.get(key, "")
    return f"{quote(name)} is already in use" if name != accepted.get(key, "") and name in used else ""


def _short_names(requested: Names, accepted: Names, used: set[str]) -> str:
    own = accepted.get("shortNames") or ()
    used_names = [name for name in requested.get("shortNames") or () if name not in own and name in used]
    texts = [f"{quote(name)} is already in use" for name in dict.fromkeys(used_names)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
