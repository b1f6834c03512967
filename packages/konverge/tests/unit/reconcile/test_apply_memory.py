"""What an applier remembers goes with the objects, whether their kind is kept or not."""

from __future__ import annotations

from apply_rig import ApplyRig, apply_rig
from konverge.client import InProcessTransport
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import ObjectMeta
from konverge_cluster.embedded_server import EmbeddedServer


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


async def come_and_go(rig: ApplyRig, count: int) -> None:
    for number in range(count):
        made = await rig.applier.apply(config_map(f"passing-{number}", a="1"))
        await rig.others.delete(made)
        await rig.seen(ConfigMap, made.name)


async def test_children_that_come_and_go_leave_nothing_behind() -> None:
    async with apply_rig(InProcessTransport(EmbeddedServer(seed=1).handle), "default", [ConfigMap]) as rig:
        for number in range(3):
            await rig.applier.apply(config_map(f"lasting-{number}", a="1"))
        await come_and_go(rig, 40)
        assert len(rig.memory) <= 8
        rig.sent.clear()
        for number in range(3):
            await rig.applier.apply(config_map(f"lasting-{number}", a="1"))
        assert rig.sent == []


async def test_edits_of_others_that_never_end_cost_no_write() -> None:
    async with apply_rig(InProcessTransport(EmbeddedServer(seed=1).handle), "default", [ConfigMap]) as rig:
        await rig.applier.apply(config_map("it", a="1"))
        rig.sent.clear()
        for number in range(5):
            await rig.others.patch(ConfigMap, rig.key("it"), {"metadata": {"annotations": {"theirs": str(number)}}})
            await rig.seen(ConfigMap, "it")
            await rig.applier.apply(config_map("it", a="1"))
        assert rig.sent == []
        await rig.others.patch(ConfigMap, rig.key("it"), {"data": {"a": "2"}})
        await rig.seen(ConfigMap, "it")
        await rig.applier.apply(config_map("it", a="1"))
        assert rig.sent == ["apply"]
