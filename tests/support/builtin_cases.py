"""Requests about built-in kinds that are put to two servers, or to one and a recording of the other.

A file in tests/data/builtins holds, for each kind, a sound object and what is to be changed in it: before it is created
(`create`), or by a patch once it is there (`update`, or the name of a subresource). Answers are compared after masking
what differs from run to run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from two_servers import Api, Reply

DATA = Path(__file__).parent.parent / "data"
RECORDED = DATA / "golden" / "builtins.json"

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"10\.(0|96)\.\d+\.\d+(/\d+)?")
# Where the server goes on with the difference of two Go structs, or shows a whole one by the names of its Go fields.
_UNSHOWN = re.compile(r"(previously negative\)|for bound claims|immutable after creation).*", re.DOTALL)
_TEMPLATE = re.compile(r"Invalid value: \{.*\}: field is immutable", re.DOTALL)
_VOLATILE = (
    "resourceVersion",
    "creationTimestamp",
    "lastPhaseTransitionTime",
    "lastTransitionTime",
    "username",
    "groups",
    "extra",
)
VERBS = ("create", "update", "status", "ephemeralcontainers", "resize", "approval", "finalize")
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Case:
    """One request: `verb` is create, update or a subresource; `change` is what it makes of the sound object."""

    kind: str
    verb: str
    name: str
    path: str
    sound: dict[str, Any]
    change: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{self.kind}: {self.verb}: {self.name}"

    def run(self, api: Api) -> dict[str, Any]:
        """Put the case to a server; return the masked answer."""
        path = self.path.replace("{namespace}", api.namespace)
        sound: dict[str, Any] = json.loads(json.dumps(self.sound).replace("{namespace}", api.namespace))
        if self.verb == "create":
            return masked(api.ask("POST", f"{path}?dryRun=All", merged(sound, self.change)), api.namespace)
        made = api.ask("POST", path, sound)
        assert made.status == 201, (self.title, made.body)
        place = f"{path}/{made.json()['metadata']['name']}"
        below = "" if self.verb == "update" else f"/{self.verb}"
        try:
            reply = api.ask("PATCH", f"{place}{below}?dryRun=All", self.change, content_type=_MERGE)
            return masked(reply, api.namespace)
        finally:
            _remove(api, place)


def _remove(api: Api, place: str) -> None:
    left = api.ask("DELETE", f"{place}?gracePeriodSeconds=0&propagationPolicy=Background").json()
    if left.get("metadata", {}).get("finalizers"):
        api.ask("PATCH", place, {"metadata": {"finalizers": None}}, content_type=_MERGE)


def merged(value: Any, change: Any) -> Any:
    """Apply a merge patch, without touching the value."""
    if not isinstance(change, dict):
        return change
    base = value if isinstance(value, dict) else {}
    result = {**base, **{key: merged(base.get(key), each) for key, each in change.items()}}
    return {key: each for key, each in result.items() if change.get(key, "") is not None}


@cache
def tables() -> dict[str, Any]:
    """Every kind with its path, its sound object and its cases."""
    texts = [file.read_text() for file in sorted((DATA / "builtins").glob("*.yaml"))]
    found = {kind: table for text in texts for kind, table in yaml.load(text, yaml.CSafeLoader).items()}
    return {kind: table for kind, table in found.items() if not kind.startswith(".")}


def cases(*kinds: str) -> Iterator[Case]:
    """The cases of the kinds named, or of every kind."""
    for kind, table in tables().items():
        if kinds and kind not in kinds:
            continue
        for verb in VERBS:
            for name, change in (table.get(verb) or {}).items():
                yield Case(kind, verb, name, table["path"], table["sound"], change or {})


def masked(reply: Reply, namespace: str) -> dict[str, Any]:
    """An answer without what differs from run to run."""
    text = json.dumps(reply.json(), sort_keys=True).replace(namespace, "{namespace}")
    answer: dict[str, Any] = {"status": reply.status, "body": _masked(json.loads(text))}
    if reply.warnings:
        answer["warnings"] = [each.replace(namespace, "{namespace}") for each in reply.warnings]
    return answer


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


@cache
def recorded() -> dict[str, Any]:
    """What the real server answered, by title; made by tools/record_golden.py."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found
