"""Custom resources: the embedded server and the real one take and refuse the same, word for word."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import pytest

from cr_cases import SPECS, UPDATES, as_object, checking_schema, labelled, open_schema
from crd_cases import LIST_MAP, Json, definition, definition_cases, listed, obj, with_root
from konverge.testing import ControlPlane
from konverge_cluster.embedded_server import EmbeddedServer
from library_cases import LIBRARY
from recorded_api import RecordedApi, RecordingApi, is_recording
from rule_cases import BROKEN, EXPRESSIONS, OBJECTS, rule_schema
from server_pairs import DEFINITIONS, ServerPair
from two_servers import EmbeddedApi, RealApi

MERGE = {"content_type": "application/merge-patch+json"}
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
NAMESPACE = "default"

RECORDING = "custom-resources"


def group_of(name: str) -> str:
    return f"{name.replace(' ', '-')}.crds.example.com"


@pytest.fixture(scope="module", params=["recorded", pytest.param("real", marks=pytest.mark.control_plane)])
def pair(request: pytest.FixtureRequest, embedded_runner: asyncio.Runner) -> Iterator[ServerPair]:
    """Return the embedded and the real (or recorded) server for this file; each test has its own API group."""
    embedded = EmbeddedApi(EmbeddedServer(), embedded_runner)
    if request.param == "recorded":
        if not is_recording():
            yield ServerPair(embedded, RecordedApi(RECORDING))
            return
        pytest.skip("the recording is being made")
    plane: ControlPlane = request.getfixturevalue("control_plane")
    real = RealApi(plane)
    recorder = RecordingApi(real, RECORDING)
    yield ServerPair(embedded, recorder)
    if is_recording():
        recorder.save()
    for each in real.request("GET", DEFINITIONS).json()["items"]:
        real.request("DELETE", f"{DEFINITIONS}/{each['metadata']['name']}")


def collection(group: str, plural: str = "things", version: str = "v1") -> str:
    return f"/apis/{group}/{version}/namespaces/{NAMESPACE}/{plural}"


CASES = definition_cases()


@pytest.mark.parametrize("name", CASES)
def test_definitions_are_taken_and_refused_alike(pair: ServerPair, name: str) -> None:
    ours, theirs = pair.request("POST", f"{DEFINITIONS}?dryRun=All", CASES[name])

    assert ours == theirs


@pytest.fixture(scope="module")
def checked(pair: ServerPair) -> str:
    """The collection of a resource with all kinds of constraints."""
    group = group_of("checked")
    pair.install(with_root(checking_schema(), group=group))
    return group


# Only the first objects have fields that may be ignored.
VALIDATIONS = [(number, name) for name in ("Warn", "Strict") for number in range(len(SPECS))]
VALIDATIONS += [(number, "Ignore") for number in range(40)]


@pytest.mark.parametrize(("number", "validation"), VALIDATIONS)
def test_objects_are_taken_and_refused_alike(pair: ServerPair, checked: str, number: int, validation: str) -> None:
    body = as_object(SPECS[number], labelled(number), checked, "Thing")

    ours, theirs = pair.request("POST", f"{collection(checked)}?dryRun=All&fieldValidation={validation}", body)

    assert ours == theirs


@pytest.fixture(scope="module")
def tightened(pair: ServerPair) -> str:
    """The group of a resource whose schema came after its objects."""
    group = group_of("tightened")
    pair.install(with_root(open_schema(), group=group))
    for number, (old, _) in enumerate(UPDATES):
        for api in pair.servers:
            reply = api.request("POST", collection(group), as_object(old, labelled(number), group, "Thing"))
            assert reply.status == 201, reply.body

    def tighten(document: Json) -> None:
        document["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = checking_schema()

    for status, *_ in pair.edit(f"{DEFINITIONS}/things.{group}", tighten):
        assert status == 200
    # The real server takes a moment until the new schema holds.
    pair.await_status(f"{collection(group)}?dryRun=All", as_object({"small": 9}, "probe", group, "Thing"), 422)
    return group


@pytest.mark.parametrize("number", range(len(UPDATES)))
def test_what_was_wrong_before_may_stay_if_it_stays_the_same(pair: ServerPair, tightened: str, number: int) -> None:
    path = f"{collection(tightened)}/{labelled(number)}"

    def change(document: Json) -> None:
        document["spec"] = copy.deepcopy(UPDATES[number][1])

    ours, theirs = pair.edit(path, change)

    assert ours == theirs


@pytest.mark.parametrize("rule", [*BROKEN, *EXPRESSIONS, *LIBRARY])
def test_rules_compile_and_fail_to_compile_alike(pair: ServerPair, rule: str) -> None:
    ours, theirs = pair.request("POST", f"{DEFINITIONS}?dryRun=All", definition(rule_schema({"rule": rule})))

    assert ours == theirs


def _install_rules(pair: ServerPair, group: str, rules: list[str]) -> list[str]:
    """Make resources that have these rules between them, those that compile; return their plurals."""
    embedded = pair.servers[0]
    fine = [
        rule
        for rule in rules
        if embedded.request("POST", f"{DEFINITIONS}?dryRun=All", definition(rule_schema({"rule": rule}))).status == 201
    ]
    # All together would be too expensive for the server's taste.
    parts = [fine[start : start + 12] for start in range(0, len(fine), 12)]
    made = {f"ruled{number}s": rule_schema(*({"rule": each} for each in part)) for number, part in enumerate(parts)}
    pair.install(*(definition(schema, group=group, plural=plural) for plural, schema in made.items()))
    return list(made)


@pytest.fixture(scope="module")
def ruled(pair: ServerPair) -> list[str]:
    return _install_rules(pair, group_of("ruled"), EXPRESSIONS)


@pytest.mark.parametrize("number", range(len(OBJECTS)))
def test_rules_hold_and_break_alike(pair: ServerPair, ruled: list[str], number: int) -> None:
    for plural in ruled:
        body = as_object(OBJECTS[number], labelled(number), group_of("ruled"), plural[:-1].capitalize())

        ours, theirs = pair.request("POST", f"{collection(group_of('ruled'), plural)}?dryRun=All", body)

        assert ours == theirs


def test_functions_give_the_same_values_and_errors(pair: ServerPair) -> None:
    group = group_of("library")
    told: list[set[str]] = [set(), set()]
    for plural in _install_rules(pair, group, LIBRARY):
        body = as_object({}, "any", group, plural[:-1].capitalize())
        for texts, answer in zip(
            told, pair.request("POST", f"{collection(group, plural)}?dryRun=All", body), strict=True
        ):
            texts.update(answer[3] if answer[0] == 422 else (str(answer),))

    assert sorted(told[0] - told[1]) == sorted(told[1] - told[0])


def _versions(group: str) -> Json:
    """A resource with two versions, a status, a scale, columns, a field to select by, a deprecated version."""
    spec = obj(
        size={"type": "integer", "default": 1, "minimum": 0},
        color={"type": "string", "default": "red"},
        parts=listed({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}, **LIST_MAP),
        note={"type": "string", "nullable": True},
    )
    status = obj(ready={"type": "integer"}, phase={"type": "string", "enum": ["a", "b"]}, selector={"type": "string"})
    made = with_root(obj(spec=spec, status=status), group=group)
    old = made["spec"]["versions"][0] | {"name": "v1alpha1", "storage": False, "deprecated": True}
    old["schema"] = {
        "openAPIV3Schema": obj(spec=obj(size={"type": "integer"}, color={"type": "string"}), status=status)
    }
    new = made["spec"]["versions"][0]
    new["subresources"] = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.ready",
            "labelSelectorPath": ".status.selector",
        },
    }
    new["selectableFields"] = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]
    new["additionalPrinterColumns"] = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "its color"},
        {"name": "First", "type": "string", "jsonPath": ".spec.parts[0].name"},
        {"name": "Named", "type": "string", "jsonPath": '.spec.parts[?(@.name=="b")].name'},
        {"name": "Parts", "type": "string", "jsonPath": ".spec.parts"},
        {"name": "Note", "type": "string", "jsonPath": ".spec.note"},
        {"name": "Odd", "type": "date", "jsonPath": ".spec.color"},
        {"name": "Half", "type": "number", "jsonPath": ".spec.size"},
        {"name": "Flag", "type": "boolean", "jsonPath": ".spec.size"},
    ]
    made["spec"]["versions"].append(old)
    made["spec"]["names"] |= {"shortNames": [group.partition(".")[0]], "categories": ["all"]}
    return made


@pytest.fixture(scope="module")
def shop(pair: ServerPair) -> str:
    group = group_of("shop")
    pair.install(_versions(group))
    return group


def _thing(group: str, name: str, version: str = "v1", **parts: Any) -> Json:
    return {"apiVersion": f"{group}/{version}", "kind": "Thing", "metadata": {"name": name}, **parts}


Step = tuple[str, str, Any, dict[str, str]]
"""Method, path, body, headers."""


def _writes(shop: str) -> list[Step]:
    path, old = collection(shop), collection(shop, version="v1alpha1")
    one = f"{path}/one"
    more_than_status = {"status": {"ready": 4}, "spec": {"size": 1}, "metadata": {"labels": {"a": "b"}}}
    return [
        ("POST", path, _thing(shop, "one", spec={"size": 2, "parts": [{"name": "a"}]}, status={"ready": 9}), {}),
        ("POST", path, _thing(shop, "one", spec={}), {}),
        ("POST", path, _thing(shop, "two", spec={"color": "blue", "note": None}), {}),
        ("POST", old, _thing(shop, "three", "v1alpha1", spec={"size": 3}), {}),
        ("GET", one, None, {}),
        ("GET", f"{old}/one", None, {}),
        ("GET", f"{path}/three", None, {}),
        ("GET", old, None, {}),
        ("PATCH", one, {"spec": {"size": 5}}, MERGE),
        ("PATCH", one, {"spec": {"size": 5}}, MERGE),
        ("PATCH", one, {"spec": {"size": -1}}, MERGE),
        ("PATCH", one, {"status": {"ready": 7}}, MERGE),
        ("PATCH", one, {"spec": {"unknown": 7}}, MERGE),
        ("PATCH", f"{one}?fieldValidation=Strict", {"spec": {"unknown": 7}}, MERGE),
        ("PATCH", f"{one}/status", more_than_status, MERGE),
        ("PATCH", f"{one}/status", {"status": {"phase": "c"}}, MERGE),
        ("PATCH", f"{one}/status", {"status": {"phase": "a", "selector": "x=y"}}, MERGE),
        ("GET", f"{one}/status", None, {}),
        ("GET", f"{one}/scale", None, {}),
        ("PATCH", f"{one}/scale", {"spec": {"replicas": 8}}, MERGE),
        ("PATCH", f"{one}/scale", {"spec": {"replicas": -8}}, MERGE),
        ("PATCH", f"{one}/scale", {"spec": {"replicas": "x"}}, MERGE),
        ("GET", f"{old}/one/scale", None, {}),
        ("PUT", one, _thing(shop, "one", spec={}), {}),
    ]


def _reads_and_ends(shop: str) -> list[Step]:
    path, old = collection(shop), collection(shop, version="v1alpha1")
    one = f"{path}/one"
    return [
        ("GET", f"{path}?fieldSelector=spec.color%3Dblue", None, {}),
        ("GET", f"{path}?fieldSelector=spec.size%3D8", None, {}),
        ("GET", f"{path}?fieldSelector=spec.size!%3D8,spec.color%3Dred", None, {}),
        ("GET", f"{path}?fieldSelector=spec.note%3Dx", None, {}),
        ("GET", f"{old}?fieldSelector=spec.color%3Dblue", None, {}),
        ("GET", path, None, TABLE),
        ("GET", old, None, TABLE),
        ("GET", one, None, TABLE),
        ("GET", path, None, {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}),
        ("GET", f"{one}/unknown", None, {}),
        ("GET", f"/apis/{shop}/v1/things/one", None, {}),
        ("GET", f"/apis/{shop}/v2/things", None, {}),
        ("POST", path, {**_thing(shop, "four"), "kind": "Thang"}, {}),
        ("POST", path, {**_thing(shop, "four"), "apiVersion": f"{shop}/v9"}, {}),
        ("POST", path, {"metadata": {"name": "four"}}, {}),
        ("POST", path, _thing(shop, "Four"), {}),
        ("POST", path, {**_thing(shop, "four"), "metadata": {"name": "four", "finalizers": ["x", "a.b", "a.b/c"]}}, {}),
        ("PATCH", f"{path}/four", {"metadata": {"finalizers": ["x", "y"]}}, MERGE),
        ("DELETE", f"{path}/four", None, {}),
        ("PATCH", f"{path}/four", {"metadata": {"finalizers": None}}, MERGE),
        ("GET", f"{path}/four", None, {}),
        ("DELETE", one, None, {}),
        ("DELETE", path, None, {}),
        ("GET", path, None, {}),
    ]


def test_an_object_lives_the_same_life_on_both(pair: ServerPair, shop: str) -> None:
    for number, (method, where, body, headers) in enumerate([*_writes(shop), *_reads_and_ends(shop)]):
        ours, theirs = pair.request(method, where, body, **headers)

        assert ours == theirs, f"step {number}: {method} {where} {body}"


def test_discovery_and_openapi_show_a_resource_alike(pair: ServerPair, shop: str) -> None:
    for path in (f"/apis/{shop}", f"/apis/{shop}/v1", f"/apis/{shop}/v1alpha1"):
        ours, theirs = pair.request("GET", path)

        assert ours == theirs

    pair.settle(f"/openapi/v3/apis/{shop}/v1", lambda reply: reply.status == 200)
    name = ".".join(reversed(shop.split("."))) + ".v1.Thing"
    schemas = [
        api.request("GET", f"/openapi/v3/apis/{shop}/v1").json()["components"]["schemas"] for api in pair.servers
    ]
    assert schemas[0][name] == schemas[1][name]
    assert schemas[0][f"{name}List"] == schemas[1][f"{name}List"]


def _condition(reply: Any, kind: str) -> str:
    conditions = (reply.json().get("status") or {}).get("conditions") or ()
    return next((each["reason"] for each in conditions if each["type"] == kind), "")


def test_a_definition_lives_the_same_life_on_both(pair: ServerPair) -> None:
    group = group_of("definition")
    made = definition(group=group)
    path = f"{DEFINITIONS}/things.{group}"
    pair.install(made)

    ours, theirs = pair.request("GET", path)
    assert ours == theirs

    for change in (
        lambda document: document["spec"]["names"].update(kind="Other"),
        lambda document: document["spec"].update(scope="Cluster"),
        lambda document: document["spec"].update(group="other.example.com"),
        lambda document: document["spec"]["names"].update(plural="others"),
        lambda document: document["metadata"].pop("resourceVersion"),
        lambda document: document["status"].update(storedVersions=[]),
        lambda document: document["metadata"].update(labels={"a": "b"}),
        lambda document: document["spec"]["names"].update(shortNames=["thg"]),
        lambda document: document["spec"]["versions"][0].update(name="v2"),
        lambda document: document["spec"]["versions"].append(
            {**document["spec"]["versions"][0], "name": "v2", "storage": False}
        ),
    ):
        ours, theirs = pair.edit(path, change)
        assert ours == theirs

    def store_v2(document: Json) -> None:
        document["spec"]["versions"][0]["storage"] = False
        document["spec"]["versions"][1]["storage"] = True

    ours, theirs = pair.edit(path, store_v2)
    assert ours == theirs
    ours, theirs = pair.edit(path, lambda document: document["spec"]["versions"].pop(0))
    assert ours == theirs
    ours, theirs = pair.edit(path, lambda document: document["status"].update(storedVersions=["v2"]), f"{path}/status")
    assert ours == theirs
    ours, theirs = pair.edit(path, lambda document: document["spec"]["versions"].pop(0))
    assert ours == theirs


def test_two_definitions_that_want_the_same_names(pair: ServerPair) -> None:
    group = group_of("names")
    first, second = definition(group=group), definition(group=group, plural="others")
    second["spec"]["names"] |= {"kind": "Thing", "singular": "thing"}
    pair.install(first)

    ours, theirs = pair.request("POST", DEFINITIONS, second)
    assert ours == theirs
    loser = f"{DEFINITIONS}/others.{group}"
    pair.settle(loser, lambda reply: _condition(reply, "NamesAccepted") != "")
    ours, theirs = pair.request("GET", loser)
    assert ours == theirs
    ours, theirs = pair.request("GET", f"/apis/{group}/v1/others")
    assert ours == theirs

    for api in pair.servers:
        api.request("DELETE", f"{DEFINITIONS}/things.{group}")
    pair.settle(loser, lambda reply: _condition(reply, "Established") == "InitialNamesAccepted")
    ours, theirs = pair.request("GET", loser)
    assert ours == theirs


def test_a_definition_goes_after_its_last_instance(pair: ServerPair) -> None:
    group = group_of("deletion")
    pair.install(definition(group=group))
    path, things = f"{DEFINITIONS}/things.{group}", collection(group)
    held = _thing(group, "held") | {"metadata": {"name": "held", "finalizers": ["example.com/wait"]}}
    for body in (held, _thing(group, "free")):
        for api in pair.servers:
            assert api.request("POST", things, body).status == 201

    ours, theirs = pair.request("DELETE", path)
    assert ours == theirs
    pair.settle(things, lambda reply: len(reply.json()["items"]) == 1)
    ours, theirs = pair.request("GET", f"{things}/held")
    assert ours == theirs
    ours, theirs = pair.request("POST", things, _thing(group, "late"))
    assert ours == theirs
    ours, theirs = pair.request("PATCH", f"{things}/held", {"metadata": {"finalizers": None}}, **MERGE)
    assert ours == theirs
    pair.settle(path, lambda reply: reply.status == 404)
    pair.settle(things, lambda reply: reply.status == 404)
    ours, theirs = pair.request("GET", things)
    assert ours == theirs


TRANSITIONS: dict[str, tuple[Json, list[Json]]] = {
    "immutable": ({"rule": "self.n == oldSelf.n", "message": "n is immutable"}, [{"n": 1}, {"n": 1, "m": 2}, {"n": 2}]),
    "optional old": (
        {"rule": "!oldSelf.hasValue() || self.n >= oldSelf.value().n", "optionalOldSelf": True},
        [{"n": 3}, {"n": 4}, {"n": 1}],
    ),
    "tolerated": (
        {"rule": "self.n < 10", "messageExpression": "'n is too large'"},
        [{"n": 99}, {"n": 99, "m": 1}],
    ),
    "field path": (
        {"rule": "self.n < 10", "fieldPath": ".obj.a", "reason": "FieldValueRequired", "message": "too much"},
        [{"n": 5}, {"n": 50}],
    ),
    "duplicate": ({"rule": "self.n < 10", "reason": "FieldValueDuplicate"}, [{"n": 5}, {"n": 50}]),
    "bad message": ({"rule": "self.n < 10", "messageExpression": "self.s"}, [{"n": 5}, {"n": 50}]),
}


@pytest.mark.parametrize("name", TRANSITIONS)
def test_rules_about_changes_hold_and_break_alike(pair: ServerPair, name: str) -> None:
    rule, specs = TRANSITIONS[name]
    group = group_of(name)
    open_first = name == "tolerated"
    pair.install(definition(rule_schema(*([] if open_first else [rule])), group=group))
    path = f"{collection(group)}/one"
    ours, theirs = pair.request("POST", collection(group), as_object(specs[0], "one", group, "Thing"))
    assert ours == theirs
    if open_first:

        def tighten(document: Json) -> None:
            schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            schema["properties"]["spec"] = rule_schema(rule)

        pair.edit(f"{DEFINITIONS}/things.{group}", tighten)
        pair.await_status(f"{collection(group)}?dryRun=All", as_object(specs[0], "probe", group, "Thing"), 422)

    for spec in specs[1:]:

        def change(document: Json, spec: Json = spec) -> None:
            document["spec"] = copy.deepcopy(spec)

        ours, theirs = pair.edit(path, change)
        assert ours == theirs


GROWING = {"rule": "self.v >= oldSelf.v", "message": "v only grows"}
GROWING_ITEM = {
    **obj(name={"type": "string"}, v={"type": "integer"}),
    "required": ["name"],
    "x-kubernetes-validations": [GROWING],
}
POSITIVE = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}

PLACES: dict[str, tuple[Json, Any, Any]] = {
    "items of a list map": (
        listed(GROWING_ITEM, **LIST_MAP),
        [{"name": "a", "v": 2}, {"name": "b", "v": 2}],
        [{"name": "b", "v": 1}, {"name": "a", "v": 3}, {"name": "c", "v": 0}],
    ),
    "values of a map": (
        {"type": "object", "additionalProperties": POSITIVE},
        {"a": 1},
        {"a": 1, "b": 0, "c.d": -1},
    ),
    "a text": (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'no'", "message": "not that"}]},
        "yes",
        "no",
    ),
    "a list": (
        listed({"type": "integer"}, maxItems=5, **{"x-kubernetes-validations": [{"rule": "self.size() < 2"}]}),
        [1],
        [1, 2],
    ),
    "an embedded resource": (
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-validations": [{"rule": "self.metadata.name != self.kind"}],
        },
        {"kind": "A", "apiVersion": "v1", "metadata": {"name": "b"}},
        {"kind": "A", "apiVersion": "v1", "metadata": {"name": "A"}},
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_rules_are_told_of_where_they_stand(pair: ServerPair, name: str) -> None:
    schema, before, after = PLACES[name]
    group = group_of(name)
    pair.install(definition(obj(x=schema), group=group))
    path = f"{collection(group)}/one"
    ours, theirs = pair.request("POST", collection(group), as_object({"x": before}, "one", group, "Thing"))
    assert ours == theirs

    def change(document: Json) -> None:
        document["spec"] = {"x": copy.deepcopy(after)}

    ours, theirs = pair.edit(path, change)
    assert ours == theirs


def test_a_rule_of_the_whole_object_sees_its_name(pair: ServerPair) -> None:
    group = group_of("whole")
    schema = obj(spec={"type": "object"}) | {
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('x')", "message": "begin with x"}]
    }
    pair.install(with_root(schema, group=group))

    for name in ("xylophone", "piano"):
        ours, theirs = pair.request("POST", collection(group), _thing(group, name, spec={}))
        assert ours == theirs
