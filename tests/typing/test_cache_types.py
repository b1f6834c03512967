"""What type checkers see of the cache: mypy reads this file (`make types`); running it only loads it."""

from __future__ import annotations

from typing import assert_type

from konverge.cache import Cache, Entry, Event, Lister, by_function
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, Kind, Unstructured

POD = Kind("", "v1", "Pod", "pods")


async def a_class_gives_typed_objects(cache: Cache) -> None:
    pods = cache.declare(Pod)
    assert_type(pods, Lister[Pod])
    assert_type(pods.get("web", namespace="shop"), Pod | None)
    assert_type(pods.list(labels="app=web"), list[Pod])
    assert_type(pods.find("node", "n1"), list[Pod])
    assert_type(pods.owned_by("uid"), list[Pod])
    assert_type(pods.entry(Key("shop", "web")), Entry | None)
    assert_type(await cache.get(Pod, "web"), Pod | None)
    assert_type(await cache.list(Pod), list[Pod])


async def a_kind_gives_untyped_ones(cache: Cache) -> None:
    assert_type(cache.declare(POD), Lister[Unstructured])
    assert_type(cache.declare(POD).get("web"), Unstructured | None)
    assert_type(await cache.get(POD, "web"), Unstructured | None)
    assert_type(await cache.list(POD), list[Unstructured])


async def observers_get_events(view: Lister[Pod]) -> None:
    async for event in view.events():
        assert_type(event, Event)
        assert_type(event.entry.read(Pod), Pod)
    view.add_index("images", by_function(Pod, lambda pod: [one.image or "" for one in pod.spec.containers]))
