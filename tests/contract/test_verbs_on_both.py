"""What apply reports, fields of other managers and objects that are created once, on both API servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from apply_rig import ApplyRig, apply_rig
from konverge.client import HttpTransport, InProcessTransport, WriteEvent, load_config
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.objects import from_wire, is_ready, kind_of
from konverge.reconcile import Applied, AppliedObjects, ForeignField
from konverge.reconcile.create_once import create_once
from konverge.testing import ControlPlane
from konverge_cluster.embedded_server import EmbeddedServer

Open = Callable[[], AbstractAsyncContextManager[ApplyRig]]

KINDS = (Deployment, ConfigMap)


@pytest.fixture(params=["embedded", pytest.param("real", marks=[pytest.mark.control_plane, pytest.mark.real_time])])
def opened(request: pytest.FixtureRequest) -> Open:
    """A function that opens a rig on the embedded server, then on a real one."""
    if request.param == "embedded":
        return lambda: apply_rig(InProcessTransport(EmbeddedServer(seed=1).handle), "default", KINDS)
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    return lambda: apply_rig(HttpTransport(load_config(kubeconfig=plane.kubeconfig)), namespace, KINDS)


def web(replicas: int = 1) -> Deployment:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "web", "image": "web:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return from_wire(Deployment, {"metadata": {"name": "web"}, "spec": spec})


async def reported(it: ApplyRig, desired: Deployment) -> Applied:
    """Apply an object; return what the apply did."""
    applied = AppliedObjects()

    def record_write(write: WriteEvent) -> None:
        applied.record_write(write)
        it.record_write(write)

    live = await it.with_client(it.client.with_write_listener(record_write)).apply(desired, applied=applied)
    found = applied.find(live, live.key)
    assert found is not None
    return found


async def test_an_apply_reports_what_it_did(opened: Open) -> None:
    async with opened() as it:
        found = [await reported(it, web()), await reported(it, web()), await reported(it, web(3))]

        assert found == [Applied("created"), Applied("unchanged"), Applied("changed", (".spec.replicas",))]


async def test_fields_of_other_managers_are_listed_by_the_paths_that_hand_over_accepts(opened: Open) -> None:
    async with opened() as it:
        live = await it.applier.apply(web())
        assert await it.applier.foreign_fields(live) == []

        container = {"name": "web", "ports": [{"containerPort": 53, "protocol": "UDP", "name": "dns"}]}
        await it.others.patch(
            Deployment, "web", {"spec": {"template": {"spec": {"containers": [container]}}}}, patch_type="strategic"
        )
        await it.others.patch(kind_of(Deployment), "web", {"spec": {"replicas": 5}}, subresource="scale")
        await it.others.patch(Deployment, "web", {"metadata": {"finalizers": ["example.com/keep"]}})
        await it.others.patch(Deployment, "web", {"status": {"replicas": 2}}, subresource="status")
        port = '.spec.template.spec.containers[name="web"].ports[containerPort=53,protocol="UDP"]'

        assert await it.applier.foreign_fields(live) == [
            ForeignField('.metadata.finalizers["example.com/keep"]', "other-client"),
            ForeignField(".spec.replicas", "other-client"),
            ForeignField(f"{port}.containerPort", "other-client"),
            ForeignField(f"{port}.name", "other-client"),
            ForeignField(f"{port}.protocol", "other-client"),
        ]
        await it.others.patch(Deployment, "web", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("kind", [ConfigMap, Secret], ids=["cached", "not cached"])
async def test_of_many_creates_at_the_same_time_one_wins_and_all_return_its_value(
    opened: Open, kind: type[ConfigMap] | type[Secret]
) -> None:
    async with opened() as it:

        async def create(number: int) -> str:
            labels = {"by": str(number)}
            obj = from_wire(kind, {"metadata": {"name": "once", "labels": labels}})
            found = await create_once(it.client, it.cache, obj, owner=None)
            return (found.metadata.labels or {})["by"]

        values = await asyncio.gather(*(create(number) for number in range(8)))
        values.append(await create(99))

        stored = await it.live(kind, "once")
        assert values == [stored["metadata"]["labels"]["by"]] * 9


async def test_a_deployment_that_no_controller_has_seen_is_not_ready(opened: Open) -> None:
    async with opened() as it:
        live = await it.applier.apply(web())

        assert not is_ready(live)
        assert is_ready(await it.applier.apply(from_wire(ConfigMap, {"metadata": {"name": "settings"}})))
