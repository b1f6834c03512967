"""A differential fuzzer: generated requests to the real server and to the embedded one, with the same answers.

A run is a number of *plays*. A play has a namespace of its own on both servers and a list of steps that a seed decides,
before anything is sent: creates, reads, updates, the four kinds of patches by several managers, the subresources, lists
with selectors, pages and versions, deletions, and watches over all that happened. Steps name objects by letter; where a
step needs a version or an object of an earlier answer, each server's own is put in.

Answers are compared apart from uids, versions, times and addresses. What differs is reported with the shortest list of
steps that still shows it. Differences that are accepted stand in `ACCEPTED`, with the reason.

    python tests/contract/differential.py --requests 5000 [--seed 7] [--kind deployments]
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from both_servers import Heard, InnerServer, RealServer, Server
from fuzz_kinds import ABSENT, KINDS, METADATA, WIDGET_CRD, FuzzKind

__all__ = ["ACCEPTED", "Difference", "Stage", "Step", "fuzz", "play_of"]

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

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSION = re.compile(r"(resource version: |current: |ResourceVersion in (the precondition|record) \()\d+")
_GENERATED = re.compile(r"\bgen-[a-z0-9]{5}\b")
_NAMESPACE = re.compile(r"\bfuzz-\d+\b")
_SHOWN_OBJECT = re.compile(r'"\{\\".*\}"(?=: )')
_AGE = re.compile(r"(\d+m)?\d+s")


@dataclass(frozen=True)
class Edit:
    """A body made of the object that this server showed last, with changes by path."""

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


# Sending.


@dataclass
class Voice:
    """One server in one play: what it has shown so far."""

    server: Server
    namespace: str
    kind: FuzzKind
    last: dict[str, Json] = field(default_factory=dict)
    listed: Json = field(default_factory=dict)

    def ask(self, step: Step) -> Any:
        """Send a step; return what can be compared."""
        target = self._filled(step.path)
        headers = {"accept": step.accept} | ({"content-type": step.type} if step.type else {})
        if step.watch:
            events = self.server.watch(target, _is_sentinel)
            return masked([event for event in events if event["type"] != "BOOKMARK"])
        heard = self.server.ask(step.method, target, self._body(step), headers=headers)
        return self._told(heard, step)

    def _told(self, heard: Heard, step: Step) -> Any:
        kind = heard.headers.get("content-type", "")
        body = (
            heard.json()
            if kind.startswith("application/json") and heard.body
            else heard.body.decode("utf-8", "replace")
        )
        if heard.status < 300 and isinstance(body, dict):
            self._remember(body, step)
        shown = masked(body)
        if self.kind.custom and isinstance(shown, dict) and shown.get("reason") == "Invalid":
            _sort_causes(shown)
        return {"status": heard.status, "type": kind, "warnings": list(heard.warnings), "body": shown}

    def _remember(self, body: Json, step: Step) -> None:
        metadata = body.get("metadata") or {}
        if body.get("kind") == self.kind.kind and "dryRun" not in step.path and metadata.get("name"):
            self.last[metadata["name"]] = body
        elif str(body.get("kind", "")).endswith("List"):
            self.listed = metadata

    def _body(self, step: Step) -> object:
        if step.body is None:
            return None
        if isinstance(step.body, Edit):
            return self._edited(step.body)
        return json.loads(self._filled(json.dumps(step.body)))

    def _edited(self, edit: Edit) -> Json:
        base = self.last.get(edit.name) or {"metadata": {"name": edit.name}, **self.kind.base}
        document = copy.deepcopy(base)
        document.update(apiVersion=self.kind.api_version, kind=self.kind.kind)
        for path, value in edit.changes:
            change(document, path, json.loads(self._filled(json.dumps(value))) if value is not ABSENT else ABSENT)
        # The order of keys decides which of two mistakes is told, and the two servers show objects in different orders.
        ordered: Json = json.loads(json.dumps(document, sort_keys=True))
        return ordered

    def _filled(self, text: str) -> str:
        def found(match: re.Match[str]) -> str:
            what, _, name = match[1].partition(":")
            metadata = (self.last.get(name) or {}).get("metadata", {})
            values = {
                "ns": self.namespace,
                "rv": metadata.get("resourceVersion", "1"),
                "uid": metadata.get("uid", "none"),
                "list": self.listed.get("resourceVersion", "1"),
                "continue": quote(self.listed.get("continue") or "bogus"),
            }
            return str(values[what])

        return re.sub(r"\{(ns|rv:\w+|uid:\w+|list|continue)\}", found, text)


def _sort_causes(status: Json) -> None:
    """Bring the causes of a refused custom object into order: the real server checks its fields in any."""
    causes = status.get("details", {}).get("causes", [])
    if len(causes) > 1:
        causes.sort(key=json.dumps)
        status["message"] = status["message"].partition(": [")[0]


def _is_sentinel(event: Json) -> bool:
    return bool(event["type"] == "ERROR" or event["object"].get("metadata", {}).get("name") == SENTINEL)


def change(document: Json, path: str, value: Any) -> None:
    """Set or remove a field; parents that are not there are made."""
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


def masked(value: Any, key: str = "") -> Any:
    """The same value without what may differ between two servers.

    Three more things are overlooked: how often the same cause is repeated in a refusal (the real server checks the
    metadata of an update two to four times, by the kind), the order of conflicts (the real server has none), and the
    order of the keys in an object that a text shows.
    """
    if key == "causes" and isinstance(value, list):
        causes = list(dict.fromkeys(json.dumps(masked(each)) for each in value))
        return [json.loads(each) for each in (sorted(causes) if "FieldManagerConflict" in causes[0] else causes)]
    if isinstance(value, dict):
        return {name: masked(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [masked(each, key) for each in value]
    if key in ("nodePort", "healthCheckNodePort"):
        return "<port>"
    if not isinstance(value, str):
        return value
    if key in ("resourceVersion", "continue") and value:
        return f"<{key}>"
    if key == "cells" and _AGE.fullmatch(value):
        return "<age>"
    if key in ("clusterIP", "clusterIPs") and value.startswith("10."):
        return "<address>"
    for pattern, name in ((_UID, "<uid>"), (_TIME, "<time>"), (_GENERATED, "<generated>"), (_NAMESPACE, "<namespace>")):
        value = pattern.sub(name, value)
    return _SHOWN_OBJECT.sub("<object>", _VERSION.sub(r"\1<version>", value))


# Generating.


class Author:
    """Writes plays: everything is decided by the dice, nothing by what a server says."""

    def __init__(self, dice: random.Random, kind: FuzzKind) -> None:
        self.dice = dice
        self.kind = kind
        self.fields = {**METADATA, **kind.fields}

    def play(self, length: int) -> list[Step]:
        steps = [self.create() for _ in range(2)]
        while len(steps) < length - 2:
            steps.append(self._one_of(_WEIGHTS)(self))
        return [*steps, *self.ending()]

    def _one_of(self, weights: Mapping[str, int]) -> Callable[[Author], Step]:
        name = self.dice.choices(list(weights), list(weights.values()))[0]
        found: Callable[[Author], Step] = getattr(Author, name)
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
        """Requests that are wrong before anybody looks at the object."""
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
        """One more object, and a watch over the whole play that ends with it."""
        document = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **copy.deepcopy(self.kind.base)}
        document["metadata"] = {"name": SENTINEL, "labels": {"app": "web", "tier": "a"}}
        selector = quote(self.pick(["", "", "app=web", "tier in (a)"]))
        watch = self.path(watch="1", resourceVersion="{rv:start}", labelSelector=selector, timeoutSeconds="5")
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
    """Put a part into a document, dict by dict."""
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(document.get(key), dict):
            merge(document[key], value)
        else:
            document[key] = copy.deepcopy(value)


def play_of(seed: int, kind: FuzzKind, length: int) -> list[Step]:
    """The play that a seed decides."""
    return Author(random.Random(f"{seed} {kind.name}"), kind).play(length)


# Comparing.


@dataclass(frozen=True)
class Difference:
    """A step that two servers answer differently, with what led to it."""

    kind: str
    seed: int
    steps: tuple[Step, ...]
    embedded: Any
    real: Any

    def __str__(self) -> str:
        steps = "\n".join(f"  {step}" for step in self.steps)
        told = "\n".join(_differences(self.embedded, self.real))
        return f"{self.kind}, seed {self.seed}:\n{steps}\n{told}"


def _differences(mine: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two values differ, the embedded server's first."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = sorted(mine.keys() | theirs.keys())
        return [
            line
            for key in keys
            for line in _differences(mine.get(key, ABSENT), theirs.get(key, ABSENT), f"{path}.{key}")
        ]
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        return [
            line
            for i, (a, b) in enumerate(zip(mine, theirs, strict=True))
            for line in _differences(a, b, f"{path}[{i}]")
        ]
    return [] if mine == theirs else [f"    {path}: embedded {_shown(mine)}", f"    {path}: real     {_shown(theirs)}"]


def _shown(value: Any) -> str:
    return "nothing" if value is ABSENT else json.dumps(value)


Accepts = Callable[[Step, Any, Any], bool]


def _posts_to_object(step: Step, _mine: Any, _theirs: Any) -> bool:
    return step.method == "POST" and bool(re.search(r"/widgets/\w+$", step.path))


def _scales_with_wrong_type(step: Step, mine: Any, theirs: Any) -> bool:
    return (
        "/widgets/" in step.path
        and step.path.split("?")[0].endswith("/scale")
        and mine["status"] == theirs["status"] == 400
    )


def _told(answer: Any) -> str:
    """The message of a refusal."""
    return (
        str(answer["body"].get("message", "")) if isinstance(answer, dict) and isinstance(answer["body"], dict) else ""
    )


def _both_say(*parts: str) -> Accepts:
    """Both servers refuse with the same code, and both messages have these parts."""

    def accepts(_step: Step, mine: Any, theirs: Any) -> bool:
        told = (_told(mine), _told(theirs))
        return all(part in text for part in parts for text in told) and mine["status"] == theirs["status"] >= 400

    return accepts


def _loses_a_map(_step: Step, _mine: Any, theirs: Any) -> bool:
    return 'must be of type object: "null"' in _told(theirs)


ACCEPTED: list[tuple[Accepts, str]] = [
    (_posts_to_object, "the real server takes a POST to the path of a custom object for one to its collection"),
    (_scales_with_wrong_type, "for a wrong type in a custom resource's scale the real server names its own internals"),
    (_both_say("patch: Invalid value: <object>: "), "of two wrong values in a patched object either may be named"),
    (_both_say("cannot be handled as a"), "of a wrong kind and a wrong value in one object either may be named"),
    (_both_say("Object 'Kind' is missing in"), "with fieldValidation=Ignore the real server words this differently"),
    (
        _loses_a_map,
        "a map that lost its last key by apply is null on the real server, which then refuses its own object",
    ),
]
"""Differences that stay, each with its reason."""


def is_accepted(step: Step, mine: Any, theirs: Any) -> bool:
    return any(accepts(step, mine, theirs) for accepts, _ in ACCEPTED)


class Stage:
    """The two servers that plays run on."""

    def __init__(self, embedded: InnerServer, real: RealServer) -> None:
        self.servers: tuple[Server, Server] = (embedded, real)
        self._namespaces = itertools.count(1)
        self.requests = 0

    def prepare(self) -> None:
        """Give both servers the custom resource, and wait until it is served."""
        for server in self.servers:
            answer = server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGET_CRD)
            assert answer.status in (201, 409), answer.body
            probe = {"apiVersion": "fuzz.test/v1", "kind": "Widget", "metadata": {"name": "probe"}, "spec": {}}
            for _ in range(1000):
                if server.ask("POST", "/apis/fuzz.test/v1/namespaces/default/widgets?dryRun=All", probe).status == 201:
                    break

    def voices(self, kind: FuzzKind) -> list[Voice]:
        """A fresh namespace on both servers, with an object whose version is older than everything in the play."""
        namespace = f"fuzz-{next(self._namespaces):06d}"
        made = []
        for server in self.servers:
            body = {"metadata": {"name": namespace}}
            voice = Voice(server, namespace, kind)
            answer = server.ask("POST", "/api/v1/namespaces", body)
            assert answer.status == 201, answer.body
            voice.last["start"] = answer.json()
            made.append(voice)
        return made

    def run(self, kind: FuzzKind, steps: Iterable[Step]) -> tuple[int, Any, Any] | None:
        """Run a play until the servers differ; return the index of that step and both answers."""
        embedded, real = self.voices(kind)
        for index, step in enumerate(steps):
            self.requests += 1
            mine, theirs = embedded.ask(step), real.ask(step)
            if mine != theirs and not is_accepted(step, mine, theirs):
                return index, mine, theirs
        return None

    def judge(self, kind: FuzzKind, seed: int, length: int) -> Difference | None:
        """Run the play of a seed; a difference is reported with as few steps as still show it."""
        steps = play_of(seed, kind, length)
        found = self.run(kind, steps)
        if found is None:
            return None
        steps = steps[: found[0] + 1]
        for index in range(len(steps) - 2, -1, -1):
            fewer = steps[:index] + steps[index + 1 :]
            again = self.run(kind, fewer)
            if again is not None and again[0] == len(fewer) - 1:
                steps, found = fewer, again
        return Difference(kind.name, seed, tuple(steps), found[1], found[2])


def fuzz(
    stage: Stage, *, requests: int, seed: int = 0, kinds: Iterable[str] = KINDS, length: int = 30
) -> list[Difference]:
    """Run plays of all kinds in turn until so many requests were sent; return what differed."""
    found: list[Difference] = []
    stage.requests = 0
    for number, name in zip(itertools.count(seed * 1_000_000), itertools.cycle(list(kinds))):
        if stage.requests >= requests:
            return found
        difference = stage.judge(KINDS[name], number, length)
        if difference is not None:
            found.append(difference)
    return found


def main() -> int:
    from konverge.testing import ControlPlane

    parser = argparse.ArgumentParser(description="Send generated requests to a real server and to the embedded one.")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), action="append")
    chosen = parser.parse_args()
    embedded = InnerServer()
    with ControlPlane() as plane:
        stage = Stage(embedded, RealServer(plane))
        stage.prepare()
        found = fuzz(stage, requests=chosen.requests, seed=chosen.seed, kinds=chosen.kind or KINDS)
        for difference in found:
            sys.stdout.write(f"{difference}\n\n")
        sys.stdout.write(f"{stage.requests} requests to each server, {len(found)} differences\n")
        for server in stage.servers:
            server.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
