"""Listers and the cache that shares their informers: messages, arguments that are passed on, namespaces and streams."""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import aclosing
from typing import Any

import pytest

from cached_objects import WIDGET, at, deleted, widget
from konverge.cache import Cache, CacheOptions, Event
from konverge.cache.listers import Lister
from konverge.cache.options import ReflectorOptions
from konverge.errors import DecodeError, NotSynced
from konverge.k8s.core.v1 import ConfigMap, Namespace
from konverge.objects import Key, Kind, LabelSelector, Unstructured, decode_unstructured, kind_of
from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions

CONFIG_MAP = kind_of(ConfigMap)


class Silent:
    """Collections whose requests never return: tests write to the stores themselves."""

    def __init__(self) -> None:
        self.watches: list[float] = []

    def __call__(self, kind: Kind, *, namespace: str, metadata_only: bool) -> Silent:
        return self

    async def list(self, options: ListOptions) -> bytes:
        raise NotImplementedError

    async def watch(self, options: WatchOptions) -> Response:
        self.watches.append(asyncio.get_running_loop().time())
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def fill(lister: Lister[Any], *objects: bytes, version: int = 10) -> None:
    """Let each informer of a lister receive its objects in a list."""
    for informer in lister.informers:
        informer.begin()
        for raw in objects:
            namespace = decode_unstructured(raw)["metadata"]["namespace"]
            if informer.namespace in ("", namespace):
                informer.put(raw)
        await informer.swap(str(version))


async def listed(*objects: bytes, kind: Any = WIDGET, **options: Any) -> tuple[Cache, Lister[Any]]:
    cache = Cache(Silent())
    lister = cache.declare(kind, CacheOptions(**options))
    await fill(lister, *objects)
    return cache, lister


def names(objects: Any) -> list[str]:
    return sorted(one.key.name for one in objects)


# Reads


async def test_objects_are_read_by_name_or_by_key() -> None:
    _, lister = await listed(widget("a", 5))
    assert lister.get("a", namespace="shop") == lister.get(at("a"))
    assert lister.get("a") is None
    assert lister.get(at("a"), namespace="bank") is not None, "a key has its namespace"


async def test_an_object_without_a_namespace_is_read_by_its_name() -> None:
    cache, lister = await listed(b'{"metadata":{"name":"a","namespace":"","uid":"u","resourceVersion":"5"}}')
    assert lister.get("a") is not None
    assert await cache.get(WIDGET, "a") is not None
    assert cache.entry(WIDGET, Key("", "a")) is not None


async def test_reads_are_limited_to_a_namespace_labels_and_owners() -> None:
    owner = {"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": "owner"}
    _, lister = await listed(
        widget("a", 5, labels={"app": "web"}, ownerReferences=[owner], spec={"node": "n"}),
        widget("b", 6, namespace="bank", labels={"app": "web"}, ownerReferences=[owner], spec={"node": "n"}),
        widget("c", 7),
    )
    lister.add_index("node", ".spec.node")
    assert (names(lister.owned_by("owner")), names(lister.owned_by("owner", namespace="bank"))) == (["a", "b"], ["b"])
    assert (names(lister.list()), names(lister.list(namespace="shop"))) == (["a", "b", "c"], ["a", "c"])
    assert names(lister.list(labels="app=web", namespace="shop")) == ["a"]
    assert names(lister.entries(labels=LabelSelector.parse("app=web"))) == ["a", "b"]
    assert (names(lister.find("node", "n")), names(lister.find("node", "n", namespace="bank"))) == (["a", "b"], ["b"])
    assert names(lister.find_entries("node", "n")) == ["a", "b"]


async def test_a_lister_of_namespaces_reads_each_of_them() -> None:
    objects = [widget("a", 5), widget("b", 6, namespace="bank")]
    _, lister = await listed(*objects, namespaces=("shop", "bank"))
    assert lister.namespaces == ("shop", "bank")
    assert (names(lister.list()), names(lister.list(namespace="bank"))) == (["a", "b"], ["b"])
    assert lister.get(at("a")) is not None


@pytest.mark.parametrize(("namespaces", "cached"), [(("shop", "bank"), "shop, bank"), ((), "none")])
async def test_the_error_for_another_namespace_names_the_cached_ones(namespaces: tuple[str, ...], cached: str) -> None:
    _, lister = await listed(namespaces=("shop",))
    lister.set_namespaces(namespaces)
    with pytest.raises(ValueError, match=rf"^Widget is not cached in namespace 'club' \(cached: {cached}\)$"):
        lister.get(at("a", "club"))
    with pytest.raises(ValueError, match=rf"^Widget is not cached in namespace 'club' \(cached: {cached}\)$"):
        lister.list(namespace="club")


async def test_the_error_before_the_first_list_has_the_reason_by_kind() -> None:
    lister = Cache(Silent()).declare(WIDGET)
    with pytest.raises(NotSynced) as caught:
        lister.list()
    assert str(caught.value) == "Widget cache not synced: it is not started"
    assert caught.value.reasons == {str(WIDGET): "it is not started"}
    assert not lister.synced


async def test_the_error_for_an_undecodable_object_names_it_and_the_path() -> None:
    _, lister = await listed(widget("a", 5, labels={"app": 7}), kind=CONFIG_MAP)
    typed = lister.with_type(ConfigMap)
    with pytest.raises(DecodeError) as caught:
        typed.get(at("a"))
    assert str(caught.value) == f"read ConfigMap shop/a: {caught.value.__cause__}"
    assert isinstance(caught.value.__cause__, DecodeError)
    assert caught.value.path == caught.value.__cause__.path != ""
    assert typed.list() == []


async def test_an_undecodable_object_is_logged_once_for_each_version_and_with_a_bounded_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "konverge.cache")
    _, lister = await listed(widget("a", 5, labels={"app": 7}), kind=CONFIG_MAP)
    typed = lister.with_type(ConfigMap)
    (entry,) = lister.entries()
    typed.list()
    typed.list()
    assert len(caplog.records) == 1
    assert vars(caplog.records[0])["error"].startswith("read ConfigMap shop/a: ")
    typed._logged_failures.update((at(f"a-{number}"), 1) for number in range(998))
    lister.informers[0].put(widget("a", 12, labels={"app": 7}))
    typed.list()
    assert (len(caplog.records), len(typed._logged_failures)) == (2, 1000)
    lister.informers[0].put(widget("a", 13, labels={"app": 7}))
    typed.list()
    assert typed._logged_failures == {(entry.key, 13)}


async def test_a_lister_with_another_type_is_another_view_of_the_same_objects() -> None:
    _, lister = await listed(widget("a", 5), kind=CONFIG_MAP)
    assert lister.with_type(Unstructured) is lister
    typed = lister.with_type(ConfigMap)
    assert (typed.type, lister.type, typed.kind) == (ConfigMap, Unstructured, CONFIG_MAP)
    assert [type(one) for one in typed.list()] == [ConfigMap]


# Events and namespaces


async def test_a_namespace_that_is_added_is_reported_at_once_if_another_lister_has_it() -> None:
    cache, lister = await listed(widget("a", 5), namespaces=("shop",))
    other = cache.declare(WIDGET, CacheOptions(namespaces=("bank",)))
    await fill(other, widget("b", 6, namespace="bank"), widget("c", 7, namespace="bank"))
    events: list[Event] = []
    end = await lister.subscribe(events.append)
    lister.set_namespaces(("shop", "bank"))
    assert [(event.type, event.key.name, event.listed) for event in events] == [
        ("added", "a", True),
        ("added", "b", True),
        ("added", "c", True),
    ]
    assert lister.synced
    events.clear()
    lister.set_namespaces(("shop",))
    assert [(event.type, event.key.name) for event in events] == [("deleted", "b"), ("deleted", "c")]
    assert other.informers[0].reference_count == 1
    end()
    end()
    lister.informers[0].put(widget("d", 12))
    assert len(events) == 2


async def test_a_namespace_that_is_added_has_the_indexes_of_the_lister() -> None:
    cache, lister = await listed(widget("a", 5, spec={"node": "n"}), namespaces=("shop",))
    lister.add_index("node", ".spec.node")
    lister.set_namespaces(("bank",))
    await fill(lister, widget("b", 6, namespace="bank", spec={"node": "n"}))
    assert names(lister.find("node", "n")) == ["b"]
    assert [one.namespace for one in cache.stats().informers] == ["bank"]


async def test_existing_objects_of_every_namespace_are_reported_in_batches_before_subscribe_returns() -> None:
    objects = [widget(f"a-{number}", number + 1) for number in range(600)]
    _, lister = await listed(*objects, widget("b", 700, namespace="bank"), namespaces=("shop", "bank"))
    events: list[Event] = []
    await lister.subscribe(events.append)
    assert len(events) == 601


async def test_a_closed_stream_ends_its_subscription() -> None:
    _, lister = await listed(widget("a", 5), widget("b", 6, namespace="bank"), namespaces=("shop", "bank"))
    async with aclosing(lister.events()) as events:
        assert {(await anext(events)).key.name for _ in range(2)} == {"a", "b"}
        assert [len(one.store._subscriptions) for one in lister.informers] == [1, 1]
        lister.informers[0].put(widget("c", 12))
        assert (await anext(events)).key.name == "c"
    assert [len(one.store._subscriptions) for one in lister.informers] == [0, 0]
    assert lister._subscriptions == {}


async def test_a_closed_lister_reports_nothing_and_releases_its_informers() -> None:
    cache, lister = await listed(widget("a", 5))
    (informer,) = lister.informers
    events: list[Event] = []
    await lister.subscribe(events.append)
    cache.remove_lister(lister)
    cache.remove_lister(lister)
    informer.put(widget("b", 12))
    assert [event.type for event in events] == ["added"]
    assert (lister.namespaces, cache.stats().informers, informer.reference_count) == ((), (), 0)


@pytest.mark.parametrize(
    ("kind", "namespaces", "message"),
    [
        (WIDGET, ("", "shop"), "the empty namespace means all of them: pass it alone, or omit it"),
        (kind_of(Namespace), ("shop",), "Namespace is cluster-scoped: it cannot be cached by namespace"),
    ],
)
async def test_invalid_namespaces_change_nothing(kind: Kind, namespaces: tuple[str, ...], message: str) -> None:
    lister: Lister[Any] = Cache(Silent()).declare(kind)
    with pytest.raises(ValueError, match=f"^{message}$"):
        lister.set_namespaces(namespaces)
    assert lister.namespaces == ("",)
    lister.set_namespaces(("",))
    lister.set_namespaces(())
    assert not lister.namespaces


# The cache


async def test_the_cache_passes_own_writes_on_with_all_they_say() -> None:
    cache, lister = await listed(widget("a", 5), widget("b", 6))
    events: list[Event] = []
    await lister.subscribe(events.append)
    events.clear()
    put = lister.informers[0].put
    cache.record_write(WIDGET, widget("a", 12), writer="me")  # without a base version it may hide other changes
    put(widget("a", 12))
    cache.record_write(WIDGET, widget("a", 13), base_version="12", writer="me")
    put(widget("a", 13))
    cache.record_write(WIDGET, widget("c", 14), created=True, writer="me")
    put(widget("c", 14))
    cache.record_write(WIDGET, widget("d", 15), created=True)
    put(widget("d", 15))
    cache.record_delete(WIDGET, at("b"), deleted("uid-b"), writer="me")
    lister.informers[0].remove(widget("b", 16))
    cache.record_delete(WIDGET, at("c"), deleted("uid-c"))
    lister.informers[0].remove(widget("c", 17))
    assert [event.writer for event in events] == [None, "me", "me", None, "me", None]


async def test_the_cache_passes_the_version_of_a_delete_on() -> None:
    cache, lister = await listed()
    cache.record_delete(WIDGET, at("a"), deleted("uid-a"), version="10")
    assert cache.stats().informers[0].store.pending == 0, "its removal was delivered"
    cache.record_delete(WIDGET, at("a"), deleted("uid-a"))
    assert cache.stats().informers[0].store.pending == 1
    assert lister.list() == []


async def test_the_cache_passes_a_decoded_response_on() -> None:
    cache, lister = await listed()
    raw = widget("a", 12)
    other = decode_unstructured(widget("other", 12))
    cache.record_write(WIDGET, raw, document=other)
    assert names(lister.entries()) == ["other"], "the bytes are not parsed"


async def test_the_stats_of_a_cache_are_those_of_its_informers() -> None:
    cache, _ = await listed(widget("a", 5))
    await fill(cache.declare(CONFIG_MAP), widget("b", 6), widget("c", 7))
    cache.declare(Kind("example.com", "v1", "Gadget", "gadgets"))
    stats = cache.stats()
    assert (stats.objects, len(stats.informers)) == (3, 3)
    assert stats.bytes == sum(one.store.bytes for one in stats.informers) > 0
    assert stats.not_synced == {"Gadget": "it is not started"}


@pytest.mark.parametrize(
    ("namespaces", "reason"),
    [
        (("one",), "it is not started"),
        (("one", "two"), "it is not started, and 1 more namespaces"),
        (("one", "two", "three"), "it is not started, and 2 more namespaces"),
    ],
)
async def test_the_reason_for_several_namespaces_is_that_of_the_first(namespaces: tuple[str, ...], reason: str) -> None:
    cache = Cache(Silent())
    cache.declare(WIDGET, CacheOptions(namespaces=namespaces))
    with pytest.raises(NotSynced) as caught:
        await cache.wait_for_sync(timeout=1.5)
    assert str(caught.value) == f"Widget cache not synced after 1.5 s: {reason}"
    assert caught.value.reasons == {"Widget": reason}
    assert asyncio.get_running_loop().time() == 1.5


async def test_the_tasks_of_informers_have_the_names_of_their_collections() -> None:
    async with Cache(Silent()) as cache:
        cache.declare(WIDGET)
        cache.declare(CONFIG_MAP, CacheOptions(namespaces=("shop",)))
        running = {task.get_name() for task in asyncio.all_tasks()}
        assert {"informer Widget", "informer ConfigMap shop"} <= running
    assert not {task.get_name() for task in asyncio.all_tasks()} & {"informer Widget", "informer ConfigMap shop"}


async def test_the_reflectors_of_a_cache_have_its_options() -> None:
    source = Silent()
    options = ReflectorOptions(idle_timeout=5.0, initial_backoff=10.0, max_backoff=10.0)
    async with Cache(source, reflector_options=options) as cache:
        cache.declare(WIDGET)
        await asyncio.sleep(20)
    first, second, *_ = source.watches
    assert first == 0.0
    assert 15 <= second <= 17.5, "no response in 5 s, then a backoff of 10 s"


async def test_the_reflectors_of_a_cache_retry_one_after_the_other() -> None:
    source = Silent()
    async with Cache(source, reflector_options=ReflectorOptions(idle_timeout=5.0)) as cache:
        for name in "abcdefgh":
            cache.declare(Kind("example.com", "v1", name, name))
        await asyncio.sleep(9)
    retries = sorted(source.watches)[8:16]
    assert len(retries) == 8
    assert all(later - earlier >= 0.249 for earlier, later in itertools.pairwise(retries))


async def test_a_released_informer_stops_and_nothing_waits_for_it() -> None:
    async with Cache(Silent()) as cache:
        lister = cache.declare(WIDGET)
        (informer,) = lister.informers
        changes: list[bool] = []

        async def observe() -> None:
            await cache.changes.wait_for(lambda: not cache.stats().informers)
            changes.append(True)

        waiting = [asyncio.create_task(cache.wait_for_sync(5)), asyncio.create_task(observe())]
        await asyncio.sleep(0.5)
        cache.remove_lister(lister)
        await asyncio.wait(waiting, timeout=0.5)
        assert (informer.synced.is_set(), changes, [task.done() for task in waiting]) == (True, [True], [True, True])
        assert cache._tasks == {}


async def test_informers_are_shared_whatever_namespaces_and_indexes_listers_have() -> None:
    cache = Cache(Silent())
    options = CacheOptions(namespaces=("shop", "bank"), labels="app=web")
    one = cache.declare(WIDGET, options)
    other = cache.declare(WIDGET, CacheOptions(namespaces=("shop",), labels="app=web", indexes=(("a", owners),)))
    different = cache.declare(WIDGET, CacheOptions(namespaces=("shop",)))
    assert one.informers[0] is other.informers[0]
    assert one.informers[0] is not different.informers[0]
    assert [informer.reference_count for informer in one.informers] == [2, 1]
    assert one.informers[0].options == CacheOptions(labels="app=web")


def owners(entry: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = entry.owners
    return found


@pytest.mark.parametrize(
    "options",
    [{"labels": "a=b"}, {"fields": "a=b"}, {"metadata_only": True}, {"transform": str}],
)
async def test_a_selection_or_a_reduction_is_no_complete_cache(options: dict[str, Any]) -> None:
    cache = Cache(Silent())
    cache.declare(WIDGET, CacheOptions(**options))
    assert cache.complete_lister(WIDGET) is None
    with pytest.raises(ValueError, match=r"^Widget is not cached; declare it with \.owns\(\) or \.watches\(\)$"):
        cache.lister(WIDGET)


async def test_a_complete_lister_is_one_of_the_kind_and_is_gone_with_its_declaration() -> None:
    cache = Cache(Silent())
    maps, widgets = cache.declare(CONFIG_MAP), cache.declare(WIDGET)
    assert cache.complete_lister(CONFIG_MAP) is cache.lister(CONFIG_MAP) is maps
    assert cache.complete_lister(WIDGET) is cache.lister(WIDGET) is widgets
    cache.remove_lister(widgets)
    assert cache.complete_lister(WIDGET) is None
    assert cache.complete_lister(CONFIG_MAP) is maps


@pytest.mark.parametrize(
    ("namespaces", "found"), [(("",), [True, True]), (("shop",), [True, False]), ((), [False] * 2)]
)
async def test_a_lister_has_a_namespace_that_it_caches(namespaces: tuple[str, ...], found: list[bool]) -> None:
    lister: Lister[Any] = Cache(Silent()).declare(WIDGET)
    lister.set_namespaces(namespaces)
    assert [lister.has_namespace(one) for one in ("shop", "bank")] == found
    assert lister.has_namespace("") is ("" in namespaces)


async def test_a_complete_lister_has_all_namespaces_or_the_requested_one() -> None:
    cache = Cache(Silent())
    shop = cache.declare(WIDGET, CacheOptions(namespaces=("shop",)))
    assert cache.complete_lister(WIDGET, "shop") is shop
    assert cache.complete_lister(WIDGET, "bank") is None
    assert cache.complete_lister(WIDGET) is None
    everywhere = cache.declare(WIDGET)
    assert cache.complete_lister(WIDGET, "bank") is cache.complete_lister(WIDGET) is everywhere
    assert cache.complete_lister(CONFIG_MAP) is None


class Server:
    """Records what is read from it."""

    def __init__(self) -> None:
        self.reads: list[tuple[Any, ...]] = []

    async def get(self, kind: Any, name: str | Key, *, namespace: str | None = None) -> Any:
        self.reads.append((kind, name, namespace))
        return "object"

    async def list(self, kind: Any, *, namespace: str = "", labels: str = "") -> Any:
        self.reads.append((kind, namespace, labels))
        return ("object",)


async def test_a_kind_that_is_not_cached_is_read_from_the_server_with_all_arguments() -> None:
    server = Server()
    cache: Any = Cache(Silent(), server=server)
    assert await cache.get(ConfigMap, "a", namespace="shop") == "object"
    assert await cache.get(ConfigMap, Key("bank", "b")) == "object"
    assert await cache.get(ConfigMap, "c") == "object"
    assert await cache.list(ConfigMap, namespace="shop", labels="app=web") == ["object"]
    assert await cache.list(ConfigMap) == ["object"]
    assert server.reads == [
        (ConfigMap, Key("shop", "a"), None),
        (ConfigMap, Key("bank", "b"), None),
        (ConfigMap, Key("", "c"), None),
        (ConfigMap, "shop", "app=web"),
        (ConfigMap, "", ""),
    ]


async def test_a_cache_can_be_opened_again_after_it_was_closed() -> None:
    source = Silent()
    cache = Cache(source)
    lister = cache.declare(WIDGET)
    for _ in range(2):
        async with cache:
            await asyncio.sleep(1)
    assert source.watches == [0.0, 1.0]
    assert cache._tasks == {}
    assert lister.informers[0].reference_count == 1
    await cache.__aexit__(None, None, None)
