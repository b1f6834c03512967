"""What `konverge why` finds: controllers by name or kind, keys with and without a namespace."""

from __future__ import annotations

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Context, Controller, Key, Manager, ObjectMeta, controller_for
from konverge.k8s.core.v1 import Namespace
from konverge.testing import settle


async def reconcile(_obj: object, _ctx: Context) -> None:
    return None


def controllers() -> tuple[Controller[Gadget], Controller[Namespace]]:
    return controller_for(Gadget).named("parts").build(reconcile), controller_for(Namespace).build(reconcile)


async def filled_world() -> World:
    world = await world_with_gadgets()
    await world.client.create(Namespace(metadata=ObjectMeta(name="shop")))
    for name, namespace in (("a", "default"), ("b", "shop")):
        obj = gadget(name)
        obj.metadata.namespace = namespace
        await world.client.create(obj)
    return world


async def test_a_history_is_found_by_controller_kind_and_key() -> None:
    async with operating(await filled_world(), *controllers()) as manager:
        await settle()
        running = manager._running
        assert running is not None

        def keys(name: str, key: Key | None) -> set[str]:
            return {read["key"] for entry in running.find_history(name, key) or [] for read in entry["reads"]}

        for name in ("parts", "PARTS", "gadget", "Gadget", ""):
            assert keys(name, Key("shop", "b")) == {"shop/b"}
            assert keys(name, Key("", "a")) == {"default/a"}, "the namespace of the client"
        assert keys("Namespace", Key("", "shop")) == {"shop"}
        assert running.find_history("parts", Key("", "b")) is None
        assert running.find_history("Namespace", Key("", "a")) is None
        assert running.find_history("nobody", Key("shop", "b")) is None


async def test_without_a_key_the_keys_with_a_history_are_listed_by_controller() -> None:
    async with operating(await filled_world(), *controllers()) as manager:
        await settle()
        running = manager._running
        assert running is not None
        everything = running.find_history("", None)
        assert set(everything) == {"parts", "namespace"}
        assert sorted(everything["parts"]) == ["default/a", "shop/b"]
        assert "shop" in everything["namespace"]
        assert set(running.find_history("gadget", None)) == {"parts"}
        assert running.find_history("nobody", None) is None


async def test_why_has_the_history_of_one_controller_by_its_exact_name() -> None:
    manager = Manager(name="gadget-operator")
    manager.add(*controllers())
    with pytest.raises(ValueError, match=r"no controller 'parts' is running \(there are: parts, namespace\)"):
        manager.why("parts", Key("shop", "b"))
    assert manager.stats() == ()
    async with operating(await filled_world(), *controllers()) as running:
        await settle()
        (entry,) = running.why("parts", Key("shop", "b"))
        assert ([read["key"] for read in entry["reads"]], entry["result"]) == (["shop/b"], "done")
        assert running.why("parts", Key("shop", "c")) == []
        with pytest.raises(ValueError, match=r"^no controller 'Gadget' is running"):
            running.why("Gadget", Key("shop", "b"))
    with pytest.raises(ValueError, match=r"\(there are: none\)"):
        Manager().why("parts", Key("shop", "b"))
