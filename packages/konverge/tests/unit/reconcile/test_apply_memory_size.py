"""The stored state of an applier is dropped with its objects, whether their kind is cached or not."""

from __future__ import annotations

import pytest

from apply_rig import ApplyRig, apply_rig
from konverge.client import InProcessTransport
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.objects import ObjectMeta, kind_of
from konverge_cluster.embedded_server import EmbeddedServer


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


async def create_and_delete(rig: ApplyRig, count: int) -> None:
    for number in range(count):
        created = await rig.applier.apply(config_map(f"passing-{number}", a="1"))
        await rig.others.delete(created)
        await rig.seen(ConfigMap, created.name)


async def test_the_states_of_deleted_children_are_dropped() -> None:
    async with apply_rig(InProcessTransport(EmbeddedServer(seed=1).handle), "default", [ConfigMap]) as rig:
        for number in range(3):
            await rig.applier.apply(config_map(f"lasting-{number}", a="1"))
        await create_and_delete(rig, 40)
        assert len(rig.last_applied) <= 8
        rig.sent.clear()
        for number in range(3):
            await rig.applier.apply(config_map(f"lasting-{number}", a="1"))
        assert rig.sent == []


async def test_endless_edits_of_other_fields_cause_no_write() -> None:
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


@pytest.mark.parametrize(
    ("obj", "kept"),
    [
        (config_map("it", a="1"), True),
        (config_map("it", a="x" * 15_000), True),
        (config_map("it", a="x" * 17_000), False),
        (Secret(metadata=ObjectMeta(name="it"), data={"a": b"1"}), False),
    ],
    ids=["small", "below the limit", "large", "Secret"],
)
async def test_a_state_holds_only_small_objects_that_are_no_secrets(obj: ConfigMap | Secret, kept: bool) -> None:
    transport = InProcessTransport(EmbeddedServer(seed=1).handle)
    async with apply_rig(transport, "default", [ConfigMap, Secret]) as rig:
        for _ in range(2):
            made = await rig.applier.apply(obj)
            state = rig.last_applied.get(kind_of(made), made.key, uid=made.uid)
            assert state is not None
            assert (state.entry is not None) is kept
            change = {"metadata": {"annotations": {"theirs": made.resource_version}}}
            await rig.others.patch(kind_of(made), made.key, change)
            await rig.seen(type(made), "it")
            await rig.applier.apply(obj)
            state = rig.last_applied.get(kind_of(made), made.key, uid=made.uid)
            assert state is not None
            assert state.entry is None, "the values are known now"
            await rig.others.delete(made)
            await rig.seen(type(made), "it")
        assert rig.sent == ["apply", "apply"]
