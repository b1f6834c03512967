"""CRDs and values judged by a real server.

What konverge lets pass is established, taken and kept; what it refuses is refused, at the same path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

import pytest

import wide_kinds as wide
from konverge.cli.sample import WebApp, WebAppSpec
from konverge.objects.codec import decode, from_wire, to_wire
from konverge.objects.edits import difference
from konverge.objects.metadata import ObjectMeta
from konverge.schema import (
    CustomResource,
    Meta,
    Spec,
    WebhookConversion,
    crd_for,
    find_violations,
    root_schema,
    to_yaml,
    validate,
)
from konverge.schema.defaults import prune_and_default
from konverge.testing import ControlPlane, HttpResponse
from schema_strategies import drawn, kind_for, mistakes_in, spec_of, structs, values_for

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Kind = type[CustomResource[Any, Any]]
KINDS, VALUES, MISTAKES = 50, 5, 10


def establish(plane: ControlPlane, crds: Sequence[dict[str, Any]]) -> None:
    """Create the CRDs and wait until all are established; none has a schema that is not structural."""
    for crd in crds:
        answer = plane.request("POST", DEFINITIONS, body=crd)
        assert answer.status == 201, (answer.json()["message"], json.dumps(crd))
    names = [f"crd/{crd['metadata']['name']}" for crd in crds]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    for crd in crds:
        found = plane.request("GET", f"{DEFINITIONS}/{crd['metadata']['name']}").json()
        conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def collection(kind: Kind) -> str:
    identity = kind.__kind__
    where = "/namespaces/default" if identity.namespaced else ""
    return f"/apis/{identity.api_version}{where}/{identity.plural}"


def post(plane: ControlPlane, kind: Kind, spec: Any, *, query: str = "", name: str = "") -> HttpResponse:
    identity = kind.__kind__
    metadata = {"name": name} if name else {"generateName": "it-"}
    body = {"apiVersion": identity.api_version, "kind": identity.kind, "metadata": metadata, "spec": spec}
    return plane.request("POST", f"{collection(kind)}{query}", body=body)


def try_out(plane: ControlPlane, kind: Kind, spec: Any) -> HttpResponse:
    return post(plane, kind, spec, query="?dryRun=All")


def patch(plane: ControlPlane, path: str, body: Any, sort: str = "merge-patch+json") -> HttpResponse:
    return plane.request("PATCH", path, body=body, headers={"Content-Type": f"application/{sort}"})


def server_paths(answer: HttpResponse) -> set[str]:
    """The paths that a refusal names. Keys of maps stand in brackets in some of them; a general remark has no path."""
    causes = answer.json()["details"]["causes"]
    plain = (re.sub(r"\[([^]]*[^]0-9][^]]*)\]", r".\1", cause["field"]) for cause in causes)
    return {f".{path}" for path in plain if path != "<nil>"}


def local_paths(kind: Kind, spec: Any) -> set[str]:
    root = root_schema(kind)
    return {violation.path for violation in find_violations(root, prune_and_default(root, {"spec": spec}))}


def spec_schema(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = root_schema(kind)["properties"]["spec"]
    return schema


def values_of(kind: Kind) -> list[Any]:
    return drawn(values_for(spec_schema(kind)), VALUES)


def mistakes_of(kind: Kind) -> list[tuple[str, Any]]:
    found = [mistake for value in values_of(kind) for mistake in mistakes_in(spec_schema(kind), value)]
    return found[:: max(1, len(found) // MISTAKES)]


@pytest.fixture(scope="module")
def wide_kinds(control_plane: ControlPlane) -> ControlPlane:
    """A server that has the kinds written by hand, and those drawn by hypothesis."""
    versions = (wide.ThingV1Alpha1, wide.ThingV1Beta1, wide.Thing)
    establish(control_plane, [*map(crd_for, wide.WIDE_KINDS), crd_for(*versions), crd_for(WithPatterns)])
    return control_plane


@pytest.fixture(scope="module")
def drawn_kinds(control_plane: ControlPlane) -> list[Kind]:
    """Kinds drawn by hypothesis, the same in every run, established."""
    kinds = [kind_for(spec, f"Drawn{place}x") for place, spec in enumerate(drawn(structs(2), KINDS))]
    establish(control_plane, [crd_for(kind) for kind in kinds])
    return kinds


def test_values_drawn_from_drawn_types_are_taken_and_come_back_equal(
    control_plane: ControlPlane, drawn_kinds: list[Kind]
) -> None:
    for kind in drawn_kinds:
        for spec in values_of(kind):
            sent = from_wire(kind, {"spec": spec})
            assert validate(sent) == []
            answer = post(control_plane, kind, to_wire(sent.spec))
            assert answer.status == 201, (answer.json()["message"], spec, root_schema(kind))
            # Only what `Default(...)` leaves to the server differs from what was sent.
            assert (
                decode(kind, answer.body).spec
                == from_wire(kind, prune_and_default(root_schema(kind), to_wire(sent))).spec
            )


def test_the_server_fills_in_what_konverge_foresees(control_plane: ControlPlane, drawn_kinds: list[Kind]) -> None:
    for kind in drawn_kinds:
        for spec in values_of(kind):
            answer = post(control_plane, kind, spec, query="?dryRun=All&fieldValidation=Strict")
            assert answer.status == 201, (answer.json()["message"], spec)
            # As objects: the server prints a large float as a whole number.
            assert (
                decode(kind, answer.body).spec
                == from_wire(kind, prune_and_default(root_schema(kind), {"spec": spec})).spec
            )


def test_a_broken_constraint_of_a_drawn_type_is_refused_by_both_at_one_path(
    control_plane: ControlPlane, drawn_kinds: list[Kind]
) -> None:
    for kind in drawn_kinds:
        for path, spec in mistakes_of(kind):
            answer = try_out(control_plane, kind, spec)
            assert answer.status == 422, (path, spec, answer.status, root_schema(kind))
            assert server_paths(answer) == local_paths(kind, spec), (path, spec, answer.json()["message"])
            assert f".spec{path}" in local_paths(kind, spec)


@pytest.mark.parametrize("kind", [kind for kind in wide.WIDE_KINDS if "default" in spec_schema(kind)])
def test_an_object_with_all_defaults_is_taken(wide_kinds: ControlPlane, kind: Kind) -> None:
    answer = post(wide_kinds, kind, {})

    assert answer.status == 201, answer.json()["message"]
    assert answer.json()["spec"] == spec_schema(kind)["default"]


def test_every_scalar_comes_back_as_it_was_sent(wide_kinds: ControlPlane) -> None:
    spec = {
        "text": "ä\n", "whole": 2**63 - 1, "number": 0.1, "flag": True, "data": "AP8=", "anything": {"a": [None, 1.5]},
        "at": "2026-01-01T00:00:00.123456Z", "time": "2026-01-01T00:00:00Z", "micro": "2026-01-01T00:00:00.000000Z",
        "day": "2024-02-29", "id": "123e4567-e89b-12d3-a456-426614174000", "span": "1h30m", "amount": "1500m",
        "port": "http", "alias": 80, "either": 1.5, "color": "red", "level": 2, "word": "b", "digit": 1,
    }  # fmt: skip

    answer = post(wide_kinds, wide.AllScalars, spec)

    assert answer.status == 201, answer.json()["message"]
    assert to_wire(decode(wide.AllScalars, answer.body).spec) == spec


def test_null_is_kept_where_the_type_has_none(wide_kinds: ControlPlane) -> None:
    answer = post(wide_kinds, wide.WithNulls, {"required": None, "nullable": None, "absent": None})

    assert answer.json()["spec"] == {"required": None, "nullable": None}


def test_unknown_fields_are_kept_where_the_type_says_so(wide_kinds: ControlPlane) -> None:
    port = {"name": "a", "port": 1, "new": 1}

    answer = post(
        wide_kinds, wide.WithMaps, {"open": {"new": 1}, "alsoOpen": port, "structs": {"a": port}, "raw": port}
    )

    found = answer.json()["spec"]
    assert found["open"] == {"known": 1, "new": 1}
    assert found["alsoOpen"]["new"] == found["raw"]["new"] == 1
    assert "new" not in found["structs"]["a"]


def test_a_type_that_contains_itself_is_kept_at_any_depth(wide_kinds: ControlPlane) -> None:
    deep = wide.Node(left=wide.Node(left=wide.Node(name="deep")), others=[wide.Node(name="other")])

    answer = post(wide_kinds, wide.Tree, {**to_wire(deep), "threes": [1, None]})

    assert answer.json()["spec"]["threes"] == [1, 3]
    assert decode(wide.Tree, answer.body).spec.left == deep.left
    assert decode(wide.Tree, answer.body).spec.others == deep.others


@pytest.mark.parametrize(
    ("spec", "path"),
    [({"share": "25"}, ".spec.share"), ({"share": -1}, ".spec.share"), ({"share": 3}, ""), ({"share": "3%"}, "")],
)
def test_a_number_or_a_text_has_the_constraints_of_each(wide_kinds: ControlPlane, spec: Any, path: str) -> None:
    answer = try_out(wide_kinds, wide.WithDefaults, spec)

    assert answer.status == (422 if path else 201)
    assert local_paths(wide.WithDefaults, spec) == {path} - {""} == (server_paths(answer) if path else set())


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"untyped": {}}, {".spec.untyped.apiVersion", ".spec.untyped.kind"}),
        ({"config": {"kind": "ConfigMap"}}, {".spec.config.apiVersion"}),
        ({"raw": {"apiVersion": "v1"}}, {".spec.raw.kind"}),
        ({"template": {"spec": {"containers": 5}}}, {".spec.template.spec.containers"}),
        ({"opaque": {"spec": {"containers": 5}}}, set()),
    ],
)
def test_an_embedded_object_is_checked_as_one(wide_kinds: ControlPlane, spec: Any, paths: set[str]) -> None:
    answer = try_out(wide_kinds, wide.WithEmbedded, spec)

    assert answer.status == (422 if paths else 201)
    assert local_paths(wide.WithEmbedded, spec) == paths == (server_paths(answer) if paths else set())


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"source": {}}, ".spec.source", "exactly one of git, image, namespace is required"),
        (
            {"source": {"image": "a", "namespace": "b"}},
            ".spec.source",
            "exactly one of git, image, namespace is required",
        ),
        ({"source": {"image": "a"}, "range": {"low": 5, "high": 1}}, ".spec.range.low", "low is above high"),
        ({"source": {"image": "a"}, "even": 3}, ".spec.even", "odd"),
        ({"source": {"image": "a"}, "half": 0}, ".spec.half", "should be >= 0.5"),
    ],
)
def test_a_broken_rule_is_refused_at_its_path(wide_kinds: ControlPlane, spec: Any, path: str, message: str) -> None:
    answer = try_out(wide_kinds, wide.WithRules, spec)

    assert answer.status == 422
    assert server_paths(answer) == {path}
    assert message in answer.json()["message"]


def test_one_of_a_union_is_told_without_the_server(wide_kinds: ControlPlane) -> None:
    assert local_paths(wide.WithRules, {"source": {}}) == {".spec.source"}
    assert local_paths(wide.WithRules, {"source": {"git": {"url": "x"}}}) == set()
    assert try_out(wide_kinds, wide.WithRules, {"source": {"git": {"url": "x"}}}).status == 201


def test_an_immutable_field_cannot_be_changed_and_a_root_rule_holds(wide_kinds: ControlPlane) -> None:
    made = post(wide_kinds, wide.WithRules, {"source": {"image": "a"}, "fixed": "x"}, name="fixed")

    refused = patch(wide_kinds, f"{collection(wide.WithRules)}/fixed", {"spec": {"fixed": "y"}})
    too_long = post(wide_kinds, wide.WithRules, {"source": {"image": "a"}}, name="a-name-that-is-too-long")

    assert made.status == 201
    assert server_paths(refused) == {".spec.fixed"}
    assert too_long.status == 422
    assert "the name is too long" in too_long.json()["message"]


def test_names_columns_scale_and_selectable_fields_work(wide_kinds: ControlPlane) -> None:
    for name, color in (("one", "red"), ("two", "blue")):
        assert post(wide_kinds, wide.Machine, {"color": color}, name=name).status == 201

    wide_kinds.kubectl("scale", "machine/one", "--replicas=5")
    table = wide_kinds.kubectl("get", "mach", "-o", "wide", "--field-selector=spec.color=red,spec.size=5")
    listed = wide_kinds.kubectl("get", "wide", "-o", "name")

    assert table.split("\n")[0].split() == ["NAME", "SIZE", "COLOR", "READY", "DONE", "TIER", "AGE"]
    assert table.split("\n")[1].split()[:3] == ["one", "5", "red"]
    assert len(table.strip().split("\n")) == 2
    assert {"machine.wide.example.com/one", "machine.wide.example.com/two"} <= set(listed.split())


def test_a_field_beside_the_spec_is_kept(wide_kinds: ControlPlane) -> None:
    made = wide.Data(metadata=ObjectMeta(name="beside"), spec=wide.Empty(), values={"a": "b"})

    answer = wide_kinds.request("POST", collection(wide.Data), body=to_wire(made))

    assert decode(wide.Data, answer.body).values == {"a": "b"}


def test_the_versions_of_a_kind_are_served_with_their_warnings(wide_kinds: ControlPlane) -> None:
    post(wide_kinds, wide.Thing, {"size": 4, "color": "red"}, name="both")

    old = wide_kinds.request("GET", f"{collection(wide.ThingV1Beta1)}/both")
    unserved = wide_kinds.request("GET", f"{collection(wide.ThingV1Alpha1)}/both")

    assert decode(wide.ThingV1Beta1, old.body).spec.color == "red"
    assert old.headers["warning"] == '299 - "use v1"'
    assert unserved.status == 404


@pytest.mark.parametrize(
    "conversion",
    [
        WebhookConversion(url="https://localhost:9443/convert"),
        WebhookConversion(service_name="hook", service_namespace="default", port=8443, ca_bundle="YQ=="),
    ],
)
def test_a_conversion_webhook_is_taken(control_plane: ControlPlane, conversion: WebhookConversion) -> None:
    crd = crd_for(wide.Thing, wide.ThingV1Beta1, conversion=conversion)
    crd["spec"]["group"] = "converted.example.com"
    crd["metadata"]["name"] = "things.converted.example.com"

    answer = control_plane.request("POST", f"{DEFINITIONS}?dryRun=All&fieldValidation=Strict", body=crd)

    assert answer.status == 201, answer.json()["message"]
    assert answer.json()["spec"]["conversion"]["strategy"] == "Webhook"


# A status


def test_a_status_has_its_defaults_from_the_first_write_on(wide_kinds: ControlPlane) -> None:
    path = f"{collection(wide.Machine)}/fresh"
    made = post(wide_kinds, wide.Machine, {}, name="fresh")
    machine = decode(wide.Machine, made.body)
    machine.status.phase = "Running"

    written = patch(wide_kinds, f"{path}/status", difference(machine))

    assert "status" not in made.json()
    assert difference(machine) == {"status": {"phase": "Running"}}
    assert written.json()["status"] == {"phase": "Running", "replicas": 0, "selector": ""}
    assert decode(wide.Machine, written.body).status == machine.status


def test_a_status_that_returns_to_its_default_is_written(wide_kinds: ControlPlane) -> None:
    path = f"{collection(wide.Machine)}/back"
    post(wide_kinds, wide.Machine, {}, name="back")
    machine = decode(wide.Machine, patch(wide_kinds, f"{path}/status", {"status": {"replicas": 3}}).body)
    machine.status.replicas = 0

    written = patch(wide_kinds, f"{path}/status", difference(machine))

    assert difference(machine) == {"status": {"replicas": None}}
    assert written.json()["status"]["replicas"] == 0


# A spec


def test_a_default_that_was_applied_is_owned_and_put_back(wide_kinds: ControlPlane) -> None:
    path = f"{collection(wide.Thing)}/owned"
    desired = to_wire(wide.Thing(metadata=ObjectMeta(name="owned"), spec=wide.Sized()))
    apply = f"{path}?fieldManager=operator&force=true"
    first = patch(wide_kinds, apply, desired, "apply-patch+yaml")
    edited = patch(wide_kinds, path, {"spec": {"size": 9}})

    again = patch(wide_kinds, apply, desired, "apply-patch+yaml")

    assert desired["spec"]["size"] == first.json()["spec"]["size"] == 1
    assert edited.json()["spec"]["size"] == 9
    assert again.json()["spec"]["size"] == 1


# Formats and patterns

TEXTS = {
    "": ["", "x", "%%", "ä"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"],
    "byte": ["YQ==", "YQ=", "YQ", "YW-_", "YWJj", "YWJj\n", "A==="],
    "cidr": ["10.0.0.0/8", "10.0.0.0", "10.0.0.0/33", "10.0.0.1/08", "fd00::/64", "fd00::/129", "::ffff:1.2.3.04/96"],
    "date": ["2026-01-01", "2026-1-1", "2026-02-29", "2024-02-29", "0000-02-29", "9999-12-31", "2026-01-01T00:00:00Z"],
    "date-time": [
        "2026-01-01T00:00:00Z", "2026-01-01t00:00:00z", "2026-01-01T24:00:00Z", "2026-01-01T23:59:60Z",
        "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.1+25:99", "2026-01-01T00:00Z",
        "2026-02-30T00:00:00Z", "2026-01-01T00:00:00,5Z", "0000-01-01T00:00:00Z", "2026-01-01T00:00:00ZTx",
    ],
    "duration": [
        "90s", "1h30m", "1.5h", "-10ms", "0", "2 days", "3 weeks", "1x", "s", "1", ".s", "1µs", "1h 5 min", "5 hr",
    ],
    "hexcolor": ["#fff", "fff", "#ffff", "#12345g", "ABCDEF"],
    "ipv4": ["10.0.0.1", "010.0.0.1", "256.0.0.1", "10.0.0", "::ffff:10.0.0.1", "10.0.0.1 ", "1.2.3.4.5", "1.2.3.0004"],
    "ipv6": ["::1", "fd00::1:2", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.1", "1::2::3", ":::", "::", "::1.2.3.04"],
    "k8s-long-name": ["a", "a.b-c.1", "-a", "a..b", "A", "a" * 64, "a" * 254],
    "k8s-short-name": ["a", "a-1", "-a", "a.b", "A", "a" * 63, "a" * 64],
    "mac": [
        "01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab", "01:23:45:67:89", "01:23:45:67:89:ag",
        "01:23:45:67:89:ab:cd:ef", "0123.4567.89ab.cdef", "01:23-45:67:89:ab", "123.4567.89ab",
    ],
    "ssn": ["123-45-6789", "123 45 6789", "123456789", "123-456789"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000", "123e4567", "g" * 32],
    "uuid3": ["123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174000"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-c456-426614174000"],
    "uuid5": ["123e4567-e89b-52d3-b456-426614174000", "123e4567-e89b-42d3-b456-426614174000"],
}  # fmt: skip
"""For each format that is checked here too: texts that have it, and texts that nearly have it."""


@pytest.mark.parametrize("name", [name for name in TEXTS if name])
def test_a_format_is_judged_as_the_server_judges_it(wide_kinds: ControlPlane, name: str) -> None:
    parts = spec_schema(wide.WithFormats)["properties"]
    field = next(wire for wire, part in parts.items() if part["items"]["format"] == name)
    spec = {field: [text for texts in TEXTS.values() for text in texts]}

    answer = try_out(wide_kinds, wide.WithFormats, spec)

    assert answer.status == 422
    differing = server_paths(answer) ^ local_paths(wide.WithFormats, spec)
    assert not {spec[field][int(path.split("[")[1][:-1])] for path in differing}


PATTERNS = [
    r"^a$", r"a", r"^\d+$", r"^\w+\s\w+$", r"[\d.]+", r"^[\w-]+$", r"^[^a-z]+$", r"^.$", r"^[a\]b]+$", r"^[]a]+$",
    r"^(?:a|b)+?c*$", r"^(?P<name>a)+$", r"(?i)^abc$", r"(?m)^a$", r"(?s)^a.b$", r"^a{2}$", r"^a{2,3}$", r"^a{2,}$",
    r"^\x61\t$", r"^a\.b\-c$", r"^a|b$", r"^(a(b(c)?)?)?$", r"\Aa", r"^é+$", r"^[é-ü]$", r"^$", r"^\$$", r"^a{,b$",
    r"^[\x41-\x43]$", r"^(?i:a)b$", r"^[+*?.(){}|^$]+$", r"^\s*$", r"^a{$", r"(?i)^k$", r"^[\s\d]$", r"^a??b$",
]  # fmt: skip
SAMPLES = [
    "", "a", "b", "ab", "abc", "ABC", "a\n", "\na", "a\nb", "aa", "aaa", "aaaa", "1", "12", "1.5", "\u0661", "é", "ü",
    "É", "a b", "a\u00a0b", "a\x0bb", "a_b c", "-", "]", "a]b", "a.b-c", "a\t", "$", "a{,b", "a{", "abb", "aab", "+*?",
    "K", "k", "\u212a", "\u017f", "B", " ", "\t\n\f\r ", "\x0b", "A",
]  # fmt: skip


def _spec_of_patterns() -> type[Spec]:
    return spec_of({f"p{place}": list[Annotated[str, Meta(pattern=text)]] for place, text in enumerate(PATTERNS)})


WithPatterns = kind_for(_spec_of_patterns(), "WithPatterns")


def test_a_pattern_is_read_as_the_server_reads_it(wide_kinds: ControlPlane) -> None:
    spec = {f"p{place}": SAMPLES for place in range(len(PATTERNS))}

    answer = try_out(wide_kinds, WithPatterns, spec)

    differing = server_paths(answer) ^ local_paths(WithPatterns, spec)
    named = re.compile(r"\.spec\.p(\d+)\[(\d+)\]")
    assert not [(PATTERNS[int(m[1])], SAMPLES[int(m[2])]) for m in map(named.fullmatch, differing) if m]


# The sample


def test_kubectl_applies_the_sample_as_yaml(control_plane: ControlPlane) -> None:
    control_plane.kubectl("apply", "-f", "-", input=to_yaml(crd_for(WebApp)))
    control_plane.kubectl("wait", "--for=condition=Established", "crd/webapps.example.com", "--timeout=30s")
    app = WebApp(metadata=ObjectMeta(name="shop", namespace="default"), spec=WebAppSpec(image="shop:1"))

    control_plane.kubectl("apply", "-f", "-", input=to_yaml(app))
    again = control_plane.kubectl("apply", "-f", "-", input=to_yaml(crd_for(WebApp), app))

    assert again.split("\n")[:2] == [
        "customresourcedefinition.apiextensions.k8s.io/webapps.example.com unchanged",
        "webapp.example.com/shop unchanged",
    ]
    assert control_plane.kubectl("get", "wa").split("\n")[0].split() == [
        "NAME",
        "IMAGE",
        "REPLICAS",
        "AVAILABLE",
        "AGE",
    ]
    assert "The number of replicas." in control_plane.kubectl("explain", "webapp.spec.replicas")


# What konverge refuses, the server refuses too

LIST_OF_PORTS = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
IMMUTABLE_TEXT = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "integer", "maximum": 3, "default": 5},
        {"type": "string", "enum": ["a"], "default": "b"},
        {"type": "string", "format": "byte", "default": ""},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "default": {}},
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": True}},
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
        {**LIST_OF_PORTS, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        {**LIST_OF_PORTS, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["title"]},
        {"type": "array", "items": IMMUTABLE_TEXT},
        {"type": "object", "additionalProperties": {"type": "array", "items": IMMUTABLE_TEXT}},
        {"type": "object", "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".nothing"}]},
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "optionalOldSelf": True}]},
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self\n> 1"}]},
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "reason": "Wrong"}]},
        *({"type": "string", "pattern": pattern} for pattern in (r"(?=a)", r"(?<!a)b", r"(a)\1", r"a++", r"\u0041")),
        *({"type": "string", "pattern": pattern} for pattern in (r"(?>a)", r"(?#a)", r"a{1001}", r"a\Z", r"a**")),
    ],
)
def test_a_schema_that_konverge_refuses_is_refused_by_the_server(control_plane: ControlPlane, part: Any) -> None:
    crd = crd_for(wide.Bare)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "properties": {"part": part},
    }

    answer = control_plane.request("POST", f"{DEFINITIONS}?dryRun=All", body=crd)

    assert answer.status == 422
    assert "openAPIV3Schema.properties[spec].properties[part]" in answer.json()["message"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"selectableFields": [{"jsonPath": ".spec.share"}]}, "selectableFields"),
        ({"selectableFields": [{"jsonPath": ".spec.color"}] * 2}, "selectableFields"),
        ({"selectableFields": [{"jsonPath": ".metadata.name"}]}, "selectableFields"),
        ({"subresources": {"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".status.a"}}}, "scale"),
        ({"additionalPrinterColumns": [{"name": "A", "type": "int", "jsonPath": ".spec"}]}, "additionalPrinterColumns"),
        ({"deprecated": True, "deprecationWarning": "a\nb"}, "deprecationWarning"),
        ({"name": "1"}, "versions[0].name"),
    ],
)
def test_a_definition_that_konverge_refuses_is_refused_by_the_server(
    control_plane: ControlPlane, change: dict[str, Any], path: str
) -> None:
    crd = crd_for(wide.NoSubresource)
    crd["spec"]["versions"][0] |= change

    answer = control_plane.request("POST", f"{DEFINITIONS}?dryRun=All", body=crd)

    assert answer.status == 422
    assert path in answer.json()["message"]
