"""Hand-over of fields: which part of an object the other manager applies."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.reconcile.hand_over import part_to_hand_over

FIELDS: dict[str, Any] = {
    "f:metadata": {"f:annotations": {"f:example.com/size": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:ports": {
            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:name": {}},
            'k:{"containerPort":81,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
        },
    },
}
LIVE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Gadget",
    "metadata": {
        "name": "it",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "annotations": {"example.com/size": "1", "theirs": "2"},
        "managedFields": [{"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsV1": FIELDS}],
    },
    "spec": {
        "replicas": 3,
        "theirs": 1,
        "ports": [
            {"containerPort": 80, "protocol": "TCP", "name": "http", "hostPort": 1},
            {"containerPort": 81, "protocol": "TCP"},
        ],
    },
}
IDENTITY = {"name": "it", "namespace": "shop", "uid": "u"}


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (".spec.replicas", {"spec": {"replicas": 3}}),
        (
            '.spec.ports[containerPort=80,protocol="TCP"].name',
            {"spec": {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]}},
        ),
        (
            ".spec.ports",
            {
                "spec": {
                    "ports": [
                        {"containerPort": 80, "protocol": "TCP", "name": "http"},
                        {"containerPort": 81, "protocol": "TCP"},
                    ]
                }
            },
        ),
    ],
)
def test_the_part_has_the_owned_fields_at_the_path_and_the_uid(path: str, part: Any) -> None:
    assert part_to_hand_over(LIVE, path, manager="us") == {
        "apiVersion": "v1",
        "kind": "Gadget",
        "metadata": IDENTITY,
        **part,
    }


def test_a_key_with_dots_is_written_in_quotes() -> None:
    part = part_to_hand_over(LIVE, '.metadata.annotations["example.com/size"]', manager="us")
    assert part is not None
    assert part["metadata"] == {**IDENTITY, "annotations": {"example.com/size": "1"}}


@pytest.mark.parametrize("path", [".spec.theirs", ".status", '.spec.ports[containerPort=82,protocol="TCP"]'])
def test_fields_of_others_are_not_handed_over(path: str) -> None:
    assert part_to_hand_over(LIVE, path, manager="us") is None
    assert part_to_hand_over(LIVE, ".spec.replicas", manager="others") is None


@pytest.mark.parametrize("path", ["", ".", "spec.replicas", ".spec..replicas", ".spec.ports[0]", ".spec replicas["])
def test_an_invalid_path_is_rejected(path: str) -> None:
    with pytest.raises(ValueError) as caught:
        part_to_hand_over(LIVE, path, manager="us")
    example = "write one such as '.spec.replicas' or '.spec.ports[name=\"http\"].nodePort'"
    assert str(caught.value) == f"{path!r} is not a wire path: {example}"


@pytest.mark.parametrize(
    "path",
    [
        ".spec.ports[containerPort=80,protocol=TCP].name",
        ".spec.ports[containerPort=80, protocol=TCP].name",
        '.spec.ports[protocol="TCP",containerPort=80]["name"]',
    ],
)
def test_keys_may_be_written_in_any_order_and_strings_without_quotes(path: str) -> None:
    part = part_to_hand_over(LIVE, path, manager="us")
    assert part is not None
    assert part["spec"] == {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]}


def test_an_object_without_a_namespace_has_none_in_its_part() -> None:
    metadata = {name: value for name, value in LIVE["metadata"].items() if name not in ("namespace", "uid")}
    part = part_to_hand_over({**LIVE, "metadata": metadata}, ".spec.replicas", manager="us")
    assert part is not None
    assert part["metadata"] == {"name": "it"}
