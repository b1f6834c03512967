"""The scenarios of the differential fuzzer: lists of requests that a seed determines before anything is sent.

Steps name objects by letter. Where a step needs a version or an object of an earlier answer it says so, and whoever
sends it puts in what that server said.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from fuzz_kinds import ABSENT, METADATA, FuzzKind

__all__ = ["SENTINEL", "Edit", "Step", "change", "scenario_of"]

Json = dict[str, Any]

NAMES = ("a", "b", "c")
MANAGERS = ("m1", "m2", "m3")
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
SENTINEL = "zz-end"


@dataclass(frozen=True)
class Edit:
    """A body: the object that this server returned last, with changes by path."""

    name: str
    changes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Step:
    """One request. `{ns}`, `{rv:a}`, `{uid:a}`, `{list}` and `{continue}` are replaced before it is sent."""

    method: str
    path: str
    body: Any = None
    type: str = ""
    accept: str = "application/json"
    watch: bool = False

    def __str__(self) -> str:
        shown = f"{self.method} {self.path}"
        if self.type not in ("", "application/json"):
            shown += f" ({self.type})"
        if self.accept != "application/json":
            shown += f" [{self.accept}]"
        if isinstance(self.body, Edit):
            return f"{shown} last {self.body.name} with {dict(self.body.changes)!r}"
        return shown if self.body is None else f"{shown} {json.dumps(self.body)}"


def change(document: Json, path: str, value: Any) -> None:
    """Set or remove a field; missing parents are created."""
    *parents, last = path.split(".")
    holder: Any = document
    for name in parents:
        if not isinstance(holder.get(name), dict):
            holder[name] = {}
        holder = holder[name]
    if value is ABSENT:
        holder.pop(last, None)
    else:
        holder[last] = value


class ScenarioGenerator:
    """Generates scenarios from random numbers only, independent of responses."""

    def __init__(self, dice: random.Random, kind: FuzzKind) -> None:
        self.dice = dice
        self.kind = kind
        self.fields = {**METADATA, **kind.fields}

    def generate(self, length: int) -> list[Step]:
        steps = [self.create() for _ in range(2)]
        while len(steps) < length - 2:
            steps.append(self._one_of(_WEIGHTS)(self))
        return [*steps, *self.ending()]

    def _one_of(self, weights: Mapping[str, int]) -> Callable[[ScenarioGenerator], Step]:
        name = self.dice.choices(list(weights), list(weights.values()))[0]
        found: Callable[[ScenarioGenerator], Step] = getattr(ScenarioGenerator, name)
        return found

    def pick(self, choices: Iterable[Any]) -> Any:
        return copy.deepcopy(self.dice.choice(list(choices)))

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def changes(self, count: int) -> tuple[tuple[str, Any], ...]:
        paths = self.dice.sample(sorted(self.fields), min(count, len(self.fields)))
        return tuple((path, self.pick(self.fields[path])) for path in paths)

    def path(self, name: str = "", subresource: str = "", **query: Any) -> str:
        path = "/".join(part for part in (self.kind.path, name, subresource) if part)
        given = [f"{key}={value}" for key, value in query.items() if value]
        return f"{path}?{'&'.join(given)}" if given else path

    def options(self) -> dict[str, str]:
        return {
            "dryRun": self.pick(["", "", "", "", "", "", "All", "Bogus"]),
            "fieldManager": self.pick(["", *MANAGERS]),
            "fieldValidation": self.pick(["", "", "", "Strict", "Warn", "Ignore", "Bogus"]),
        }

    def document(self) -> Json:
        document: Json = {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": {"name": self.pick(NAMES)},
        }
        document.update(copy.deepcopy(self.kind.base))
        for path, value in self.changes(self.pick([0, 0, 1, 1, 2, 3])):
            change(document, path, value)
        if self.chance(0.03):
            document["metadata"]["name"] = self.pick(["Bad_Name", "", "x" * 254])
        if self.chance(0.03):
            document["metadata"]["namespace"] = "elsewhere"
        if self.chance(0.03):
            document["metadata"]["resourceVersion"] = self.pick(["5", "abc"])
        if self.chance(0.03):
            document[self.pick(["kind", "apiVersion"])] = self.pick(["Pod", "v2", "", None, 5])
        return document

    def create(self) -> Step:
        options = self.options()
        document = self.document()
        if options["dryRun"] == "All" and self.chance(0.3):
            document["metadata"].pop("name", None)
            document["metadata"]["generateName"] = "gen-"
        return Step("POST", self.path(**options), document, "application/json")

    def get(self) -> Step:
        version = self.pick(["", "", "", "{rv:a}", "abc"])
        accept = self.pick(_VIEWS)
        return Step("GET", self.path(self.pick([*NAMES, "missing"]), resourceVersion=version), accept=accept)

    def listing(self) -> Step:
        query = {
            "labelSelector": quote(self.pick(_LABEL_SELECTORS)),
            "fieldSelector": quote(self.pick(["", "", "", *_FIELD_SELECTORS, *self.kind.selectors])),
            "limit": self.pick(["", "", "1", "2", "0", "-1", "x"]),
        }
        if self.chance(0.3):
            query |= {"resourceVersion": self.pick(["{list}", "{rv:a}", "1", "abc"])}
            query |= {"resourceVersionMatch": self.pick(["", "Exact", "NotOlderThan", "Bogus"])}
        return Step("GET", self.path(**query), accept=self.pick(_VIEWS))

    def page(self) -> Step:
        return Step("GET", self.path(limit=1, **{"continue": "{continue}"}))

    def put(self) -> Step:
        name = self.pick(NAMES)
        changes = list(self.changes(self.pick([0, 1, 1, 2])))
        if self.chance(0.5):
            changes.append(("metadata.resourceVersion", self.pick([ABSENT, ABSENT, "1", "abc", "{rv:b}"])))
        if self.chance(0.05):
            changes.append(("metadata.uid", self.pick([ABSENT, "1234"])))
        if self.chance(0.05):
            changes.append(("metadata.name", self.pick([ABSENT, "other"])))
        return Step("PUT", self.path(name, **self.options()), Edit(name, tuple(changes)), "application/json")

    def merge(self) -> Step:
        patch: Json = {}
        for path, value in self.changes(self.pick([1, 1, 2])):
            change(patch, path, None if value is ABSENT else value)
        if self.chance(0.1):
            change(patch, "metadata.resourceVersion", self.pick(["{rv:a}", "1"]))
        if self.chance(0.03):
            patch = self.pick([[], "text", None, {"metadata": {"name": "other"}}])
        return self._patch("merge", patch)

    def strategic(self) -> Step:
        if not self.kind.strategic or self.chance(0.3):
            return replace(self.merge(), type=PATCHES["strategic"])
        return self._patch("strategic", self.pick(self.kind.strategic))

    def json_patch(self) -> Step:
        return self._patch("json", [self._operation() for _ in range(self.pick([1, 1, 2, 3]))])

    def _operation(self) -> Any:
        path = self.pick(sorted(self.fields))
        pointer = "/" + path.replace(".", "/") + self.pick(["", "", "", "/x", "/0", "/-", "/app"])
        value = self.pick(self.fields[path])
        operation: Json = {
            "op": self.pick(["add", "add", "remove", "replace", "test", "copy", "move", "bogus"]),
            "path": pointer,
        }
        if value is not ABSENT:
            operation["value"] = value
        if operation["op"] in ("copy", "move"):
            operation["from"] = "/" + self.pick(sorted(self.fields)).replace(".", "/")
        return operation

    def _patch(self, kind: str, patch: Any, subresource: str = "") -> Step:
        return Step("PATCH", self.path(self.pick(NAMES), subresource, **self.options()), patch, PATCHES[kind])

    def apply(self) -> Step:
        name = self.pick(NAMES)
        config: Json = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {"name": name}}
        for part in (self.pick(self.kind.parts) for _ in range(self.pick([1, 1, 2]))):
            merge(config, part)
        if self.chance(0.3):
            config["metadata"]["labels"] = self.pick([{"app": "web"}, {"tier": "a"}, {"app": "x", "tier": "y"}])
        if self.chance(0.2):
            merge(config, self.kind.base)
        if self.chance(0.04):
            config["metadata"]["managedFields"] = [{}]
        if self.chance(0.04):
            config.pop(self.pick(["kind", "apiVersion"]))
        options = {
            **self.options(),
            "fieldManager": self.pick([*MANAGERS, *MANAGERS, ""]),
            "force": self.pick(["", "", "true"]),
        }
        return Step("PATCH", self.path(name, **options), config, PATCHES["apply"])

    def status(self) -> Step:
        if not self.kind.status:
            return self.get()
        patch = self.pick(self.kind.status)
        name = self.pick(NAMES)
        if self.chance(0.3):
            changes = tuple((key, value) for key, value in patch.items() if key != "metadata")
            return Step("PUT", self.path(name, "status", **self.options()), Edit(name, changes), "application/json")
        if self.chance(0.3):
            config = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {"name": name}, **patch}
            options = {"fieldManager": self.pick(MANAGERS), "force": self.pick(["", "true"])}
            return Step("PATCH", self.path(name, "status", **options), config, PATCHES["apply"])
        return self._patch("merge", patch, "status")

    def scale(self) -> Step:
        if not self.kind.scales:
            return self.listing()
        name = self.pick(NAMES)
        if self.chance(0.3):
            return Step("GET", self.path(name, "scale"))
        patch = {"spec": {"replicas": self.pick([0, 1, 4, 7, -1, "x", None])}}
        if self.chance(0.5):
            return self._patch("merge", patch, "scale")
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, **patch}
        return Step("PUT", self.path(name, "scale", **self.options()), body, "application/json")

    def delete(self) -> Step:
        body: Any = None
        if self.chance(0.4):
            body = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                **self.pick(
                    [
                        {"propagationPolicy": "Foreground"},
                        {"propagationPolicy": "Orphan"},
                        {"propagationPolicy": "Background"},
                        {"propagationPolicy": "Bogus"},
                        {"gracePeriodSeconds": 0},
                        {"gracePeriodSeconds": 5},
                        {"orphanDependents": True},
                        {"orphanDependents": True, "propagationPolicy": "Orphan"},
                        {"preconditions": {"uid": "{uid:a}"}},
                        {"preconditions": {"uid": "wrong"}},
                        {"preconditions": {"resourceVersion": "{rv:a}"}},
                        {"preconditions": {"resourceVersion": "1"}},
                        {"dryRun": ["All"]},
                    ]
                ),
            }
        query = {
            "dryRun": self.pick(["", "", "", "", "All"]),
            "propagationPolicy": self.pick(["", "", "", "Foreground"]),
        }
        return Step("DELETE", self.path(self.pick(NAMES), **query), body, "application/json" if body else "")

    def delete_collection(self) -> Step:
        selector = quote(self.pick(["app=web", "tier=a", "none=x", "a in"]))
        return Step("DELETE", self.path(labelSelector=selector, dryRun=self.pick(["", "All"])))

    def odd(self) -> Step:
        """Return requests that are invalid independent of the object."""
        name = self.pick(NAMES)
        step: Step = self.pick(
            [
                Step("POST", self.path(name), {}, "application/json"),
                Step("PUT", self.path(), {}, "application/json"),
                Step("PATCH", self.path(name), {}, "application/json"),
                Step("PATCH", self.path(name), {}, "application/xml"),
                Step("POST", self.path(), [], "application/json"),
                Step("POST", self.path(), "text", "application/json"),
                Step("POST", self.path(), {"metadata": []}, "application/json"),
                Step("GET", self.path(name, "nothing")),
                Step("GET", self.path(name), accept="application/foo"),
                Step("PUT", self.path(name, "status"), {}, "application/json"),
                Step("DELETE", self.path("missing")),
                Step("GET", self.path(name, "status")),
                Step("POST", self.path(), {"metadata": {"name": "x"}}, "application/yaml"),
            ]
        )
        return step

    def ending(self) -> list[Step]:
        """Return the create of a last object, and a watch of the whole scenario that ends with it."""
        document = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **copy.deepcopy(self.kind.base)}
        document["metadata"] = {"name": SENTINEL, "labels": {"app": "web", "tier": "a"}}
        selector = quote(self.pick(["", "", "app=web", "tier in (a)"]))
        watch = self.path(watch="1", resourceVersion="{rv:start}", labelSelector=selector, timeoutSeconds="3")
        create = Step("POST", self.path(), document, "application/json")
        return [create, Step("GET", watch, watch=True)]


_WEIGHTS: Mapping[str, int] = {
    "create": 12,
    "get": 8,
    "listing": 10,
    "page": 3,
    "put": 14,
    "merge": 10,
    "strategic": 8,
    "json_patch": 8,
    "apply": 16,
    "status": 8,
    "scale": 5,
    "delete": 7,
    "delete_collection": 2,
    "odd": 4,
}
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_VIEWS = (
    "application/json",
    "application/json",
    "application/json",
    "application/json",
    f"{_TABLE},application/json",
    f"{_PARTIAL},application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
)
_LABEL_SELECTORS = (
    "",
    "",
    "",
    "app=web",
    "app!=web",
    "tier in (a,b)",
    "tier notin (a)",
    "app",
    "!app",
    "a==b,",
    "app>1",
    "bad!",
)
_FIELD_SELECTORS = ("metadata.name=a", "metadata.name!=a", "metadata.namespace=default", "data.x=1", "metadata.name=a,")


def merge(document: Json, part: Json) -> None:
    """Merge a part into a document, dict by dict."""
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            merge(document[key], value)
        else:
            document[key] = copy.deepcopy(value)


def scenario_of(seed: int, kind: FuzzKind, length: int) -> list[Step]:
    """Return the scenario of a seed."""
    return ScenarioGenerator(random.Random(f"{seed} {kind.name}"), kind).generate(length)
