"""Apply, handing over, making anew and pruning, on the embedded control plane and on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest

from apply_rig import MANAGER, ApplyRig, apply_rig
from konverge.client import HttpTransport, InProcessTransport, load_config
from konverge.errors import AlreadyExists, ApiError, ApplyConflict, Conflict, Invalid
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Namespace, Secret, Service
from konverge.objects import Unstructured, from_wire, full_object, kind_of
from konverge.reconcile import AppliedObjects, prune
from konverge.testing import ControlPlane
from konverge_cluster.embedded_server import EmbeddedServer

Open = Callable[[], AbstractAsyncContextManager[ApplyRig]]

KINDS = (Deployment, ConfigMap, Service, Namespace)


@pytest.fixture(params=["embedded", pytest.param("real", marks=[pytest.mark.control_plane, pytest.mark.real_time])])
def opened(request: pytest.FixtureRequest) -> Open:
    """A function that opens a rig on the embedded server, then on a real one."""
    if request.param == "embedded":
        return lambda: apply_rig(InProcessTransport(EmbeddedServer(seed=1).handle), "default", KINDS)
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    return lambda: apply_rig(HttpTransport(load_config(kubeconfig=plane.kubeconfig)), namespace, KINDS)


def container(name: str = "app", image: str = "app:1", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **more}


def deployment(*containers: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> Deployment:
    """Give a Deployment `web` as an author would want it."""
    pod = {"containers": list(containers) or [container()]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    metadata = {"name": "web", **({"labels": labels} if labels else {})}
    return from_wire(
        Deployment,
        {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}},
    )


def config_map(name: str = "settings", **data: str) -> ConfigMap:
    return from_wire(ConfigMap, {"metadata": {"name": name}, "data": data})


def containers_of(live: Any) -> list[Any]:
    found: list[Any] = live["spec"]["template"]["spec"]["containers"]
    return found


# Nothing changed


async def test_a_matching_object_is_not_sent_again_not_even_after_a_restart(opened: Open) -> None:
    async with opened() as it:
        app = container(
            command=[],
            env=[{"name": "EMPTY", "value": ""}, {"name": "FULL", "value": "x"}],
            ports=[{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
            resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            volumeMounts=[{"name": "scratch", "mountPath": "/scratch", "readOnly": False}],
        )
        desired = deployment(app, container("side"), labels={"app": "web"}, replicas=2)
        pod = desired.spec.template.spec
        assert pod is not None
        pod.host_network = False
        desired = from_wire(Deployment, _with_volume(desired))
        first = await it.applier.apply(desired)
        assert it.sent == ["apply"]

        it.sent.clear()
        second = await it.applier.apply(desired)
        third = await it.restarted().apply(desired)

        assert it.sent == []
        assert first.resource_version == second.resource_version == third.resource_version
        assert third.spec.replicas == 2


def _with_volume(desired: Deployment) -> Any:
    wire = full_object(desired)
    wire["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    wire["spec"]["template"]["spec"]["nodeSelector"] = {}
    return wire


async def test_a_value_that_the_server_rewrites_costs_one_write_per_restart(opened: Open) -> None:
    async with opened() as it:
        desired = deployment(container(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}}))
        await it.applier.apply(desired)
        live = await it.live(Deployment, "web")
        assert containers_of(live)[0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}

        it.sent.clear()
        await it.applier.apply(desired)
        assert it.sent == []

        it.restarted()
        for _ in range(3):
            await it.applier.apply(desired)
        assert it.sent == ["apply"]
        assert (await it.live(Deployment, "web"))["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


async def test_an_object_that_sets_no_fields_is_applied_once(opened: Open) -> None:
    async with opened() as it:
        await it.applier.apply(config_map())
        it.sent.clear()
        await it.applier.apply(config_map())
        await it.restarted().apply(config_map())
        assert it.sent == []


async def test_changes_of_fields_of_others_cause_no_write(opened: Open) -> None:
    async with opened() as it:
        desired = deployment(container(env=[{"name": "A", "value": "1"}]), labels={"app": "web"})
        await it.applier.apply(desired)
        theirs = {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "x"}, "finalizers": ["example.com/hold"]},
            "spec": {
                "replicas": 5,
                "template": {
                    "spec": {"containers": [{"name": "app", "env": [{"name": "B", "value": "2"}]}, container("side")]}
                },
            },
        }
        await it.others.patch(Deployment, it.key("web"), theirs, patch_type="strategic")
        await it.others.patch(Deployment, it.key("web"), {"status": {"replicas": 5}}, subresource="status")
        await it.seen(Deployment, "web")

        it.sent.clear()
        await it.applier.apply(desired)
        await it.restarted().apply(desired)

        assert it.sent == []
        live = await it.live(Deployment, "web")
        assert live["spec"]["replicas"] == 5
        assert live["metadata"]["labels"] == {"app": "web", "team": "blue"}
        await it.others.patch(Deployment, it.key("web"), {"metadata": {"finalizers": None}})


async def test_a_kind_that_is_not_cached_costs_a_read_and_no_write(opened: Open) -> None:
    async with opened() as it:
        desired = from_wire(Secret, {"metadata": {"name": "password"}, "data": {"word": "c2VjcmV0"}})
        await it.applier.apply(desired)
        assert it.sent == ["get", "apply"]
        it.sent.clear()
        await it.applier.apply(desired)
        await it.restarted().apply(desired)
        assert it.sent == ["get", "get"]


async def test_an_unstructured_object_is_applied_like_a_typed_one(opened: Open) -> None:
    async with opened() as it:
        desired = Unstructured(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
        )
        made = await it.applier.apply(desired)
        assert isinstance(made, Unstructured)
        it.sent.clear()
        again = await it.applier.apply(desired)
        assert (it.sent, again["data"]) == ([], {"a": "1"})
        assert "namespace" not in desired["metadata"]


# Something changed


@pytest.mark.parametrize("restart", [False, True], ids=["remembering", "restarted"])
@pytest.mark.parametrize(
    "edit",
    [
        {"metadata": {"labels": {"app": "api"}}},
        {"metadata": {"labels": {"app": None}}},
        {"spec": {"replicas": 9}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "evil:1"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": [{"name": "A", "$patch": "delete"}]}]}}}},
        {
            "spec": {
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "app",
                                "$setElementOrder/env": [{"name": "B"}, {"name": "A"}],
                                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
                            }
                        ]
                    }
                }
            }
        },
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "args": ["--evil"]}]}}}},
        {"spec": {"template": {"spec": {"nodeSelector": {"disk": "hdd"}}}}},
        {"metadata": {"ownerReferences": [{"$patch": "replace"}]}},
    ],
    ids=["label", "no label", "replicas", "image", "no env", "env order", "args", "selector", "owner"],
)
async def test_an_edit_of_an_owned_field_is_reverted_by_one_write(opened: Open, edit: Any, restart: bool) -> None:
    async with opened() as it:
        owner = await it.client.create(config_map("owner"))
        env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
        app = container(env=env, args=["--good"])
        desired = deployment(app, labels={"app": "web"}, replicas=2)
        desired = from_wire(Deployment, _with_volume(desired))
        await it.applier.apply(desired, owner=owner)
        before = await it.live(Deployment, "web")
        await it.others.patch(Deployment, it.key("web"), edit, patch_type="strategic")
        await it.seen(Deployment, "web")
        if restart:
            it.restarted()

        it.sent.clear()
        await it.applier.apply(desired, owner=owner)
        assert it.sent == ["apply"]
        after = await it.live(Deployment, "web")
        assert after["spec"]["replicas"] == 2
        assert after["metadata"]["labels"] == {"app": "web"}
        assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
        assert containers_of(after)[0]["env"] == env
        assert containers_of(after)[0]["args"] == ["--good"]

        it.sent.clear()
        await it.applier.apply(desired, owner=owner)
        await it.restarted().apply(desired, owner=owner)
        assert it.sent == []


async def test_a_field_that_another_client_took_and_set_back_is_owned_again(opened: Open) -> None:
    async with opened() as it:
        await it.applier.apply(config_map(a="1"))
        await it.others.patch(ConfigMap, it.key("settings"), {"data": {"a": "2"}})
        await it.others.patch(ConfigMap, it.key("settings"), {"data": {"a": "1"}})
        await it.seen(ConfigMap, "settings")
        it.sent.clear()
        await it.applier.apply(config_map(a="1"))
        await it.applier.apply(config_map(a="1"))
        assert it.sent == ["apply"]


async def test_fields_that_are_no_longer_desired_are_removed_unless_others_own_them_too(opened: Open) -> None:
    async with opened() as it:
        await it.applier.apply(config_map(ours="1", shared="2"))
        theirs = from_wire(ConfigMap, {"metadata": {"name": "settings"}, "data": {"shared": "2", "theirs": "3"}})
        await it.others.apply(theirs)
        await it.seen(ConfigMap, "settings")
        made = await it.applier.apply(config_map(new="4"))
        assert made.data == {"shared": "2", "theirs": "3", "new": "4"}
        it.sent.clear()
        await it.restarted().apply(config_map(new="4"))
        assert it.sent == []


async def test_a_map_or_list_becomes_empty_when_it_is_desired_empty(opened: Open) -> None:
    async with opened() as it:
        full = deployment(container(env=[{"name": "A", "value": "1"}], resources={"limits": {"cpu": "1"}}))
        empty = deployment(container(env=[], resources={"limits": {}}))
        await it.applier.apply(full)
        await it.applier.apply(empty)
        (app,) = containers_of(await it.live(Deployment, "web"))
        assert "env" not in app
        assert app["resources"] == {}
        it.sent.clear()
        await it.applier.apply(empty)
        assert it.sent == []


async def test_a_deleted_child_is_created_again(opened: Open) -> None:
    async with opened() as it:
        first = await it.applier.apply(config_map(a="1"))
        await it.others.delete(first)
        await it.seen(ConfigMap, "settings")
        second = await it.applier.apply(config_map(a="1"))
        assert second.uid != first.uid


async def test_an_existing_object_of_another_client_is_adopted(opened: Open) -> None:
    async with opened() as it:
        await it.applier.apply(config_map(a="1"))
        await it.others.delete(ConfigMap, it.key("settings"))
        await it.others.create(config_map(a="1", theirs="2"))
        await it.seen(ConfigMap, "settings")
        it.sent.clear()
        made = await it.applier.apply(config_map(a="1"))
        assert it.sent == ["apply"]
        assert made.data == {"a": "1", "theirs": "2"}
        assert (await it.applier.apply(config_map(b="1"))).data == {"a": "1", "theirs": "2", "b": "1"}


async def test_without_force_a_field_of_another_manager_is_named_and_left_alone(opened: Open) -> None:
    async with opened() as it:
        await it.others.apply(deployment(replicas=3))
        await it.seen(Deployment, "web")
        with pytest.raises(ApplyConflict) as refusal:
            await it.applier.apply(deployment(replicas=2), force=False)
        assert [(one.manager, one.path) for one in refusal.value.conflicts] == [("other-client", ".spec.replicas")]
        assert "other-client" in str(refusal.value)
        assert (await it.live(Deployment, "web"))["spec"]["replicas"] == 3

        made = await it.applier.apply(deployment(replicas=2))
        assert made.spec.replicas == 2


async def test_the_result_of_a_dry_run_is_not_stored(opened: Open) -> None:
    async with opened() as it:
        client, it.client = it.client, it.client.using(dry_run=True)
        await it.restarted().apply(config_map(a="1"))
        assert len(it.last_applied) == 0
        it.client = client
        await it.restarted().apply(config_map(a="1"))
        assert (await it.live(ConfigMap, "settings"))["data"] == {"a": "1"}


# Owners


async def test_a_child_has_its_owner_and_the_namespace_of_its_owner(opened: Open) -> None:
    async with opened() as it:
        owner = await it.client.create(config_map("owner"))
        child = await it.applier.apply(config_map("child"), owner=owner)
        assert child.namespace == owner.namespace == it.namespace
        (reference,) = child.metadata.owner_references
        assert (reference.uid, reference.kind, reference.controller, reference.block_owner_deletion) == (
            owner.uid,
            "ConfigMap",
            True,
            True,
        )
        it.sent.clear()
        await it.restarted().apply(config_map("child"), owner=owner)
        assert it.sent == []


# Handing over


async def test_a_field_is_handed_over_without_a_reset_and_taken_back(opened: Open) -> None:
    async with opened() as it:
        await it.applier.apply(deployment(replicas=3))
        generation = (await it.live(Deployment, "web"))["metadata"]["generation"]

        await it.applier.hand_over(deployment(), ".spec.replicas", to="hpa")
        made = await it.applier.apply(deployment())
        assert (made.spec.replicas, made.metadata.generation) == (3, generation)

        await it.others.scale(Deployment, it.key("web"), 7)
        await it.seen(Deployment, "web")
        it.sent.clear()
        await it.applier.hand_over(deployment(), ".spec.replicas", to="hpa")
        assert (await it.applier.apply(deployment())).spec.replicas == 7
        assert it.sent == []

        assert (await it.applier.apply(deployment(replicas=4))).spec.replicas == 4
        await it.others.scale(Deployment, it.key("web"), 9)
        await it.seen(Deployment, "web")
        assert (await it.applier.apply(deployment(replicas=4))).spec.replicas == 4


async def test_a_part_of_a_list_item_is_handed_over(opened: Open) -> None:
    async with opened() as it:
        limits = {"limits": {"cpu": "2"}}
        await it.applier.apply(deployment(container(resources=limits), container("side")))
        await it.applier.hand_over(
            deployment(), '.spec.template.spec.containers[name="app"].resources', to="vertical-autoscaler"
        )
        made = await it.applier.apply(deployment(container(), container("side")))
        live = await it.live(Deployment, "web")
        assert containers_of(live)[0]["resources"] == limits
        assert made.metadata.generation == 1


async def test_a_field_that_another_client_has_changed_needs_no_hand_over(opened: Open) -> None:
    async with opened() as it:
        await it.applier.apply(deployment(replicas=3))
        await it.others.scale(Deployment, it.key("web"), 7)  # the cache may not have seen it
        await it.applier.hand_over(deployment(), ".spec.replicas", to="hpa")
        assert (await it.applier.apply(deployment())).spec.replicas == 7


async def test_handing_over_a_field_of_a_missing_object_sends_nothing(opened: Open) -> None:
    async with opened() as it:
        await it.applier.hand_over(deployment(), ".spec.replicas", to="hpa")
        assert it.sent == []
        with pytest.raises(ValueError, match="not a wire path"):
            await it.applier.apply(deployment())
            await it.applier.hand_over(deployment(), "spec replicas", to="hpa")


# Recreate


def selecting(app: str) -> Deployment:
    desired = deployment()
    assert desired.spec is not None
    desired.spec.selector.match_labels = {"app": app}
    metadata = desired.spec.template.metadata
    assert metadata is not None
    metadata.labels = {"app": app}
    return desired


async def test_an_immutable_field_is_rejected_unless_the_object_may_be_recreated(opened: Open) -> None:
    async with opened() as it:
        old = await it.applier.apply(selecting("web"))
        with pytest.raises(Invalid, match="immutable"):
            await it.applier.apply(selecting("api"))
        new = await it.applier.apply(selecting("api"), recreate=True)
        assert new.uid != old.uid
        assert new.spec.selector.match_labels == {"app": "api"}
        it.sent.clear()
        await it.applier.apply(selecting("api"), recreate=True)
        assert it.sent == []


async def test_an_object_that_is_invalid_in_itself_deletes_nothing(opened: Open) -> None:
    async with opened() as it:
        old = await it.applier.apply(selecting("web"))
        bad = selecting("api")
        pod = bad.spec.template.spec
        assert pod is not None
        pod.restart_policy = "Sometimes"
        with pytest.raises(Invalid):
            await it.applier.apply(bad, recreate=True)
        assert (await it.live(Deployment, "web"))["metadata"]["uid"] == old.uid
        assert "deletionTimestamp" not in (await it.live(Deployment, "web"))["metadata"]


async def test_an_object_with_a_finalizer_is_recreated_when_it_is_gone(opened: Open) -> None:
    async with opened() as it:
        old = await it.applier.apply(selecting("web"))
        await it.others.patch(Deployment, it.key("web"), {"metadata": {"finalizers": ["example.com/hold"]}})
        for _ in range(2):
            with pytest.raises(AlreadyExists, match="being deleted"):
                await it.applier.apply(selecting("api"), recreate="Orphan")
        await it.others.patch(Deployment, it.key("web"), {"metadata": {"finalizers": None}})
        await it.seen(Deployment, "web")
        new = await it.applier.apply(selecting("api"), recreate="Orphan")
        assert new.uid != old.uid


# Pruning


async def test_only_children_that_are_no_longer_applied_are_pruned(opened: Open) -> None:
    async with opened() as it:
        owner = await it.client.create(config_map("owner"))
        stranger = await it.client.create(config_map("stranger"))
        for name in ("kept", "dropped", "failed"):
            await it.applier.apply(config_map(name, a="1"), owner=owner)
        await it.applier.apply(config_map("of-another", a="1"), owner=stranger)
        await it.applier.apply(config_map("without-owner", a="1"))
        by_hand = config_map("by-hand", a="1")
        by_hand.metadata.owner_references = (await it.others.get(ConfigMap, it.key("kept"))).metadata.owner_references
        await it.others.create(by_hand)
        await it.seen(ConfigMap, "by-hand")

        applied = AppliedObjects()
        await it.applier.apply(config_map("kept", a="1"), owner=owner, applied=applied)
        with pytest.raises(Invalid):
            bad = from_wire(ConfigMap, {"metadata": {"name": "failed", "labels": {"a": "no value!"}}})
            await it.applier.apply(bad, owner=owner, applied=applied)
        gone = await prune(it.client, it.cache, owner, applied, kinds=[ConfigMap], manager=MANAGER)

        assert gone == [it.key("dropped")]
        left = {one.name for one in await it.others.list(ConfigMap, namespace=it.namespace)}
        assert left - {"kube-root-ca.crt"} == {
            "owner",
            "stranger",
            "kept",
            "failed",
            "of-another",
            "without-owner",
            "by-hand",
        }
        assert await prune(it.client, it.cache, owner, applied, kinds=[kind_of(ConfigMap)], manager=MANAGER) == []


async def test_a_new_object_of_the_same_name_is_not_pruned(opened: Open) -> None:
    async with opened() as it:
        owner = await it.client.create(config_map("owner"))
        await it.applier.apply(config_map("child", a="1"), owner=owner)
        await it.others.delete(ConfigMap, it.key("child"))
        await it.others.create(config_map("child", theirs="2"))  # the cache may not have seen it
        with suppress(Conflict):
            assert await prune(it.client, it.cache, owner, AppliedObjects(), kinds=[ConfigMap], manager=MANAGER) == []
        assert (await it.live(ConfigMap, "child"))["data"] == {"theirs": "2"}


async def test_children_of_a_cluster_scoped_owner_are_pruned(opened: Open) -> None:
    async with opened() as it:
        owner = await it.others.get(Namespace, it.namespace)
        for name in ("kept", "dropped"):
            await it.applier.apply(in_namespace(it, config_map(name, a="1")), owner=owner)
        applied = AppliedObjects()
        await it.applier.apply(in_namespace(it, config_map("kept", a="1")), owner=owner, applied=applied)
        gone = await prune(it.client, it.cache, owner, applied, kinds=[ConfigMap], manager=MANAGER)
        assert gone == [it.key("dropped")]


def in_namespace(it: ApplyRig, desired: ConfigMap) -> ConfigMap:
    desired.metadata.namespace = it.namespace
    return desired


async def test_pruning_a_kind_that_is_not_cached_or_without_our_managed_fields_is_rejected(opened: Open) -> None:
    async with opened() as it:
        owner = await it.client.create(config_map("owner"))
        with pytest.raises(ValueError, match="owns"):
            await prune(it.client, it.cache, owner, AppliedObjects(), kinds=[Secret], manager=MANAGER)
        with pytest.raises(ValueError, match="manager="):
            await prune(it.client, it.cache, owner, AppliedObjects(), kinds=[ConfigMap], manager="another")


# Unknown fields


@pytest.mark.parametrize("validation", ["", "Strict", "Warn", "Ignore"])
async def test_an_unknown_field_is_an_error_whatever_the_validation(opened: Open, validation: Any) -> None:
    """So an apply is sent with `Ignore`, which spares the server a second parse."""
    async with opened() as it:
        wrong = Unstructured(apiVersion="apps/v1", kind="Deployment", **full_object(deployment()))
        wrong["spec"]["bogus"] = 1
        client = it.client.using(field_manager=MANAGER, field_validation=validation)
        with pytest.raises(ApiError, match=r"\.spec\.bogus: field not declared in schema"):
            await client.apply(wrong)
