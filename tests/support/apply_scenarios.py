"""Scenarios on one object: random applies, random edits of other clients, restarts, values that the server rewrites.

After each apply, whatever happened before:

- every desired field has its value, as far as the server stores it unchanged;
- fields that were desired before and are not desired now are gone, unless another manager owns them;
- the same apply once more sends nothing; after a restart it sends at most one request, which changes nothing, and only
  where the server stores a value other than the one it received.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from apply_rig import MANAGER, ApplyRig
from konverge.cache import CacheOptions
from konverge.client import has_condition
from konverge.errors import ApiError, Invalid
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.objects import Kind, Quantity, Resource, Unstructured, from_wire

__all__ = [
    "MERGES",
    "STRATEGIC",
    "Gadget",
    "Step",
    "deployments",
    "gadgets",
    "install_gadgets",
    "run_scenario",
    "steps",
]

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

# The keys of the items of lists, by the name of the field. All other lists are atomic.
KEYED: dict[str, dict[str, Any]] = {
    "containers": {"name": None},
    "env": {"name": None},
    "ports": {"containerPort": None, "protocol": "TCP"},
    "rules": {"name": None, "port": 80},
    "ownerReferences": {"uid": None},
}
SETS = {"tags", "finalizers"}
QUANTITIES = {"cpu", "memory"}


class Gadget(Resource, identity=Kind("scenarios.example.com", "v1", "Gadget", "gadgets")):
    """A custom resource whose schema has every type of list and map."""

    spec: dict[str, Any] | None = None


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.scenarios.example.com"},
    "spec": {
        "group": "scenarios.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "default": 3},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "rules": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name", "port"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "port": {"type": "integer", "default": 80},
                                                "action": {"type": "string"},
                                            },
                                        },
                                    },
                                    "words": {"type": "array", "items": {"type": "string"}},
                                    "options": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "whole": {
                                        "type": "object",
                                        "additionalProperties": {"type": "string"},
                                        "x-kubernetes-map-type": "atomic",
                                    },
                                    "blob": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


# Desired states


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Return dicts with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def listed(names: list[str], item: Any) -> st.SearchStrategy[list[Any]]:
    """Return lists of items, each name at most once, in any order."""
    chosen = st.lists(st.sampled_from(names), unique=True, max_size=len(names))
    return chosen.flatmap(lambda picked: st.tuples(*(item(name) for name in picked))).map(list)


VALUES = st.sampled_from(["", "1", "2"])
LABELS = some(a=st.sampled_from(["1", "2"]), b=st.just("1"), shared=st.just("1"))
PORTS = st.lists(
    st.sampled_from([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 81}]),
    unique_by=str,
)


def containers(names: list[str]) -> st.SearchStrategy[Json]:
    def of(name: str) -> st.SearchStrategy[Json]:
        return st.fixed_dictionaries(
            {"name": st.just(name), "image": st.sampled_from(["app:1", "app:2"])},
            optional={
                "env": listed(
                    ["A", "B", "C"], lambda one: st.fixed_dictionaries({"name": st.just(one), "value": VALUES})
                ),
                "ports": PORTS,
                "args": st.lists(st.sampled_from(["-a", "-b"])),
                "resources": some(
                    limits=some(
                        cpu=st.sampled_from(["1", "1000m", "0.5"]), memory=st.sampled_from(["1Gi", "1024Mi", "5M"])
                    )
                ),
            },
        )

    return listed(names, of)  # type: ignore[return-value]


@st.composite
def deployments(draw: st.DrawFn) -> Json:
    pod: Json = draw(some(nodeSelector=some(disk=st.just("ssd")), hostNetwork=st.booleans()))
    pod.pop("hostNetwork", None) if pod.get("hostNetwork") else None  # it would ask for host ports
    pod["containers"] = [{"name": "app", "image": "app:1"}, *draw(containers(["side", "log"]))]
    if draw(st.booleans()):
        pod["containers"] = draw(containers(["app", "side"])) or pod["containers"]
    spec = {
        **draw(some(replicas=st.integers(0, 3), minReadySeconds=st.integers(0, 2))),
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web", **draw(LABELS)}}, "spec": pod},
    }
    return {"metadata": {"name": "it", **draw(some(labels=LABELS, annotations=LABELS))}, "spec": spec}


def gadgets() -> st.SearchStrategy[Json]:
    texts = some(x=VALUES, y=VALUES)
    spec = some(
        size=st.integers(0, 4),
        tags=st.lists(st.sampled_from(["red", "green", "blue"]), unique=True),
        rules=st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["in", "out"])},
                optional={"port": st.sampled_from([80, 81]), "action": VALUES},
            ),
            unique_by=lambda rule: (rule["name"], rule.get("port", 80)),
        ),
        words=st.lists(st.sampled_from(["x", "y"])),
        options=texts,
        whole=texts,
        blob=some(deep=texts, words=st.lists(VALUES), number=st.sampled_from([0, 1, 1.5, True])),
    )
    desired = st.fixed_dictionaries({}, optional={"spec": spec})
    return st.builds(lambda labels, more: {"metadata": {"name": "it", **labels}, **more}, some(labels=LABELS), desired)


# Steps


@dataclass(frozen=True)
class Step:
    """One step: an apply, an edit of another client, a restart, or a delete."""

    what: str
    body: Any = None
    seen: bool = True


STRATEGIC: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"metadata": {"labels": {"a": "9"}}},
        {"metadata": {"labels": {"a": None, "theirs": "1"}}},
        {"metadata": {"annotations": {"b": "9"}}},
        {"spec": {"replicas": 9}},
        {"spec": {"minReadySeconds": None}},
        {"spec": {"template": {"spec": {"nodeSelector": {"disk": "hdd"}}}}},
        {"spec": {"template": {"spec": {"nodeSelector": None}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:9"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "theirs", "image": "app:9"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": [{"name": "A", "value": "9"}]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": [{"name": "Z", "value": "9"}]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": [{"name": "B", "$patch": "delete"}]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "args": ["-z"]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}},
        {"metadata": {"managedFields": [{}]}},
    ]
)
MERGES: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"metadata": {"labels": {"a": "9", "theirs": "1"}}},
        {"metadata": {"labels": None}},
        {"spec": {"size": 9}},
        {"spec": {"size": None}},
        {"spec": {"tags": ["blue", "theirs", "red"]}},
        {"spec": {"rules": [{"name": "theirs"}, {"name": "in", "action": "9"}]}},
        {"spec": {"words": ["z"]}},
        {"spec": {"options": {"x": "9", "theirs": "1"}}},
        {"spec": {"options": {"x": None}}},
        {"spec": {"whole": {"theirs": "1"}}},
        {"spec": {"blob": {"deep": {"x": "9"}, "more": [1, 2]}}},
        {"spec": {"blob": None}},
        {"spec": None},
        {"metadata": {"managedFields": [{}]}},
    ]
)


def steps(desired: st.SearchStrategy[Json], edits: st.SearchStrategy[Json]) -> st.SearchStrategy[list[Step]]:
    one = st.one_of(
        st.builds(Step, st.just("apply"), desired),
        st.builds(Step, st.just("apply"), desired),
        st.builds(Step, st.just("edit"), edits, st.booleans()),
        st.builds(Step, st.just("force"), desired),
        st.sampled_from([Step("restart"), Step("delete"), Step("repeat"), Step("status")]),
    )
    return st.lists(one, min_size=1, max_size=8)


class Scenario:
    """A scenario on one object: the desired state, and the fields desired since managedFields were last reset."""

    def __init__(self, rig: ApplyRig, kind: type[Resource]) -> None:
        self.rig = rig
        self.kind = kind
        self.patch_type: Any = "merge" if kind is Gadget else "strategic"
        self.desired: Json | None = None
        self.before: set[Path] = set()

    async def run_step(self, step: Step) -> None:
        if step.what == "apply":
            self.desired = step.body
            await self.apply_and_check()
        elif step.what == "repeat" and self.desired is not None:
            await self.apply_and_check()
        elif step.what == "restart":
            self.rig.restarted()
        else:
            await self.run_other_client(step)
            if step.seen:
                await self.rig.seen(self.kind, "it")

    async def run_other_client(self, step: Step) -> None:
        rig, key = self.rig, self.rig.key("it")
        try:
            if step.what == "edit":
                await rig.others.patch(self.kind, key, step.body, patch_type=self.patch_type)
            elif step.what == "force":
                await rig.others.apply(from_wire(self.kind, step.body), force=True)
            elif step.what == "delete":
                await rig.others.delete(self.kind, key)
            elif step.what == "status":
                await rig.others.patch(self.kind, key, {"status": {"observedGeneration": 7}}, subresource="status")
        except ApiError:
            return
        if "managedFields" in str(step.body) or step.what == "delete":
            self.before = set()

    async def apply_and_check(self) -> None:
        assert self.desired is not None
        rig, obj = self.rig, from_wire(self.kind, self.desired)
        try:
            await rig.applier.apply(obj)
            await rig.seen(self.kind, "it")
            await rig.applier.apply(obj)  # the first apply may have compared with an older state
        except Invalid:
            # An item that others still own in part may be invalid without our fields.
            self.before |= set(leaves(self.desired))
            return
        live = await rig.live(self.kind, "it")
        self.check_values(live)
        rig.sent.clear()
        await rig.applier.apply(obj)
        assert rig.sent == []
        rig.restarted()
        await rig.applier.apply(obj)
        await rig.applier.apply(obj)
        assert rig.sent in ([], ["apply"])
        assert rig.sent == [] or is_rewritten(self.desired)
        assert (await rig.live(self.kind, "it"))["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]

    def check_values(self, live: Json) -> None:
        assert self.desired is not None
        expected = set(leaves(self.desired))
        problems = list(differences(self.desired, live, ""))
        assert not problems, problems
        present = set(leaves(live))
        for path in self.before - expected:
            assert path not in present or is_deletion_blocked(live, path) or has_default(path), path
        self.before = expected


# Checks


def differences(expected: Any, live: Any, name: str) -> Iterator[str]:
    """Yield the differences between a desired state and an object."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            inner = live.get(key) if isinstance(live, dict) else None
            yield from differences(value, inner, key)
    elif isinstance(expected, list) and name in KEYED:
        mine = [item_key(name, item) for item in expected]
        theirs = {item_key(name, item): item for item in live or []}
        if [key for key in theirs if key in mine] != mine:
            yield f"{name}: {mine} is not in {list(theirs)}"
        for key, item in zip(mine, expected, strict=True):
            yield from differences(item, theirs.get(key), "")
    elif isinstance(expected, list) and name in SETS:
        if [item for item in live or [] if item in expected] != expected:
            yield f"{name}: {expected} is not in {live}"
    elif not expected and not live:
        return  # the server leaves out empty values
    elif name in QUANTITIES:
        if Quantity(expected) != Quantity(live):
            yield f"{name}: {expected} is {live}"
    elif json.dumps(expected) != json.dumps(live):
        yield f"{name}: {expected} is {live}"


def item_key(name: str, item: Any) -> str:
    return json.dumps({key: item.get(key, default) for key, default in KEYED[name].items()})


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all leaves."""
    name = path[-1][2:] if path else ""
    if path == ("f:status",) or path in {("f:apiVersion",), ("f:kind",)}:
        return
    if path[:1] == ("f:metadata",) and len(path) == 2 and name not in ("labels", "annotations"):
        return
    if isinstance(value, dict) and value and name != "whole" and name not in ("nodeSelector", "selector"):
        for key, inner in value.items():
            yield from leaves(inner, (*path, f"f:{key}"))
    elif isinstance(value, list) and value and name in KEYED:
        for item in value:
            yield from leaves(item, (*path, "k:" + item_key(name, item)))
    elif isinstance(value, list) and name in SETS:
        yield from ((*path, "v:" + json.dumps(item)) for item in value)
    elif value or not isinstance(value, dict | list):
        yield path


def is_deletion_blocked(live: Json, path: Path) -> bool:
    """Report whether another manager owns a field, or an ancestor of it as a whole."""
    entries = [one for one in live["metadata"].get("managedFields", []) if one["manager"] != MANAGER]
    return any(_holds(one["fieldsV1"], path) for one in entries)


def _holds(tree: Json, path: Path) -> bool:
    for element in path:
        found = next((inner for one, inner in tree.items() if _canonical(one) == _canonical(element)), None)
        if found is None:
            return False
        tree = found
    return True


def _canonical(element: str) -> str:
    return element if element[:2] in ("f:", ".") else element[:2] + json.dumps(json.loads(element[2:]), sort_keys=True)


def has_default(path: Path) -> bool:
    """Report whether the server sets a default for a field; the key of an item stays with the item."""
    return path[-1] in ("f:replicas", "f:size", "f:port", "f:protocol", "f:name", "f:containerPort")


def is_rewritten(desired: Any) -> bool:
    """Report whether the server may store another value than it received: others may have filled an empty list."""
    text = json.dumps(desired)
    return any(mark in text for mark in ('"1000m"', '"0.5"', '"1024Mi"', "[]"))


# Scenarios


async def run_scenario(rig: ApplyRig, kind: type[Resource], steps: list[Step]) -> None:
    """Run steps on an object that does not exist yet, and check after each apply; delete it at the end."""
    rig.restarted()
    scenario = Scenario(rig, kind)
    for step in steps:
        await scenario.run_step(step)
    await rig.others.delete(kind, rig.key("it"), missing_ok=True)
    await rig.seen(kind, "it")


async def install_gadgets(rig: ApplyRig) -> None:
    """Install the CRD of gadgets, and cache them."""
    await rig.others.create(Unstructured(GADGETS))
    await rig.others.wait_for(
        CustomResourceDefinition, "gadgets.scenarios.example.com", has_condition("Established"), timeout=60
    )
    rig.cache.declare(Gadget, CacheOptions(manager=MANAGER, namespaces=(rig.namespace,)))
    await rig.cache.wait_for_sync(timeout=60)
