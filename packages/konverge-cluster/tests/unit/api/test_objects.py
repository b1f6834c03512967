"""Writes of objects: what the server sets, keeps, ignores and rejects."""

from __future__ import annotations

import asyncio
import re

import pytest

from virtual_server import CONFIG_MAPS, Json, VirtualTimeServer, config_map

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(name: str = "web", replicas: int = 1) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_new_object_has_its_system_fields() -> None:
    plane = VirtualTimeServer()

    created = await plane.good("POST", CONFIG_MAPS, config_map("a", k="v"))

    metadata = created["metadata"]
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", metadata["uid"])
    assert metadata["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert metadata["namespace"] == "default"
    assert int(metadata["resourceVersion"]) == plane.server.cluster.storage.revision
    assert metadata["managedFields"][0]["manager"] == "unit"


async def test_the_client_cannot_choose_system_fields() -> None:
    plane = VirtualTimeServer()
    wish = config_map("a")
    wish["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x"}

    created = await plane.good("POST", CONFIG_MAPS, wish)

    assert created["metadata"]["uid"] != "mine"
    assert created["metadata"]["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert "selfLink" not in created["metadata"]


async def test_the_same_seed_generates_the_same_uids_and_names() -> None:
    async def names() -> tuple[str, str]:
        created = await VirtualTimeServer().good("POST", CONFIG_MAPS, {"metadata": {"generateName": "a-"}})
        return created["metadata"]["uid"], created["metadata"]["name"]

    assert await names() == await names()


async def test_a_generated_name_is_the_prefix_and_five_characters() -> None:
    plane = VirtualTimeServer()

    created = await plane.good("POST", CONFIG_MAPS, {"metadata": {"generateName": "x" * 70 + "-"}})

    assert re.fullmatch("x{58}[bcdfghjklmnpqrstvwxz2456789]{5}", created["metadata"]["name"])


async def test_a_write_that_changes_nothing_keeps_the_version_and_sends_no_event() -> None:
    plane = VirtualTimeServer()
    created = await plane.good("POST", CONFIG_MAPS, config_map("a", x="1", y="2"))
    version = plane.server.cluster.storage.revision
    await asyncio.sleep(60)

    again = await plane.good("PUT", f"{CONFIG_MAPS}/a", config_map("a", y="2", x="1"))
    patched = await plane.merge(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})

    assert again == created
    assert patched == created
    assert plane.server.cluster.storage.revision == version


async def test_a_dry_run_responds_like_the_write_and_stores_nothing() -> None:
    plane = VirtualTimeServer()
    version = plane.server.cluster.storage.revision

    created = await plane.good("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("a"))

    assert "resourceVersion" not in created["metadata"]
    assert created["metadata"]["uid"]
    assert plane.server.cluster.storage.revision == version
    assert (await plane.request("GET", f"{CONFIG_MAPS}/a"))[0] == 404


async def test_a_stale_version_conflicts_and_a_missing_one_does_not() -> None:
    plane = VirtualTimeServer()
    created = await plane.good("POST", CONFIG_MAPS, config_map("a"))
    await plane.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "1"}})
    created["data"] = {"k": "2"}

    assert (await plane.request("PUT", f"{CONFIG_MAPS}/a", created))[0] == 409
    del created["metadata"]["resourceVersion"]
    assert (await plane.request("PUT", f"{CONFIG_MAPS}/a", created))[0] == 200


async def test_the_generation_counts_changes_of_the_spec_and_the_deletion() -> None:
    plane = VirtualTimeServer()
    path = f"{DEPLOYMENTS}/web"

    async def generation(patch: Json, part: str = "") -> int:
        changed = await plane.merge(path + part, patch)
        return int(changed["metadata"]["generation"])

    created = await plane.good("POST", DEPLOYMENTS, deployment())
    assert created["metadata"]["generation"] == 1
    assert await generation({"metadata": {"labels": {"a": "b"}}}) == 1
    assert await generation({"status": {"replicas": 1}}, "/status") == 1
    assert await generation({"spec": {"replicas": 5}}) == 2
    assert await generation({"spec": {"replicas": 5}}) == 2
    assert await generation({"metadata": {"generation": 77, "finalizers": ["ex.io/f"]}}) == 2
    gone = await plane.good("DELETE", path)
    assert gone["metadata"]["generation"] == 3


async def test_scaling_changes_the_replicas_and_nothing_else() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", DEPLOYMENTS, deployment(replicas=1))
    path = f"{DEPLOYMENTS}/web"

    scale = await plane.merge(f"{path}/scale", {"spec": {"replicas": 4}, "status": {"replicas": 9}})

    assert (scale["kind"], scale["spec"], scale["status"]["replicas"]) == ("Scale", {"replicas": 4}, 0)
    found = await plane.good("GET", path)
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)


async def test_an_object_is_removed_by_the_write_that_removes_its_last_finalizer() -> None:
    plane = VirtualTimeServer()
    wish = config_map("a")
    wish["metadata"]["finalizers"] = ["ex.io/f"]
    await plane.good("POST", CONFIG_MAPS, wish)

    marked = await plane.good("DELETE", f"{CONFIG_MAPS}/a")
    assert marked["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:00Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    version = plane.server.cluster.storage.revision
    await asyncio.sleep(10)
    assert await plane.good("DELETE", f"{CONFIG_MAPS}/a") == marked
    assert plane.server.cluster.storage.revision == version

    await plane.merge(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
    assert (await plane.request("GET", f"{CONFIG_MAPS}/a"))[0] == 404


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
    ],
)
async def test_a_propagation_policy_sets_its_finalizer(options: Json, finalizers: list[str]) -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))

    marked = await plane.good("DELETE", f"{CONFIG_MAPS}/a", options)

    assert marked["metadata"]["finalizers"] == finalizers


async def test_the_grace_period_of_a_pod_on_a_node_can_only_shrink() -> None:
    plane = VirtualTimeServer()
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}}
    await plane.good("POST", pods, pod)

    first = await plane.good("DELETE", f"{pods}/p")
    assert first["metadata"]["deletionGracePeriodSeconds"] == 30
    assert first["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:30Z"
    longer = await plane.good("DELETE", f"{pods}/p", {"gracePeriodSeconds": 60})
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = await plane.good("DELETE", f"{pods}/p", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:05Z"
    await plane.good("DELETE", f"{pods}/p", {"gracePeriodSeconds": 0})
    assert (await plane.request("GET", f"{pods}/p"))[0] == 404


async def test_a_pod_is_bound_to_a_node_once() -> None:
    plane = VirtualTimeServer()
    pods = "/api/v1/namespaces/default/pods"
    await plane.good("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-1"}}

    assert (await plane.request("POST", f"{pods}/p/binding", binding))[0] == 201
    bound = await plane.good("GET", f"{pods}/p")
    assert bound["spec"]["nodeName"] == "node-1"
    assert [each["type"] for each in bound["status"]["conditions"]] == ["PodScheduled"]
    assert (await plane.request("POST", f"{pods}/p/binding", binding))[0] == 409


async def test_a_terminating_namespace_rejects_creates_and_waits_for_its_finalizer() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", "/api/v1/namespaces", {"metadata": {"name": "t"}})

    going = await plane.good("DELETE", "/api/v1/namespaces/t")
    assert going["status"]["phase"] == "Terminating"
    code, error = await plane.request("POST", "/api/v1/namespaces/t/configmaps", config_map("a"))
    assert (code, error["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")

    going["spec"]["finalizers"] = []
    await plane.good("PUT", "/api/v1/namespaces/t/finalize", going)
    assert (await plane.request("GET", "/api/v1/namespaces/t"))[0] == 404


async def test_the_bootstrap_objects_exist() -> None:
    plane = VirtualTimeServer()

    namespaces = await plane.good("GET", "/api/v1/namespaces")
    service = await plane.good("GET", "/api/v1/namespaces/default/services/kubernetes")

    names = [each["metadata"]["name"] for each in namespaces["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert service["spec"]["clusterIP"] == "10.96.0.1"


async def test_an_event_is_one_object_in_two_groups() -> None:
    plane = VirtualTimeServer()
    core, grouped = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "R", "message": "hello", "type": "Normal"}
    await plane.good("POST", core, event)

    other = await plane.good("GET", f"{grouped}/e")

    assert (other["regarding"], other["note"]) == (involved, "hello")
    assert other["apiVersion"] == "events.k8s.io/v1"
    listed = await plane.good("GET", f"{core}?fieldSelector=involvedObject.name=p,reason=R")
    assert [each["message"] for each in listed["items"]] == ["hello"]
    await plane.good("DELETE", f"{grouped}/e")
    assert (await plane.request("GET", f"{core}/e"))[0] == 404


async def test_an_event_expires_an_hour_after_its_last_write_and_watches_receive_the_deletion() -> None:
    plane = VirtualTimeServer()
    events = "/api/v1/namespaces/default/events"
    for name in "ab":
        involved = {"kind": "Pod", "namespace": "default", "name": "p"}
        await plane.good("POST", events, {"metadata": {"name": name}, "involvedObject": involved})
    start = plane.server.cluster.storage.revision
    await asyncio.sleep(3000)
    await plane.merge(f"{events}/b", {"count": 2})
    await asyncio.sleep(601)

    listed = await plane.good("GET", events)
    async with plane.watch(events, resourceVersion=start, timeoutSeconds=1) as watcher:
        received = [(each["type"], each["object"]["metadata"]["name"]) for each in await watcher.rest()]

    assert [each["metadata"]["name"] for each in listed["items"]] == ["b"]
    assert received == [("MODIFIED", "b"), ("DELETED", "a")]


async def test_a_lease_is_created_by_put() -> None:
    plane = VirtualTimeServer()
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    code, created = await plane.request(
        "PUT", f"{leases}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    )

    assert (code, created["spec"]["holderIdentity"]) == (201, "me")
