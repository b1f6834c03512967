"""The promises of controllers and managers on a real API server, checked with its audit log and the stored objects."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from delayed_watches import DelayedWatches
from konverge import Context, Key, ObjectMeta, Reconciler, controller_for
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec, ResourceRequirements
from konverge.k8s.meta.v1 import LabelSelector
from konverge.testing import ControlPlane
from widget_operator import Widget, Widgets, widgets
from widget_processes import AuditedRequest, OperatorProcess, audited_writes, operator_process
from widget_rigs import OperatorTransport, WidgetRig, real_widgets, virtual_widgets

# Two managers, and more


async def _leader(rig: WidgetRig) -> str:
    leases = await rig.user.list(Lease, namespace=rig.namespace)
    return (leases[0].spec.holder_identity or "") if leases else ""


async def _follows(rig: WidgetRig, old: str) -> str:
    """Wait for another leader than that one."""

    async def another() -> bool:
        return await _leader(rig) not in ("", old)

    await rig.until(another, within=60, what=f"a leader after {old!r}")
    return await _leader(rig)


@pytest.mark.real_time(limit=240)
async def test_of_processes_that_are_killed_and_frozen_never_two_write(
    audited_plane: ControlPlane, tmp_path: Path
) -> None:
    async with real_widgets(audited_plane, full=False) as rig:
        await rig.create("a", replicas=2, payload="0")
        with ExitStack() as stack:
            crowd: dict[str, OperatorProcess] = {}
            for user in ("op-a", "op-b", "op-c"):
                kubeconfig = audited_plane.kubeconfig_for(user, groups=["system:masters"])
                process = operator_process(kubeconfig, tmp_path, namespace=rig.namespace, identity=user, name=user)
                crowd[user] = stack.enter_context(process)
            killed = await _follows(rig, "")
            await rig.converges(within=60)

            await crowd[killed].kill()
            await rig.change("a", payload="1")
            frozen = await _follows(rig, killed)
            await rig.converges(within=60)

            crowd[frozen].freeze()
            await rig.change("a", payload="2")
            last = await _follows(rig, frozen)
            await rig.converges(within=60)
            resumed = time.time()
            await rig.change("a", payload="3")  # what it sees first when it wakes up
            crowd[frozen].resume()
            assert await crowd[frozen].ended() != 0, "it ends, to be started anew"
            await rig.converges(within=60)

        writes = audited_writes(audited_plane, rig.namespace, *crowd)
        assert _terms(writes) == [killed, frozen, last]
        assert not [one for one in writes if one.user == frozen and one.received >= resumed]
        assert "is no longer the leader" in crowd[frozen].log()


def _terms(writes: list[AuditedRequest]) -> list[str]:
    """Who wrote, one after the other: a name twice is two terms, with another's between them."""
    order: list[str] = []
    for one in writes:
        if not order or order[-1] != one.user:
            order.append(one.user)
    return order


# One manager


async def test_a_child_that_is_edited_or_deleted_by_hand_is_put_back(control_plane: ControlPlane) -> None:
    async with real_widgets(control_plane, full=False) as rig:
        await rig.create("a", replicas=3, payload="good")
        async with rig.operating():
            await rig.converges(within=30)
            await rig.user.delete(ConfigMap, "a-0", namespace=rig.namespace)
            await rig.user.patch(ConfigMap, "a-1", {"data": {"payload": "bad"}}, namespace=rig.namespace)
            await rig.user.patch(ConfigMap, "a-2", {"data": {"added": "by hand"}}, namespace=rig.namespace)
            await rig.until(lambda: rig.counts()["created a-0"] == 2, within=30)
            await rig.converges(within=30)

            kept = await rig.user.get(ConfigMap, "a-2", namespace=rig.namespace)
            assert kept.data == {"payload": "good", "added": "by hand"}, "what others add stays theirs"


async def test_an_own_write_wakes_at_most_once_more_and_that_run_writes_nothing(control_plane: ControlPlane) -> None:
    async with real_widgets(control_plane, full=False) as rig:
        async with rig.operating() as (manager, _):
            await rig.create("a", replicas=3)
            await rig.converges(within=30)
            await asyncio.sleep(2)
            runs = manager.why("widget", Key(rig.namespace, "a"))

        assert len(runs) <= 2
        assert len(rig.writes()) == 5, [str(write) for write in rig.writes()]


class _Sized(Reconciler[Widget]):
    """Wants a quantity that the server stores in other letters."""

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        resources = ResourceRequirements(requests={"cpu": "1000m", "memory": "1024Mi"})
        container = Container(name="app", image="example.com/app:1", resources=resources)
        template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": obj.name}), spec=PodSpec(containers=[container]))
        spec = DeploymentSpec(selector=LabelSelector(match_labels={"app": obj.name}), template=template)
        await ctx.apply(Deployment(metadata=ObjectMeta(name=obj.name), spec=spec))


async def test_a_value_that_the_server_stores_in_other_letters_makes_no_loop(control_plane: ControlPlane) -> None:
    async with real_widgets(control_plane, full=False) as rig:
        await rig.create("a")
        controller = controller_for(Widget).owns(Deployment).build(_Sized())
        for life in range(2):
            rig.audit.clear()
            async with rig.operating(controller) as (manager, _):
                for number in range(3):
                    labels = {"metadata": {"labels": {"n": f"{life}-{number}"}}}
                    await rig.user.patch(Widget, "a", labels, namespace=rig.namespace)
                    await asyncio.sleep(0.7)
                await rig.until(lambda: len(manager.why("widget", Key(rig.namespace, "a"))) >= 3, within=30)
            assert len(rig.writes()) <= 1, "once at most, in each life"
        stored = await rig.user.get(Deployment, "a", namespace=rig.namespace)
        assert stored.metadata.generation == 1


class _Notes(Reconciler[Widget]):
    """Copies to its status what another client has written to its child, as far as it sees it at the start."""

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        seen = await ctx.get(ConfigMap, obj.name)
        number = (seen.metadata.labels or {}).get("foreign", "0") if seen is not None else "0"
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=obj.name), data={"payload": obj.spec.payload}))
        obj.status.ready = int(number)
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)


async def test_a_foreign_write_that_is_hidden_by_an_own_later_one_wakes(control_plane: ControlPlane) -> None:
    async with real_widgets(control_plane, full=False) as rig:
        transport = OperatorTransport(DelayedWatches(rig.transport(), "configmaps", by=1.5))
        async with rig.operating(controller_for(Widget).owns(ConfigMap).build(_Notes()), transport=transport):
            await rig.create("a")
            await rig.until(lambda: _says(rig, 0, 1), within=30)
            await asyncio.sleep(3)

            await rig.user.patch(ConfigMap, "a", {"metadata": {"labels": {"foreign": "7"}}}, namespace=rig.namespace)
            await rig.change("a", payload="new")  # the operator writes to the child before it hears of the label

            await rig.until(lambda: _says(rig, 7, 2), within=30)


async def _says(rig: WidgetRig, ready: int, generation: int) -> bool:
    status = (await rig.get("a")).status
    return (status.ready, status.observed_generation) == (ready, generation)


@pytest.mark.faults
@pytest.mark.plain_loop
async def test_ten_thousand_keys_and_one_poison_key() -> None:
    keys = [f"w{number}" for number in range(10_000)]

    class Poisoned(Widgets):
        async def reconcile(self, obj: Widget, ctx: Context) -> None:
            await super().reconcile(obj, ctx)
            if obj.name == "w5000":
                raise RuntimeError("poison")

    async with virtual_widgets(full=True) as rig:
        await rig.create(*keys, replicas=0)
        async with rig.operating(widgets().build(Poisoned(rig.ledger))):
            await rig.converges(within=10)
            await asyncio.sleep(60)
        assert len(rig.ledger.uids("open")) == 10_000
        tries = [line for line in rig.ledger.lines if "/w5000 " in line]
        assert 5 <= len(tries) <= 8, "it alone backs off"
        assert len(rig.ledger.lines) <= 2 * 9_999 + len(tries)
