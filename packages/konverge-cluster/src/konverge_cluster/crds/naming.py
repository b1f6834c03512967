"""Which names a definition gets: those that nobody else in its group has.

Names are accepted one by one. A definition whose names were not all accepted is not served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from konverge_cluster.api.field_errors import quote

__all__ = ["Naming", "decide_names"]

Names = Mapping[str, Any]

_RESOURCES = ("plural", "singular")
_KINDS = ("kind", "listKind")


class Naming(NamedTuple):
    """The names that a definition has now, and why not others: `reason` is "NoConflicts" when all were accepted."""

    accepted: dict[str, Any]
    reason: str
    message: str

    @property
    def is_complete(self) -> bool:
        return self.reason == "NoConflicts"


def decide_names(wanted: Names, accepted: Names, others: Iterable[Names]) -> Naming:
    """Decide on the names of a definition, given what it has and what the others of its group have."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for names in (*others, accepted):
        resources |= {names.get(key, "") for key in _RESOURCES} | set(names.get("shortNames") or ())
        kinds |= {names.get(key, "") for key in _KINDS}
    new = dict(accepted)
    reason, message = "NoConflicts", "no conflicts found"
    for key, used in (("plural", resources), ("singular", resources), ("shortNames", resources)):
        said = _short_names(wanted, accepted, used) if key == "shortNames" else _conflict(wanted, accepted, key, used)
        if said:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", said
        else:
            _take(new, wanted, key)
    for key in _KINDS:
        said = _conflict(wanted, accepted, key, kinds)
        if said:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", said
        else:
            _take(new, wanted, key)
    _take(new, wanted, "categories")
    return Naming(new, reason, message)


def _take(new: dict[str, Any], wanted: Names, key: str) -> None:
    if wanted.get(key):
        new[key] = wanted[key]
    else:
        new.pop(key, None)


def _conflict(wanted: Names, accepted: Names, key: str, used: set[str]) -> str:
    name = wanted.get(key, "")
    return f"{quote(name)} is already in use" if name != accepted.get(key, "") and name in used else ""


def _short_names(wanted: Names, accepted: Names, used: set[str]) -> str:
    own = accepted.get("shortNames") or ()
    taken = [name for name in wanted.get("shortNames") or () if name not in own and name in used]
    texts = [f"{quote(name)} is already in use" for name in dict.fromkeys(taken)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
