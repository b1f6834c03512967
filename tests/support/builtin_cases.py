"""Requests about built-in kinds, sent to two servers, or to one and compared with a recording of the other.

Each file in tests/data/builtins contains, for each kind, a valid object and changes of it: before it is created
(`create`), or by a patch of the stored object (`update`, or the name of a subresource). Responses are compared after
masking values that differ between runs.
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

from two_servers import Api, ApiResponse

DATA = Path(__file__).parent.parent / "data"
RECORDED = DATA / "golden" / "builtins.json"

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"10\.(0|96)\.\d+\.\d+(/\d+)?")
# After these texts the server prints the difference of two Go structs, or a whole struct with its Go field names.
_GO_VALUES = re.compile(r"(previously negative\)|for bound claims|immutable after creation).*", re.DOTALL)
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
    """One request: `verb` is create, update or a subresource; `change` is a merge patch of the valid object."""

    kind: str
    verb: str
    name: str
    path: str
    valid: dict[str, Any]
    change: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{self.kind}: {self.verb}: {self.name}"

    def run(self, api: Api) -> dict[str, Any]:
        """Send the request to a server; return the masked response."""
        path = self.path.replace("{namespace}", api.namespace)
        valid: dict[str, Any] = json.loads(json.dumps(self.valid).replace("{namespace}", api.namespace))
        if self.verb == "create":
            return masked(api.request("POST", f"{path}?dryRun=All", merged(valid, self.change)), api.namespace)
        created = api.request("POST", path, valid)
        assert created.status == 201, (self.title, created.body)
        object_path = f"{path}/{created.json()['metadata']['name']}"
        subresource = "" if self.verb == "update" else f"/{self.verb}"
        try:
            reply = api.request("PATCH", f"{object_path}{subresource}?dryRun=All", self.change, content_type=_MERGE)
            return masked(reply, api.namespace)
        finally:
            _remove(api, object_path)


def _remove(api: Api, path: str) -> None:
    deleted = api.request("DELETE", f"{path}?gracePeriodSeconds=0&propagationPolicy=Background").json()
    if deleted.get("metadata", {}).get("finalizers"):
        api.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=_MERGE)


def merged(value: Any, change: Any) -> Any:
    """Return the value with a merge patch applied; the value itself is unchanged."""
    if not isinstance(change, dict):
        return change
    base = value if isinstance(value, dict) else {}
    result = {**base, **{key: merged(base.get(key), each) for key, each in change.items()}}
    return {key: each for key, each in result.items() if change.get(key, "") is not None}


@cache
def tables() -> dict[str, Any]:
    """Return every kind with its path, its valid object and its cases."""
    texts = [file.read_text() for file in sorted((DATA / "builtins").glob("*.yaml"))]
    all_tables = {kind: table for text in texts for kind, table in yaml.load(text, yaml.CSafeLoader).items()}
    return {kind: table for kind, table in all_tables.items() if not kind.startswith(".")}


def cases(*kinds: str) -> Iterator[Case]:
    """Yield the cases of the given kinds, or of every kind."""
    for kind, table in tables().items():
        if kinds and kind not in kinds:
            continue
        for verb in VERBS:
            for name, change in (table.get(verb) or {}).items():
                yield Case(kind, verb, name, table["path"], table["valid"], change or {})


def masked(reply: ApiResponse, namespace: str) -> dict[str, Any]:
    """Return a response without values that differ between runs."""
    text = json.dumps(reply.json(), sort_keys=True).replace(namespace, "{namespace}")
    response: dict[str, Any] = {"status": reply.status, "body": _masked(json.loads(text))}
    if reply.warnings:
        response["warnings"] = [each.replace(namespace, "{namespace}") for each in reply.warnings]
    return response


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if isinstance(value, str):
        value = _GO_VALUES.sub(r"\1", value)
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
    """Return the recorded responses of the real server by title; tools/record_golden.py writes them."""
    responses: dict[str, Any] = json.loads(RECORDED.read_text())
    return responses
