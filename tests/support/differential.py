"""A differential fuzzer: generated requests to the real server and to the embedded one, whose responses must be equal.

A run is a number of *scenarios*. A scenario has its own namespace on both servers and a list of steps that a seed
determines before anything is sent: creates, reads, updates, the four types of patches by several managers,
subresources, lists with selectors, pages and versions, deletions, and watches over all changes. Steps name objects by
letter; where a step needs a version or an object of an earlier response, each server's own is inserted.

Responses are compared without uids, versions, times and addresses. A difference is reported with the shortest list of
steps that reproduces it. Accepted differences are in `ACCEPTED`, with the reason.

    python tests/contract/differential.py --requests 5000 [--seed 7] [--kind deployments]
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from both_servers import EmbeddedServerThread, RealServer, Server, ServerResponse
from fuzz_catalog import KINDS
from fuzz_kinds import ABSENT, WIDGET_CRD, FuzzKind
from fuzz_scenarios import SENTINEL, Edit, Step, change, scenario_of

__all__ = ["ACCEPTED", "Difference", "DifferentialRunner", "Step", "fuzz", "scenario_of"]

Json = dict[str, Any]


# Runners of one process may share a real server.
_numbers = itertools.count(1)

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSION = re.compile(r"(resource version: |current: |ResourceVersion in (the precondition|record) \()\d+")
_GENERATED = re.compile(r"\bgen-[a-z0-9]{5}\b")
_NAMESPACE = re.compile(r"\bfuzz-\d+\b")
# The real server shows its own Go structs in some texts, and what changed in them.
_SHOWN_STRUCT = re.compile(r"Invalid value: \{.*?\}: (?=field is|`)")
_SHOWN_CHANGE = re.compile(r"(?<=if it was previously negative\)).*", re.DOTALL)
_SHOWN_OBJECT = re.compile(r'"\{\\".*\}"(?=: )')
_AGE = re.compile(r"(\d+m)?\d+s")


# Sending.


@dataclass
class ServerSession:
    """One server in one scenario, with the objects that it has returned so far."""

    server: Server
    namespace: str
    kind: FuzzKind
    last: dict[str, Json] = field(default_factory=dict)
    listed: Json = field(default_factory=dict)

    def request(self, step: Step) -> Any:
        """Send a step; return the comparable parts of the response."""
        target = self._filled(step.path)
        headers = {"accept": step.accept} | ({"content-type": step.type} if step.type else {})
        if step.watch:
            events = self.server.watch(target, _is_sentinel)
            return _distinct(masked([event for event in events if event["type"] != "BOOKMARK"]))
        response = self.server.request(step.method, target, self._body(step), headers=headers)
        return self._told(response, step)

    def _told(self, response: ServerResponse, step: Step) -> Any:
        kind = response.headers.get("content-type", "")
        body = (
            response.json()
            if kind.startswith("application/json") and response.body
            else response.body.decode("utf-8", "replace")
        )
        if response.status < 300 and isinstance(body, dict):
            self._remember(body, step)
        shown = masked(body)
        if self.kind.custom and isinstance(shown, dict) and shown.get("reason") == "Invalid":
            _sort_causes(shown)
        return {"status": response.status, "type": kind, "warnings": sorted(response.warnings), "body": shown}

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
        # The order of keys decides which of two errors is reported, and the servers return objects in different orders.
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


def _distinct(events: list[Any]) -> list[Any]:
    """Return events without duplicates: nulls that the real server stores but does not return cause duplicates."""
    shown: dict[str, str] = {}
    found = []
    for event in events:
        name, text = event["object"].get("metadata", {}).get("name", ""), json.dumps(event, sort_keys=True)
        if shown.get(name) != text:
            found.append(event)
        shown[name] = text
    return found


def _sort_causes(status: Json) -> None:
    """Sort the causes of an invalid custom object: the real server validates its fields in random order."""
    causes = status.get("details", {}).get("causes", [])
    if len(causes) > 1:
        causes.sort(key=json.dumps)
        status["message"] = status["message"].partition(": [")[0]


def _is_sentinel(event: Json) -> bool:
    return bool(event["type"] == "ERROR" or event["object"].get("metadata", {}).get("name") == SENTINEL)


def masked(value: Any, key: str = "") -> Any:
    """Return a value without the parts that may differ between two servers.

    Also ignored are: repeated causes in an error (the real server validates the metadata of an update two to four
    times, depending on the kind), the order of conflicts and of warnings, the order of managed fields (it depends on
    the second of a write), and the order of the keys in an object that a message contains.
    """
    if key == "causes" and isinstance(value, list):
        causes = list(dict.fromkeys(json.dumps(masked(each)) for each in value))
        return [json.loads(each) for each in (sorted(causes) if "FieldManagerConflict" in causes[0] else causes)]
    if key == "managedFields" and isinstance(value, list):
        return sorted((masked(each) for each in value), key=lambda entry: json.dumps(entry, sort_keys=True))
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
    if key in ("clusterIP", "clusterIPs", "cells") and value.startswith("10."):
        return "<address>"
    for pattern, name in ((_UID, "<uid>"), (_TIME, "<time>"), (_GENERATED, "<generated>"), (_NAMESPACE, "<namespace>")):
        value = pattern.sub(name, value)
    value = _SHOWN_STRUCT.sub("Invalid value: <object>: ", _SHOWN_CHANGE.sub("", value))
    return _SHOWN_OBJECT.sub("<object>", _VERSION.sub(r"\1<version>", value))


# Comparing.


@dataclass(frozen=True)
class Difference:
    """A step with different responses from the two servers, with the steps before it."""

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
    """Return the differences of two values, the embedded server's first."""
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


def _told(response: Any) -> str:
    """Return the message of an error response."""
    return (
        str(response["body"].get("message", ""))
        if isinstance(response, dict) and isinstance(response["body"], dict)
        else ""
    )


def _both_say(*parts: str) -> Accepts:
    """Accept errors with the same code whose messages both contain these parts."""

    def accepts(_step: Step, mine: Any, theirs: Any) -> bool:
        told = (_told(mine), _told(theirs))
        return all(part in text for part in parts for text in told) and mine["status"] == theirs["status"] >= 400

    return accepts


def _makes_by_status(step: Step, mine: Any, theirs: Any) -> bool:
    return (
        bool(re.search(r"/services/\w+/status", step.path)) and mine["status"] == 404 and theirs["status"] in (409, 422)
    )


def _allocates_first(step: Step, _mine: Any, theirs: Any) -> bool:
    return "/services" in step.path and "spec.ipFamilyPolicy: Unsupported value" in _told(theirs)


def _has_null_version(step: Step, _mine: Any, _theirs: Any) -> bool:
    return isinstance(step.body, dict) and None in (step.body.get("apiVersion", ""), step.body.get("kind", ""))


def _names_a_job_too_long(step: Step, _mine: Any, theirs: Any) -> bool:
    return "/jobs" in step.path and "must be no more than 63 bytes" in _told(theirs)


def _is_of_another_version(step: Step, mine: Any, theirs: Any) -> bool:
    return (
        "does not match the expected API version" in _told(mine) and theirs["status"] == 400 and step.method == "POST"
    )


def _shows_empty_labels(_step: Step, mine: Any, theirs: Any) -> bool:
    return _told(mine).replace("Invalid value: null", "Invalid value: {}") == _told(theirs)


def _replaces_the_object(step: Step, _mine: Any, _theirs: Any) -> bool:
    return "merge-patch" in step.type and not isinstance(step.body, dict) and "fieldValidation=Ignore" in step.path


def _is_of_another_kind(step: Step, mine: Any, _theirs: Any) -> bool:
    return "/widgets" in step.path and "kind: Invalid value" in _told(mine)


def _loses_a_map(_step: Step, _mine: Any, theirs: Any) -> bool:
    return 'must be of type object: "null"' in _told(theirs)


ACCEPTED: list[tuple[Accepts, str]] = [
    (_posts_to_object, "the real server takes a POST to the path of a custom object for one to its collection"),
    (_scales_with_wrong_type, "for a wrong type in a custom resource's scale the real server names its own internals"),
    (_both_say("patch: Invalid value: <object>: "), "of two wrong values in a patched object either may be named"),
    (_both_say("cannot be handled as a"), "of a wrong kind and a wrong value in one object either may be named"),
    (_both_say("Object 'Kind' is missing in"), "with fieldValidation=Ignore the real server words this differently"),
    (_makes_by_status, "a write to the status of a service that is not there is taken for a create, and then refused"),
    (_allocates_first, "an IP family policy that is none is refused before anything else is looked at"),
    (
        _replaces_the_object,
        "a merge patch that is no object is read as one, unless validation is off: then as the result",
    ),
    (_names_a_job_too_long, "a job has the labels of its template already when a name that is too long is refused"),
    (_is_of_another_version, "a custom object of another version is refused before its other mistakes are seen"),
    (_shows_empty_labels, "labels that a patch emptied are shown as {}, those that were never there as null"),
    (_both_say('patch: Invalid value: "map['), "the real server shows a strategic patch after it took the nulls out"),
    (_is_of_another_kind, "a custom object of another kind is refused before its other mistakes are seen"),
    (_has_null_version, "null as the kind or the version of a custom object is answered with Go's own words"),
    (
        _loses_a_map,
        "a map that lost its last key by apply is null on the real server, which then refuses its own object",
    ),
]
"""Accepted differences, each with its reason."""


def is_accepted(step: Step, mine: Any, theirs: Any) -> bool:
    return any(accepts(step, mine, theirs) for accepts, _ in ACCEPTED)


class DifferentialRunner:
    """Runs scenarios on the two servers."""

    def __init__(self, embedded: EmbeddedServerThread, real: RealServer) -> None:
        self.servers: tuple[Server, Server] = (embedded, real)
        self.requests = 0

    def prepare(self) -> None:
        """Create the CRD on both servers, and wait until it is served."""
        for server in self.servers:
            response = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGET_CRD)
            assert response.status in (201, 409), response.body
            probe = {"apiVersion": "fuzz.test/v1", "kind": "Widget", "metadata": {"name": "probe"}, "spec": {}}
            for _ in range(1000):
                if (
                    server.request("POST", "/apis/fuzz.test/v1/namespaces/default/widgets?dryRun=All", probe).status
                    == 201
                ):
                    break

    def sessions(self, kind: FuzzKind) -> list[ServerSession]:
        """Create a namespace on both servers; its version is older than every object of the scenario."""
        namespace = f"fuzz-{next(_numbers):06d}"
        created = []
        for server in self.servers:
            body = {"metadata": {"name": namespace}}
            session = ServerSession(server, namespace, kind)
            response = server.request("POST", "/api/v1/namespaces", body)
            assert response.status == 201, response.body
            session.last["start"] = response.json()
            created.append(session)
        return created

    def run(self, kind: FuzzKind, steps: Iterable[Step]) -> tuple[int, Any, Any] | None:
        """Run a scenario until the servers differ; return the index of that step and both responses."""
        embedded, real = self.sessions(kind)
        for index, step in enumerate(steps):
            self.requests += 1
            mine, theirs = embedded.request(step), real.request(step)
            if mine != theirs and not is_accepted(step, mine, theirs):
                return index, mine, theirs
        return None

    def run_seed(self, kind: FuzzKind, seed: int, length: int) -> Difference | None:
        """Run the scenario of a seed; return a difference with the fewest steps that reproduce it."""
        steps = scenario_of(seed, kind, length)
        found = self.run(kind, steps)
        if found is None:
            return None
        steps = steps[: found[0] + 1]
        # A watch continues until it receives the object that was created before it.
        kept = 2 if steps[-1].watch else 1
        for index in range(len(steps) - 1 - kept, -1, -1):
            fewer = steps[:index] + steps[index + 1 :]
            again = self.run(kind, fewer)
            if again is not None and again[0] == len(fewer) - 1:
                steps, found = fewer, again
        return Difference(kind.name, seed, tuple(steps), found[1], found[2])


def fuzz(
    runner: DifferentialRunner, *, requests: int, seed: int = 0, kinds: Iterable[str] = KINDS, length: int = 30
) -> list[Difference]:
    """Run scenarios of all kinds in turn until `requests` requests have been sent; return the differences."""
    found: list[Difference] = []
    runner.requests = 0
    for number, name in zip(itertools.count(seed * 1_000_000), itertools.cycle(list(kinds))):
        if runner.requests >= requests:
            return found
        difference = runner.run_seed(KINDS[name], number, length)
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
    embedded = EmbeddedServerThread()
    with ControlPlane() as plane:
        runner = DifferentialRunner(embedded, RealServer(plane))
        runner.prepare()
        found = fuzz(runner, requests=chosen.requests, seed=chosen.seed, kinds=chosen.kind or KINDS)
        for difference in found:
            sys.stdout.write(f"{difference}\n\n")
        sys.stdout.write(f"{runner.requests} requests to each server, {len(found)} differences\n")
        for server in runner.servers:
            server.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
