"""The value types judged by a real server: what it prints, selects, keeps and refuses, we do too."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest

from konverge.k8s.coordination.v1 import Lease
from konverge.objects.codec import decode, encode
from konverge.objects.fields import FieldSelector
from konverge.objects.int_or_string import percent_errors
from konverge.objects.labels import LabelSelector
from konverge.objects.names import (
    dns_label_errors,
    dns_subdomain_errors,
    label_key_errors,
    label_value_errors,
    path_segment_errors,
    rfc1035_label_errors,
)
from konverge.objects.quantities import Quantity
from konverge.objects.times import MicroTime
from konverge.testing import ControlPlane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
# The most that the server takes: quantities of a device, devices of a slice.
DEVICE, SLICE = 32, 128

NUMBERS = [
    "0", "1", "5", "7", "8", "10", "12", "100", "999", "1000", "1001", "1023", "1024", "1025", "1536", "2048",
    "10000", "123456", "1000000", "1048576", "1073741824", "99999999999999", "100000000000000",
    "999999999999999999", "1000000000000000000", "9223372036854775807", "0.1", "0.5", "0.25", "0.001", "0.0001",
    "0.000000001", "0.0000000001", "1.5", "1.50", "1.500", "1.000", "1.0001", "1.0000000001", "2.048",
    "3.1415926535897", "1.", ".5", "00", "007", "0.0", "0100", "1234.5678", "12345678901234.123456789",
]  # fmt: skip
SUFFIXES = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3",
    "e+6", "e2", "e-9", "e-10", "e0", "e-15", "e12", "e03",
]  # fmt: skip
BEYOND = Quantity("1000E")
POWERS = re.compile(r"[eE][-+]?[0-9]+$|i$")


def quantity_texts() -> Iterator[str]:
    """Every number with every suffix and sign, and some at random."""
    for sign, number, suffix in product(["", "+", "-"], NUMBERS, SUFFIXES):
        yield f"{sign}{number}{suffix}"
    chance = random.Random(20260101)
    for _ in range(2000):
        whole = str(chance.randrange(10 ** chance.randrange(1, 22)))
        fraction = f".{chance.randrange(10**12):012}"[: chance.randrange(14)]
        yield f"{chance.choice(['', '-'])}{whole}{fraction}{chance.choice(SUFFIXES)}"


def slices(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def printed_by_the_server(plane: ControlPlane, texts: Sequence[str]) -> list[str]:
    """Have the server store the texts as capacities of devices, and read them back."""
    devices = [
        {"name": f"d{number}", "capacity": {f"q{index}": {"value": text} for index, text in enumerate(some)}}
        for number, some in enumerate(slices(texts, DEVICE))
    ]
    pool = {"name": "values", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "values.example.com", "allNodes": True, "pool": pool, "devices": devices}
    made = plane.request("POST", SLICES, body={"metadata": {"generateName": "values-"}, "spec": spec})
    assert made.status == 201, made.body
    path = f"{SLICES}/{made.json()['metadata']['name']}"
    kept = plane.request("GET", path).json()["spec"]["devices"]
    plane.request("DELETE", path)
    return [device["capacity"][f"q{index}"]["value"] for device in kept for index in range(len(device["capacity"]))]


def test_quantities_are_printed_as_the_server_prints_them(control_plane: ControlPlane) -> None:
    # Of the three families, only the decimal one has amounts that a 1.36 server loses; the next test but one has those.
    texts = [text for text in quantity_texts() if -BEYOND < Quantity(text) < BEYOND or POWERS.search(text)]

    printed = [shown for some in slices(texts, DEVICE * SLICE) for shown in printed_by_the_server(control_plane, some)]

    assert len(texts) > 5000
    ours = [Quantity(text).canonical() for text in texts]
    assert [found for found in zip(texts, printed, ours, strict=True) if found[1] != found[2]] == []


def test_what_the_server_prints_is_its_own_canonical_form(control_plane: ControlPlane) -> None:
    sums = [Quantity(one) + Quantity(other) for one, other in product(["1.5Gi", "100m", "-7k", "1e3"], NUMBERS[:20])]
    texts = [str(amount) for amount in sums]

    assert printed_by_the_server(control_plane, texts) == texts


def test_a_thousand_exa_and_more_is_where_we_keep_what_an_older_server_loses(control_plane: ControlPlane) -> None:
    assert printed_by_the_server(control_plane, ["1000E"])[0] in ("1", "1e21")
    assert Quantity("1000E").canonical() == "1e21"


@pytest.mark.parametrize("text", ["", "a", "1 Gi", "1gi", "1KB", "1mm", "1e", "--1", "1.2.3", "1_000", "0x10", "1E+"])
def test_the_server_refuses_the_texts_that_we_refuse(control_plane: ControlPlane, text: str) -> None:
    spec = {"limits": [{"type": "Pod", "max": {"cpu": text}}]}
    answer = post(control_plane, "/api/v1/namespaces/default/limitranges", {"metadata": {"name": "x"}, "spec": spec})

    assert answer["code"] == 400
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(text)


LABELS: list[dict[str, str]] = [
    {}, {"app": "web"}, {"app": "web", "tier": "front"}, {"app": "web", "tier": "back"}, {"app": "db"}, {"app": ""},
    {"tier": ""}, {"in": "notin"}, {"notin": "in"}, {"example.com/x": "5"}, {"example.com/x": "007"}, {"x": "3"},
    {"x": "12"}, {"x": "abc"}, {"x": "9223372036854775807"}, {"x": "9223372036854775808"}, {"app": "web", "x": "4"},
]  # fmt: skip

SELECTORS = [
    "",
    "app",
    "!app",
    "app=web",
    "app==web",
    "app!=web",
    "app=",
    "app!=",
    "app in (web)",
    "app in (web,db)",
    "app in ()",
    "app in (,db)",
    "app notin (web)",
    "app notin (web,)",
    "app notin ()",
    "x>3",
    "x<12",
    "x>3,x<12",
    "x>9223372036854775806",
    "example.com/x>5",
    "example.com/x in (5,007)",
    "in",
    "in in (notin)",
    "notin notin (in)",
    "!in,!notin",
    "app=web,tier",
    "app=web,!tier",
    "app=web,tier in (front,back)",
    "app,app!=db",
    "app=web,app=db",
    " app = web , tier notin ( front ) ",
]

BAD_SELECTORS = [
    "=",
    "a,",
    "a,,b",
    "a b",
    "a=b c",
    "!a=b",
    "!",
    "!!a",
    "a==(",
    "a in b",
    "a in (",
    "a in (b",
    "a in (b c)",
    "a in (b,",
    "a>b",
    "a>99999999999999999999",
    "-a=b",
    "a=-b",
    "a/b/c",
    "/a",
    "a/",
    "a in (-b,c,-d)",
    f"{'a' * 64}=b",
    f"a={'b' * 64}",
]


@pytest.fixture
def labelled(control_plane: ControlPlane, namespace: str) -> dict[str, dict[str, str]]:
    """Config maps with all sorts of labels, by name."""
    objects = {f"object-{index}": labels for index, labels in enumerate(LABELS)}
    for name, labels in objects.items():
        wish = {"metadata": {"name": name, "labels": labels}}
        assert control_plane.request("POST", config_maps(namespace), body=wish).status == 201
    return objects


def test_label_selectors_select_what_the_server_selects(
    control_plane: ControlPlane, namespace: str, labelled: dict[str, dict[str, str]]
) -> None:
    for text in SELECTORS:
        selector = LabelSelector.parse(text)
        ours = {name for name, labels in labelled.items() if selector.matches(labels)}
        for wire in (text, str(selector)):
            answer = control_plane.request("GET", f"{config_maps(namespace)}?labelSelector={quote(wire)}").json()
            assert {item["metadata"]["name"] for item in answer["items"]} == ours, wire


def test_bad_label_selectors_are_refused_in_the_words_of_the_server(control_plane: ControlPlane) -> None:
    for text in BAD_SELECTORS:
        answer = control_plane.request("GET", f"{config_maps('default')}?labelSelector={quote(text)}").json()
        assert answer["code"] == 400, text
        assert refusal(LabelSelector.parse, text) in answer["message"]


def test_field_selectors_select_what_the_server_selects(
    control_plane: ControlPlane, namespace: str, labelled: dict[str, dict[str, str]]
) -> None:
    for text in (
        "metadata.name=object-1",
        "metadata.name!=object-1",
        f"metadata.namespace={namespace},metadata.name==object-2",
        "metadata.name!=object-1,metadata.name!=object-2",
        r"metadata.name=a\,b\=c\\",
        ",",
        "metadata.name=",
    ):
        selector = FieldSelector.parse(text)
        ours = {name for name in labelled if selector.matches({"metadata.name": name, "metadata.namespace": namespace})}
        for wire in (text, str(selector)):
            answer = control_plane.request("GET", f"{config_maps(namespace)}?fieldSelector={quote(wire)}").json()
            assert {item["metadata"]["name"] for item in answer["items"]} == ours, wire


def test_bad_field_selectors_are_refused_in_the_words_of_the_server(control_plane: ControlPlane) -> None:
    for text in ["a", "metadata.name=b,c", r"metadata.name=\b", "metadata.name=\\", "metadata.name=b=c"]:
        answer = control_plane.request("GET", f"{config_maps('default')}?fieldSelector={quote(text)}").json()
        assert answer["code"] == 400, text
        assert refusal(FieldSelector.parse, text) in answer["message"]


@pytest.mark.parametrize("microsecond", [0, 1, 100_000, 123_456, 999_999])
def test_a_lease_comes_back_with_the_moment_that_was_sent(
    control_plane: ControlPlane, namespace: str, microsecond: int
) -> None:
    moment = MicroTime(2026, 1, 1, 12, 30, 59, microsecond, tzinfo=UTC)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    made = control_plane.request(
        "POST", path, body={"metadata": {"name": "lease"}, "spec": {"renewTime": moment.to_wire()}}
    )
    assert made.status == 201, made.body

    lease = decode(Lease, made.body)

    assert lease.spec is not None
    assert lease.spec.renew_time == moment
    assert decode(dict[str, Any], encode(lease)) == made.json()


def test_a_lease_with_a_plain_datetime_is_refused(control_plane: ControlPlane, namespace: str) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC).isoformat().replace("+00:00", "Z")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    refused = control_plane.request("POST", path, body={"metadata": {"name": "lease"}, "spec": {"renewTime": moment}})

    assert refused.status == 400


NAMES = ["a", "web-1", "1", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "a.b", "a..b", "A", "a_b", "-a", "a-", "a\n", "ä",
         "ä" * 130, "A" * 64, "a%", "..", "system:x"]  # fmt: skip

KEYS = ["app", "app.kubernetes.io/name", "A_b.c-9", "/app", "example.com/", "Example.com/app", "n" * 64,
        "p" * 254 + "/app", "a/b/c", "-a", "a b", "ä" * 40]  # fmt: skip


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def definition(plural: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"plural": plural, "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


@pytest.mark.parametrize(
    ("path", "make", "at", "check"),
    [
        ("/api/v1/namespaces/default/configmaps", named, "metadata.name", dns_subdomain_errors),
        ("/api/v1/namespaces", named, "metadata.name", dns_label_errors),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", named, "metadata.name", path_segment_errors),
        (DEFINITIONS, definition, "spec.names.plural", rfc1035_label_errors),
    ],
)  # fmt: skip
def test_names_are_refused_in_the_words_of_the_server(
    control_plane: ControlPlane, path: str, make: Callable[[str], Any], at: str, check: Callable[[str], list[str]]
) -> None:
    for name in NAMES:
        # Some kinds join what they have against a name, others list it.
        assert ",".join(complaints(post(control_plane, path, make(name)), at)) == ",".join(check(name)), name


def test_labels_are_refused_in_the_words_of_the_server(control_plane: ControlPlane) -> None:
    for key in KEYS:
        answer = post(control_plane, config_maps("default"), {"metadata": {"name": "x", "labels": {key: "v"}}})
        assert complaints(answer, "metadata.labels") == label_key_errors(key), key
    for value in [name for name in NAMES if name != "a\n"]:
        answer = post(control_plane, config_maps("default"), {"metadata": {"name": "x", "labels": {"key": value}}})
        assert complaints(answer, "metadata.labels") == label_value_errors(value), value


def test_percentages_are_refused_in_the_words_of_the_server(control_plane: ControlPlane) -> None:
    for text in ["25%", "0%", "-5%", "%", "2.5%", "a%"]:
        spec = {"minAvailable": text, "selector": {"matchLabels": {"app": "web"}}}
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        answer = post(control_plane, path, {"metadata": {"name": "x"}, "spec": spec})
        found = complaints(answer, "spec.minAvailable")
        assert found[:1] == percent_errors(text), text


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def post(plane: ControlPlane, path: str, body: object) -> Any:
    return plane.request("POST", f"{path}?dryRun=All", body=body).json()


def refusal(read: Callable[[str], object], text: str) -> str:
    with pytest.raises(ValueError) as caught:
        read(text)
    return str(caught.value)


def complaints(answer: Any, path: str) -> list[str]:
    """What the server has against what stands at that path, without the words around it."""
    causes = answer.get("details", {}).get("causes", []) if answer.get("kind") == "Status" else []
    found = [cause["message"] for cause in causes if cause["field"] == path]
    return [message.split(": ", 2)[2] for message in found if message.startswith("Invalid value")]
