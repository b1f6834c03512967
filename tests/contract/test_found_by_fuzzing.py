"""Differences that the differential fuzzer found: short named scenarios, with equal responses since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from both_servers import EmbeddedServerThread, RealServer
from differential import DifferentialRunner
from fuzz_catalog import KINDS
from fuzz_kinds import ABSENT
from fuzz_scenarios import Edit, Step
from konverge.testing import ControlPlane

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

MAPS = "/api/v1/namespaces/{ns}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
SERVICES = "/api/v1/namespaces/{ns}/services"


def config_map(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def deployment(name: str = "a") -> dict[str, Any]:
    return {"metadata": {"name": name}, **KINDS["deployments"].base}


def make(path: str, body: Any, query: str = "") -> Step:
    return Step("POST", path + query, body, JSON)


MISTYPED: list[dict[str, Any]] = [
    {"spec": {"replicas": "many"}},
    {"spec": {"replicas": 2.5}},
    {"spec": {"paused": "yes"}},
    {"spec": {"template": "text"}},
    {"spec": {"template": {"spec": {"containers": "text"}}}},
    {"metadata": {"labels": []}},
    {"metadata": {"labels": {"a": 1}}},
]
WATCH = [make(MAPS, config_map("zz-end")), Step("GET", f"{MAPS}?watch=1&resourceVersion={{rv:start}}", watch=True)]

PLAYS: dict[str, tuple[str, list[Step]]] = {
    "a version that is none on a get": (
        "configmaps",
        [make(MAPS, config_map()), Step("GET", f"{MAPS}/a?resourceVersion=abc")],
    ),
    "a version that is none on a create": ("configmaps", [make(MAPS, config_map(resourceVersion="abc"))]),
    "a version on a create, after its warnings": (
        "services",
        [
            make(
                SERVICES,
                {
                    "metadata": {"name": "a", "resourceVersion": "5"},
                    "spec": {"clusterIP": "None", "sessionAffinity": "ClientIP", "ports": [{"port": 80}]},
                },
            )
        ],
    ),
    "a continue token of the wrong length": ("configmaps", [Step("GET", f"{MAPS}?limit=1&continue=bogus")]),
    "an empty list of metadata": (
        "configmaps",
        [Step("GET", MAPS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")],
    ),
    "selectors that cannot be read beside options that cannot be": (
        "configmaps",
        [Step("GET", f"{MAPS}?labelSelector=a%3D%3Db%2C&resourceVersion=1&resourceVersionMatch=Bogus")],
    ),
    "a page of one name": (
        "configmaps",
        [
            make(MAPS, config_map("a")),
            make(MAPS, config_map("b")),
            Step("GET", f"{MAPS}?fieldSelector=metadata.name%3Da&limit=1", accept=TABLE),
            Step("GET", f"{MAPS}?fieldSelector=metadata.name%3Da&limit=1&resourceVersion=1"),
        ],
    ),
    "managed fields that are reset by an empty list": (
        "configmaps",
        [
            make(MAPS, config_map()),
            Step("PUT", f"{MAPS}/a", Edit("a", (("metadata.managedFields", []),)), JSON),
        ],
    ),
    "a self link on an update": (
        "configmaps",
        [
            make(MAPS, config_map()),
            Step("PATCH", f"{MAPS}/a", {"metadata": {"selfLink": "/x"}}, MERGE),
            Step("PUT", f"{MAPS}/a?dryRun=All", Edit("a", (("metadata.selfLink", "/y"),)), JSON),
        ],
    ),
    "two controllers among the owners": (
        "configmaps",
        [
            make(MAPS, config_map()),
            Step(
                "PUT",
                f"{MAPS}/a",
                Edit(
                    "a",
                    (
                        (
                            "metadata.ownerReferences",
                            [
                                {"apiVersion": "v1", "kind": kind, "name": "x", "uid": kind * 3, "controller": True}
                                for kind in ("A", "B")
                            ],
                        ),
                    ),
                ),
                JSON,
            ),
        ],
    ),
    "values of the wrong type in strategic patches": (
        "deployments",
        [
            make(DEPLOYMENTS, deployment()),
            *(Step("PATCH", f"{DEPLOYMENTS}/a", patch, STRATEGIC) for patch in MISTYPED),
        ],
    ),
    "a strategic patch that deletes everything": (
        "configmaps",
        [make(MAPS, config_map()), Step("PATCH", f"{MAPS}/a", {"$patch": "delete"}, STRATEGIC)],
    ),
    "a broken patch of an object that is not there": (
        "configmaps",
        [Step("PATCH", f"{MAPS}/a", None, kind) for kind in (MERGE, STRATEGIC, "application/json-patch+json")],
    ),
    "an apply to the status of an object that is not there": (
        "deployments",
        [
            Step(
                "PATCH",
                f"{DEPLOYMENTS}/a/status?fieldManager=m",
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": {"replicas": 1}},
                APPLY,
            )
        ],
    ),
    "a scale of zero, which nobody owns": (
        "deployments",
        [
            make(DEPLOYMENTS, deployment(), "?fieldManager=m1"),
            Step(
                "PUT",
                f"{DEPLOYMENTS}/a/scale?fieldManager=m2",
                {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 0}},
                JSON,
            ),
            Step("GET", f"{DEPLOYMENTS}/a"),
        ],
    ),
    "a deletion whose policy takes the last finalizer": (
        "configmaps",
        [
            make(MAPS, config_map()),
            Step("DELETE", f"{MAPS}/a?propagationPolicy=Foreground"),
            Step("DELETE", f"{MAPS}/a", {"kind": "DeleteOptions", "propagationPolicy": "Background"}, JSON),
            *WATCH,
        ],
    ),
    "an update that takes the last finalizer of an object that is being deleted": (
        "configmaps",
        [
            make(MAPS, config_map(finalizers=["ex.io/hold"])),
            Step("DELETE", f"{MAPS}/a"),
            Step("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}, "data": {"last": "words"}}, MERGE),
            *WATCH,
        ],
    ),
    "an update that makes the object, with a version that is none": (
        "services",
        [Step("PUT", f"{SERVICES}/a", Edit("a", (("metadata.resourceVersion", "abc"),)), JSON)],
    ),
    "an update of an object that only waits to go": (
        "services",
        [
            Step("PUT", f"{SERVICES}/a", Edit("a", (("metadata.deletionTimestamp", "2020-01-01T00:00:00Z"),)), JSON),
            Step("PUT", f"{SERVICES}/a", Edit("a", (("metadata.resourceVersion", ABSENT),)), JSON),
            Step("GET", f"{SERVICES}/a"),
        ],
    ),
    "the wrong uid in a rehearsal": (
        "deployments",
        [
            make(DEPLOYMENTS, deployment()),
            Step("PUT", f"{DEPLOYMENTS}/a?dryRun=All", Edit("a", (("metadata.uid", "1234"),)), JSON),
        ],
    ),
}


@pytest.fixture(scope="module")
def runner(control_plane: ControlPlane) -> Iterator[DifferentialRunner]:
    sessions_ = DifferentialRunner(EmbeddedServerThread(), RealServer(control_plane))
    yield sessions_
    for server in sessions_.servers:
        server.close()


@pytest.mark.parametrize("name", PLAYS)
def test_a_scenario_gives_equal_responses(runner: DifferentialRunner, name: str) -> None:
    kind, steps = PLAYS[name]

    differing = runner.run(KINDS[kind], steps)

    assert differing is None, f"step {steps[differing[0]]}\nembedded: {differing[1]}\nreal: {differing[2]}"
