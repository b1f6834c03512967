"""Requests about built-in kinds that are put to two servers, or to one and a recording of the other.

A file in tests/data/builtins holds, for each kind, a sound object and what is to be changed in it: before it is created
(`create`), or by a patch once it is there (`update`, `status`). Answers are compared after masking what differs from
run to run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parent.parent / "data"
GOLDEN = DATA / "golden"

Ask = Callable[[str, str, Any, str], tuple[int, Any]]
"""Sends method, path, body and content type; gives the status and the decoded body."""

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"10\.(0|96)\.\d+\.\d+(/\d+)?")
# Where the server goes on with the difference of two Go structs, or shows a whole one by the names of its Go fields.
_UNSHOWN = re.compile(r"(previously negative\)|for bound claims|immutable after creation).*", re.DOTALL)
_TEMPLATE = re.compile(r"Invalid value: \{.*\}: field is immutable", re.DOTALL)
_VOLATILE = ("resourceVersion", "creationTimestamp", "lastPhaseTransitionTime", "username", "groups", "extra")
MERGE = "application/merge-patch+json"
JSON = "application/json"


@dataclass(frozen=True)
class Case:
    """One request: `verb` is create, update or status; `change` is what it makes of the sound object."""

    kind: str
    verb: str
    name: str
    path: str
    sound: dict[str, Any]
    change: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{self.kind}: {self.verb}: {self.name}"

    def run(self, ask: Ask, namespace: str) -> dict[str, Any]:
        """Put the case to a server; return the masked answer."""
        path = self.path.replace("{namespace}", namespace)
        if self.verb == "create":
            wish = merged(self._sound(namespace), self.change)
            return masked(*ask("POST", f"{path}?dryRun=All", wish, JSON), namespace)
        code, made = ask("POST", path, self._sound(namespace), JSON)
        assert code == 201, (self.title, made)
        place = f"{path}/{made['metadata']['name']}"
        below = "/status" if self.verb == "status" else ""
        try:
            return masked(*ask("PATCH", f"{place}{below}?dryRun=All", self.change, MERGE), namespace)
        finally:
            self._remove(ask, place)

    def _sound(self, namespace: str) -> dict[str, Any]:
        sound: dict[str, Any] = json.loads(json.dumps(self.sound).replace("{namespace}", namespace))
        return sound

    def _remove(self, ask: Ask, place: str) -> None:
        _, left = ask("DELETE", f"{place}?gracePeriodSeconds=0&propagationPolicy=Background", None, JSON)
        if left.get("metadata", {}).get("finalizers"):
            ask("PATCH", place, {"metadata": {"finalizers": None}}, MERGE)


def merged(value: Any, change: Any) -> Any:
    """Apply a merge patch, without touching the value."""
    if not isinstance(change, dict):
        return change
    base = value if isinstance(value, dict) else {}
    result = {**base, **{key: merged(base.get(key), each) for key, each in change.items()}}
    return {key: each for key, each in result.items() if change.get(key, "") is not None}


def cases(*topics: str) -> Iterator[Case]:
    """All cases of the files named, or of every file."""
    for file in sorted((DATA / "builtins").glob("*.yaml")):
        if topics and file.stem not in topics:
            continue
        for kind, table in yaml.safe_load(file.read_text()).items():
            if kind.startswith("."):
                continue
            for verb in ("create", "update", "status"):
                for name, change in (table.get(verb) or {}).items():
                    yield Case(kind, verb, name, table["path"], table["sound"], change or {})


def masked(status: int, body: Any, namespace: str) -> dict[str, Any]:
    """An answer without what differs from run to run."""
    text = json.dumps(body, sort_keys=True).replace(namespace, "{namespace}")
    return {"status": status, "body": _masked(json.loads(text))}


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if isinstance(value, str):
        value = _UNSHOWN.sub(r"\1", value)
        if "template" in value or '"containers"' in value or '"Containers"' in value:
            value = _TEMPLATE.sub("Invalid value: {}: field is immutable", value)
        return _ADDRESS.sub("{address}", _UID.sub("{uid}", value))
    if not isinstance(value, dict):
        return value
    result = {key: _masked(each) for key, each in value.items() if key not in (*_VOLATILE, "managedFields")}
    if isinstance(result.get("nodePort"), int):
        result["nodePort"] = "{port}"
    return result


def recorded() -> dict[str, Any]:
    """What the real server answered, by title; made by tools/record_golden.py."""
    found: dict[str, Any] = json.loads((GOLDEN / "builtins.json").read_text())
    return found
