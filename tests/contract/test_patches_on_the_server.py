"""The patch engines against a real API server: the same writes, the same objects, the same owners.

Each example is a sequence of writes by several managers, drawn by hypothesis, always the same ones. Before each write
the engine says what will come of it, from the server's live object; then the server does it. Two things make that
exact:

- What the engine gives is not defaulted. A dry-run PUT lets the server default it, and that is compared.
- Times are told apart by making the live ones old: every entry that the write gives a new time to stands out.

Known differences, none of which a generator here draws:

- A JSON patch `test` on a string with `<`, `>` or `&` fails on the real server, which compares the escaped bytes of its
  own encoding with the bytes of the patch.
- A strategic merge patch that deletes and adds the same item of a list of scalars: the real server does one or the
  other last, at random. The engine adds last.
- Where a configuration has several fields that the schema does not know, the real server names one of each map, picked
  at random; so does the engine, but always the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from konverge.testing import ControlPlane
from konverge_cluster.patches import (
    Endpoint,
    apply_merge_patch,
    apply_patch,
    custom_resource_topology,
    entries_of_object,
    entries_of_scale,
    manager_name,
    track_update,
)
from patch_writes import (
    CONTENT_TYPES,
    NOW,
    Json,
    PatchedResource,
    ResourcePath,
    Server,
    Write,
    ages,
    applied,
    compared,
    created,
    entry,
)
from patched_resources import CRD, GROUP, SCHEMA, config_maps_on, deployments_on, services_on, things_on
from random_patches import config_map, deployment, run, service, thing

BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[Server]:
    made = Server(control_plane)
    yield made
    made.close()


@pytest.fixture(scope="module")
def deployments(server: Server) -> PatchedResource:
    return deployments_on(server)


@pytest.fixture(scope="module")
def config_maps(server: Server) -> PatchedResource:
    return config_maps_on(server)


@pytest.fixture(scope="module")
def services(server: Server) -> PatchedResource:
    return services_on(server)


@pytest.fixture(scope="module")
def things(server: Server) -> PatchedResource:
    return things_on(server)


randoms = given(rng=st.randoms(use_true_random=True))


@BOUNDED
@randoms
def test_deployments_come_out_alike(deployments: PatchedResource, rng: Random) -> None:
    run(deployments, rng, deployment)


@BOUNDED
@randoms
def test_config_maps_come_out_alike(config_maps: PatchedResource, rng: Random) -> None:
    run(config_maps, rng, config_map)


@BOUNDED
@randoms
def test_services_come_out_alike(services: PatchedResource, rng: Random) -> None:
    run(services, rng, service)


@BOUNDED
@randoms
def test_custom_resources_come_out_alike(things: PatchedResource, rng: Random) -> None:
    run(things, rng, thing)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{}],
        [{"manager": ""}],
        [entry("other", {"f:data": {"f:a": {}}})],
        [entry("other", {"f:data": {"f:a": {}, "x:new": {}, "f:b": {".": {}}}, ".": {}})],
        [entry("other", {"f:data": {"f:a": {}}}, time="2019-12-31T23:00:00-01:00", operation="Apply")],
        [entry("other", {"f:data": {"f:a": {}}}), entry("other", {"f:data": {"f:b": {}}})],
        [entry("b", {"f:data": {"f:a": {}}}), entry("a", {"f:data": {"f:b": {}}}, subresource="status")],
        [entry("old", {"f:data": {"f:a": {}}}, apiVersion="v0"), entry("new", {"f:data": {"f:b": {}}})],
        [entry("bad", {"f:data": {}}, operation="Delete")],
        [entry("bad", {"f:data": {}}, fieldsType="FieldsV0")],
        [entry("bad", {"fdata": {}})],
        [entry("bad", {}, apiVersion="")],
        [entry("none", {})],
        None,
    ],
)
@pytest.mark.parametrize("changed", [True, False])
def test_clients_edit_managed_fields(config_maps: PatchedResource, entries: Any, changed: bool) -> None:
    live: Json | None = created(config_maps, {"data": {"a": "1", "b": "1"}})
    assert live is not None
    data = {"a": "2", "b": "1"} if changed else live["data"]
    sent = {**live, "metadata": {**live["metadata"], "managedFields": entries}, "data": data}
    live = compared(config_maps, live, Write("PUT", "m2", sent, config_maps.doors[0]))
    assert live is not None
    name = live["metadata"]["name"]
    live = compared(config_maps, live, Write("merge", "m3", {"data": {"b": "3"}}, config_maps.doors[0]))
    live = compared(config_maps, live, applied(config_maps, name, {"data": {"a": "4"}}))
    compared(config_maps, live, applied(config_maps, name, {"data": {"a": "4"}}, force=True))


def test_a_new_object_may_bring_managed_fields(config_maps: PatchedResource) -> None:
    entries = [entry("other", {"f:data": {"f:a": {}, "f:c": {}}})]
    created(config_maps, {"metadata": {"managedFields": entries}, "data": {"a": "1", "b": "1"}})


def test_the_oldest_of_too_many_updaters_are_folded(config_maps: PatchedResource) -> None:
    live: Json | None = created(config_maps, {"data": {"start": "1"}}, by="first")
    for number in range(14):
        patch = {"data": {f"k{number}": "1"}}
        live = compared(config_maps, live, Write("merge", f"u{number:02}", patch, config_maps.doors[0]))
    assert live is not None
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert "ancient-changes" in names
    assert len(names) == 10


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def client_side(data: Json, **more: Any) -> Json:
    """Give what kubectl's client-side apply would have written."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {}}, "data": data, **more}
    return {"metadata": {"annotations": {LAST_APPLIED: json.dumps(config)}}, "data": data}


@pytest.mark.parametrize("by", ["kubectl", "m1"])
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("drift", [{}, {"data": {"a": "9"}}, {"metadata": {"annotations": {LAST_APPLIED: "nonsense"}}}])
def test_kubectl_takes_over_from_client_side_apply(
    config_maps: PatchedResource, by: str, force: bool, drift: Json
) -> None:
    live: Json | None = created(config_maps, client_side({"a": "1", "b": "<&>"}), by="kubectl-client-side-apply")
    assert live is not None
    live = compared(config_maps, live, Write("merge", "other", drift, config_maps.doors[0]))
    name = live["metadata"]["name"] if live else ""
    said = {"metadata": {"annotations": {"x": "1"}}, "data": {"a": "2", "b": "<&>"}}
    live = compared(config_maps, live, applied(config_maps, name, said, by=by, force=force))
    compared(config_maps, live, applied(config_maps, name, {"data": {"a": "3"}}, by=by, force=force))


def test_kubectl_is_refused_what_client_side_apply_did_not_write(config_maps: PatchedResource) -> None:
    live: Json | None = created(config_maps, client_side({"a": "1"}), by="kubectl-client-side-apply")
    live = compared(config_maps, live, Write("merge", "other", {"data": {"b": "1"}}, config_maps.doors[0]))
    name = live["metadata"]["name"] if live else ""
    compared(config_maps, live, applied(config_maps, name, {"data": {"a": "2", "b": "2"}}, by="kubectl"))


@pytest.fixture(scope="module")
def scales(server: Server) -> Endpoint:
    topology = server.schemas("apis/autoscaling/v1").topology("io.k8s.api.autoscaling.v1.Scale")
    return Endpoint("autoscaling/v1", "Scale", {"autoscaling/v1": topology}, subresource="scale")


def scaled(live: Json, scale: Json, write: Write, endpoint: Endpoint) -> list[Json]:
    """Say what managedFields of the object come of a write to its Scale."""
    paths = dict.fromkeys((live["apiVersion"], f"{GROUP}/v1", f"{GROUP}/v2"), "spec.replicas")
    shown = entries_of_scale(live["metadata"]["managedFields"], paths)
    old = {**scale, "metadata": {**scale["metadata"], "managedFields": shown}}
    if write.how == "apply":
        entries = apply_patch(
            old, write.body, manager=write.manager, endpoint=endpoint, now=NOW, force=True
        ).managed_fields
    else:
        new = apply_merge_patch(old, write.body)
        entries = track_update(old, new, manager=write.manager, endpoint=endpoint, now=NOW)
    return entries_of_object(live["metadata"]["managedFields"], entries, api_version=live["apiVersion"], replicas=paths)


@pytest.mark.parametrize("kind", ["things", "deployments"])
@pytest.mark.parametrize("first", ["POST", "apply"])
@pytest.mark.parametrize("how", ["merge", "apply"])
@pytest.mark.parametrize("replicas", [1, 5])
@pytest.mark.parametrize("by", ["m1", "m2"])
def test_a_scale_moves_the_ownership_of_replicas(
    request: pytest.FixtureRequest, scales: Endpoint, kind: str, first: str, how: str, replicas: int, by: str
) -> None:
    subject: PatchedResource = request.getfixturevalue(kind)
    base = apply_merge_patch(subject.fresh(), {"spec": {"replicas": 1}})
    live = compared(subject, None, Write(first, "m1", base, subject.doors[0]))
    assert live is not None
    name = live["metadata"]["name"]
    path = f"{subject.doors[0].path(name)}/scale"
    body: Json = {"spec": {"replicas": replicas}}
    if how == "apply":
        body |= {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}}
    write = Write(how, by, body, subject.doors[0], force=True)
    expected = scaled(live, subject.server.request("GET", path)[1], write, scales)

    status, answer = subject.server.request("PATCH", path, body, kind=CONTENT_TYPES[how], **write.query)

    if kind == "things" and how == "apply" and replicas == 5:
        # The real server cannot apply a change to the Scale of a custom resource.
        assert status == 500
        assert "request to convert CR to an invalid group/version: autoscaling/v1" in answer["message"]
        return
    assert status == 200, answer
    after = subject.live(name, subject.doors[0])
    assert ages(after["metadata"]["managedFields"]) == ages(expected)


def test_what_becomes_atomic_is_owned_as_a_whole(server: Server, things: PatchedResource) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hardening.{GROUP}"
    crd = json.loads(json.dumps(CRD))
    crd["metadata"]["name"] = f"hardening.{GROUP}"
    crd["spec"]["names"] = {"plural": "hardening", "kind": "Hardening"}
    assert server.request("POST", path.rpartition("/")[0], crd)[0] == 201
    collection = f"/apis/{GROUP}/v1/namespaces/default/hardening"
    while server.request("GET", collection)[0] != 200:
        pass
    base = {"apiVersion": f"{GROUP}/v1", "kind": "Hardening", "metadata": {}}
    versions = dict(things.doors[0].endpoint.topologies)
    endpoint = replace(things.doors[0].endpoint, kind="Hardening", topologies=versions)
    subject = PatchedResource(server, [ResourcePath(collection, endpoint)], base)
    said = {"spec": {"labels": {"a": "1"}, "tags": ["x"], "struct": {"a": 1}, "items": [{"name": "a", "words": ["x"]}]}}
    live: Json | None = created(subject, said)
    assert live is not None
    live = compared(subject, live, applied(subject, live["metadata"]["name"], said, by="m2"))

    harder = json.loads(json.dumps(SCHEMA))
    spec = harder["properties"]["spec"]["properties"]
    spec["labels"]["x-kubernetes-map-type"] = spec["struct"]["x-kubernetes-map-type"] = "atomic"
    spec["tags"]["x-kubernetes-list-type"] = "atomic"
    spec["items"]["items"]["properties"]["words"]["x-kubernetes-list-type"] = "atomic"
    versions |= dict.fromkeys(versions, custom_resource_topology(harder, server.schemas("api/v1")))
    changes = [
        {"op": "replace", "path": f"/spec/versions/{place}/schema/openAPIV3Schema", "value": harder} for place in (0, 1)
    ]
    assert server.request("PATCH", path, changes, kind=CONTENT_TYPES["json"])[0] == 200
    probe = {**base, "metadata": {"name": "probe"}, "spec": {"tags": ["x", "x"]}}
    # The new schema is in force when an apply no longer minds that an item is there twice.
    while (
        server.request("PATCH", f"{collection}/probe", probe, kind=CONTENT_TYPES["apply"], fieldManager="p")[0] != 201
    ):
        pass

    live = compared(subject, live, Write("merge", "m3", {"metadata": {"labels": {"z": "1"}}}, subject.doors[0]))
    assert live is not None
    live = compared(
        subject, live, applied(subject, live["metadata"]["name"], {"spec": {"tags": ["y"]}}, by="m2", force=True)
    )
    assert live is not None
    compared(subject, live, applied(subject, live["metadata"]["name"], {}, by="m2"))


def test_an_entry_of_a_version_that_is_gone_ends_the_tracking_of_a_custom_resource(things: PatchedResource) -> None:
    live: Json | None = created(things, {"spec": {"name": "x", "replicas": 1}})
    assert live is not None
    gone = {"apiVersion": f"{GROUP}/v0", "operation": "Apply"}
    entries = [*live["metadata"]["managedFields"], entry("gone", {"f:spec": {"f:replicas": {}}}, **gone)]
    sent = {**live, "metadata": {**live["metadata"], "managedFields": entries}}
    live = compared(things, live, Write("PUT", "m1", sent, things.doors[0]))
    compared(things, live, Write("merge", "m2", {"spec": {"name": "y"}}, things.doors[0]))


@pytest.mark.parametrize("agent", ["kubectl/v1.36 (linux)", "", "a\tb c", "é" * 100, "/x", "curl"])
def test_a_writer_without_a_name_goes_by_its_user_agent(server: Server, agent: str) -> None:
    status, answer = server.request("POST", "/api/v1/namespaces/default/configmaps", named("agent-"), agent=agent)
    assert status == 201, answer
    expected = manager_name("", agent) or "unknown"
    assert answer["metadata"]["managedFields"][0]["manager"] == expected


def named(prefix: str) -> Json:
    return {"metadata": {"generateName": prefix}, "data": {"a": "1"}}
