"""The shared cache on virtual time, with an embedded server at the other end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from konverge.cache import Cache, CacheOptions, Event, EventType, by_function, by_path
from konverge.client import Client, InProcessTransport
from konverge.errors import DecodeError, NotSynced
from konverge.k8s.core.v1 import ConfigMap, Namespace, Pod, ServiceAccount
from konverge.objects import Key, Kind, Unstructured, encode, kind_of
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import Fault, lists, status_response, watches
from virtual_server import VirtualTimeServer, config_map

CONFIG_MAP = kind_of(ConfigMap)
WIDGET = Kind("example.com", "v1", "Widget", "widgets")


@dataclass
class Rig:
    """A server, a client, and an open cache."""

    plane: VirtualTimeServer
    transport: FaultTransport
    client: Client
    cache: Cache

    async def create(self, name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
        return await self.plane.good(
            "POST", f"/api/v1/namespaces/{namespace}/configmaps", config_map(name, None, **data)
        )

    async def change(self, name: str, **data: str) -> dict[str, Any]:
        return await self.plane.merge(f"/api/v1/namespaces/default/configmaps/{name}", {"data": data})

    async def delete(self, name: str) -> dict[str, Any]:
        return await self.plane.good("DELETE", f"/api/v1/namespaces/default/configmaps/{name}")

    async def namespaces(self, *names: str) -> None:
        for name in names:
            await self.plane.good("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def watched(self) -> int:
        return len(self.transport.script.requests(watches("configmaps")))


@asynccontextmanager
async def rig(**options: Any) -> AsyncIterator[Rig]:
    plane = VirtualTimeServer()
    transport = FaultTransport(InProcessTransport(plane.server.handle))
    async with (
        Client(transport) as client,
        Cache(client.collection, server=client, **options) as cache,
    ):
        yield Rig(plane, transport, client, cache)


async def settle() -> None:
    await asyncio.sleep(0.5)


# Declarations and reads


async def test_declared_kinds_are_read_from_memory() -> None:
    async with rig() as it:
        await it.create("a", value="1")
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        requests = len(it.transport.script.log)

        found = maps.get("a", namespace="default")
        assert found is not None
        assert (type(found), found.data) == (ConfigMap, {"value": "1"})
        assert maps.get("b", namespace="default") is None
        assert [one.name for one in maps.list()] == ["a"]
        assert (await it.cache.get(ConfigMap, "a", namespace="default")) == found
        assert [one.name for one in await it.cache.list(ConfigMap)] == ["a"]
        assert len(it.transport.script.log) == requests, "no request was sent"


async def test_a_kind_may_be_read_without_a_class() -> None:
    async with rig() as it:
        await it.create("a", value="1")
        maps = it.cache.declare(CONFIG_MAP)
        await it.cache.wait_for_sync(timeout=5)
        found = maps.get(Key("default", "a"))
        assert isinstance(found, Unstructured)
        assert (found.api_version, found.kind, found["data"]) == ("v1", "ConfigMap", {"value": "1"})


async def test_an_undeclared_kind_is_read_from_the_server_which_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rig() as it:
        await it.create("a")
        with caplog.at_level(logging.INFO, "konverge.cache"):
            for _ in range(3):
                assert (await it.cache.get(ConfigMap, "a", namespace="default")) is not None
            assert (await it.cache.get(ConfigMap, "b", namespace="default")) is None
            assert [one.name for one in await it.cache.list(CONFIG_MAP, namespace="default")] == ["a"]
        records = [record for record in caplog.records if "not cached" in record.message]
        assert [record.kind for record in records] == ["ConfigMap.v1"]  # type: ignore[attr-defined]
        assert it.cache.stats().informers == ()


async def test_without_a_server_a_kind_must_be_declared() -> None:
    async with rig() as it:
        cache = Cache(it.client.collection)
        with pytest.raises(
            ValueError, match=r"^ConfigMap is not declared, and this cache has no server to read from: declare it$"
        ):
            await cache.get(ConfigMap, "a")


async def test_equal_declarations_share_one_informer() -> None:
    async with rig() as it:
        listers = [it.cache.declare(kind) for kind in (ConfigMap, CONFIG_MAP, ConfigMap)]
        await it.cache.wait_for_sync(timeout=5)
        assert len(it.cache.stats().informers) == 1
        assert it.watched() == 1

        other = it.cache.declare(ConfigMap, CacheOptions(labels="app=web"))
        await it.cache.wait_for_sync(timeout=5)
        assert len(it.cache.stats().informers) == 2

        for lister in [*listers, other]:
            assert it.cache.stats().informers != ()
            it.cache.remove_lister(lister)
        assert it.cache.stats().informers == ()


async def test_options_of_a_declaration_override_those_of_the_kind_and_those_of_the_cache() -> None:
    cache_wide = CacheOptions(manager="cache", labels="app=cache", namespaces=("cache",))
    by_kind = {CONFIG_MAP: CacheOptions(labels="app=kind", namespaces=("kind",))}
    async with rig(options=cache_wide, by_kind=by_kind) as it:
        options = it.cache.declare(ConfigMap, CacheOptions(namespaces=("mine",))).options
        assert (options.manager, options.labels, options.namespaces) == ("cache", "app=kind", ("mine",))
        other = it.cache.declare(Pod).options
        assert (other.manager, other.labels, other.namespaces) == ("cache", "app=cache", ("cache",))


async def test_a_lister_with_a_selector_does_not_serve_reads_of_the_whole_kind() -> None:
    async with rig() as it:
        await it.create("a")
        it.cache.declare(ConfigMap, CacheOptions(labels="app=web"))
        await it.cache.wait_for_sync(timeout=5)
        assert (await it.cache.get(ConfigMap, "a", namespace="default")) is not None, "read from the server"


async def test_selectors_are_evaluated_by_the_server() -> None:
    async with rig() as it:
        path = "/api/v1/namespaces/default/configmaps"
        await it.plane.good("POST", path, config_map("a", {"app": "web"}))
        await it.plane.good("POST", path, config_map("b", {"app": "db"}))
        chosen = it.cache.declare(ConfigMap, CacheOptions(labels="app=web"))
        named = it.cache.declare(ConfigMap, CacheOptions(fields="metadata.name=b"))
        await it.cache.wait_for_sync(timeout=5)
        assert [one.name for one in chosen.list()] == ["a"]
        assert [one.name for one in named.list()] == ["b"]


async def test_metadata_only_requests_nothing_else() -> None:
    async with rig() as it:
        await it.create("a", value="1")
        maps = it.cache.declare(CONFIG_MAP, CacheOptions(metadata_only=True))
        await it.cache.wait_for_sync(timeout=5)
        found = maps.get("a", namespace="default")
        assert found is not None
        assert (found.kind, found.name, "data" in found) == ("ConfigMap", "a", False)
        answer = await it.change("a", value="2")
        it.cache.record_write(CONFIG_MAP, encode(answer))
        assert "data" not in maps.get("a", namespace="default")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": "=="}, "found"),
        ({"fields": "x"}, "invalid selector"),
        ({"namespaces": "shop"}, "namespaces is a tuple"),
    ],
)
def test_invalid_cache_options_are_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        CacheOptions(**options)


async def test_an_undecodable_object_is_omitted_from_lists_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rig() as it:
        await it.create("a")
        await it.create("b")
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        broken = {"metadata": {"name": "b", "namespace": "default", "uid": "u", "resourceVersion": "99999"}, "data": 7}
        it.cache.record_write(CONFIG_MAP, encode(broken))

        assert [one.name for one in maps.list()] == ["a"]
        assert [one.name for one in maps.list()] == ["a"]
        with pytest.raises(DecodeError, match=r"read ConfigMap default/b: .*\.data"):
            maps.get("b", namespace="default")
        assert [record.key for record in caplog.records] == ["default/b"]  # type: ignore[attr-defined]


# Own writes


async def test_a_write_is_seen_by_every_read_as_soon_as_it_has_returned() -> None:
    async with rig() as it:
        maps = it.cache.declare(ConfigMap, CacheOptions(indexes=(("value", by_path(".data.value")),)))
        await it.cache.wait_for_sync(timeout=5)

        made = await it.create("a", value="1")
        it.cache.record_write(CONFIG_MAP, encode(made), created=True)
        found = maps.get("a", namespace="default")
        assert found is not None
        assert [one.name for one in maps.find("value", "1")] == ["a"]
        assert maps.list(namespace="default") == [found]

        gone = await it.delete("a")
        it.cache.record_delete(CONFIG_MAP, Key("default", "a"), encode(gone))
        assert maps.list() == maps.find("value", "1") == []
        await settle()
        assert it.cache.stats().informers[0].store.pending == 0


async def test_a_write_is_recorded_for_its_kind_only() -> None:
    async with rig() as it:
        maps, accounts = it.cache.declare(ConfigMap), it.cache.declare(ServiceAccount)
        await it.cache.wait_for_sync(timeout=5)
        it.cache.record_write(CONFIG_MAP, encode(await it.create("a")), created=True)
        assert len(maps.list()) == 1
        assert "a" not in [one.name for one in accounts.list()]


# Being events


async def test_a_handler_receives_existing_objects_and_then_every_change() -> None:
    async with rig() as it:
        await it.create("a")
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        events: list[tuple[str, str, bool]] = []
        end = await maps.subscribe(lambda event: events.append((event.type, event.key.name, event.listed)))
        await it.create("b")
        await it.change("a", value="2")
        await it.delete("a")
        await settle()
        end()
        await it.delete("b")
        await settle()
        assert events == [
            ("added", "a", True),
            ("added", "b", False),
            ("updated", "a", False),
            ("deleted", "a", False),
        ]


async def test_an_event_of_an_own_write_has_its_writer() -> None:
    async with rig() as it:
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        writers: list[object] = []
        await maps.subscribe(lambda event: writers.append(event.writer))
        it.cache.record_write(CONFIG_MAP, encode(await it.create("a")), created=True, writer="me")
        await it.create("b")
        await settle()
        assert writers == ["me", None]


async def test_a_handler_can_subscribe_only_once() -> None:
    async with rig() as it:
        maps = it.cache.declare(ConfigMap)
        events: list[Event] = []
        append = events.append
        await maps.subscribe(append)
        with pytest.raises(
            ValueError,
            match=r"^this handler is already subscribed: subscribe another one, or end the first subscription$",
        ):
            await maps.subscribe(append)


async def test_a_slow_reader_receives_the_last_state_of_every_object() -> None:
    async with rig() as it:
        await it.create("a")
        await it.create("b")
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        async with aclosing(maps.events()) as events:
            assert {(await anext(events)).key.name for _ in range(2)} == {"a", "b"}
            for value in "123":
                await it.change("a", value=value)
            await it.create("c")
            await it.delete("c")
            await it.delete("b")
            await settle()
            changed, removed = await anext(events), await anext(events)
            assert (changed.type, changed.key.name) == (EventType.UPDATED, "a")
            assert changed.new is not None
            assert changed.new.read(ConfigMap).data == {"value": "3"}
            assert (removed.type, removed.key.name) == (EventType.DELETED, "b")

            await it.create("d")
            assert (await anext(events)).key.name == "d", "waited for"
        with pytest.raises(StopAsyncIteration):
            await anext(events)


# Namespaces


async def test_namespaces_can_be_added_and_removed_at_any_time() -> None:
    async with rig() as it:
        await it.namespaces("one", "two", "three")
        for namespace in ("one", "two", "three"):
            await it.create("a", namespace)
        maps = it.cache.declare(ConfigMap, CacheOptions(namespaces=("one", "two")))
        maps.add_index("name", ".metadata.name")
        await it.cache.wait_for_sync(timeout=5)
        events: list[tuple[str, str]] = []
        await maps.subscribe(lambda event: events.append((event.type, event.key.namespace)))
        assert {one.namespace for one in maps.list()} == {"one", "two"}
        with pytest.raises(ValueError, match=r"^ConfigMap is not cached in namespace 'three' \(cached: .*\)$"):
            maps.get("a", namespace="three")

        maps.set_namespaces(("two", "three"))
        with pytest.raises(NotSynced):
            maps.list()
        assert [one.namespace for one in maps.list(namespace="two")] == ["two"]
        await it.cache.wait_for_sync(timeout=5)
        assert {one.namespace for one in maps.find("name", "a")} == {"two", "three"}
        assert events == [("added", "one"), ("added", "two"), ("deleted", "one"), ("added", "three")]
        assert {one.namespace for one in it.cache.stats().informers} == {"two", "three"}


async def test_a_namespace_shared_by_two_listers_stays_cached_while_one_uses_it() -> None:
    async with rig() as it:
        await it.namespaces("one", "two")
        await it.create("a", "one")
        left = it.cache.declare(ConfigMap, CacheOptions(namespaces=("one", "two")))
        right = it.cache.declare(ConfigMap, CacheOptions(namespaces=("one",)))
        await it.cache.wait_for_sync(timeout=5)
        assert len(it.cache.stats().informers) == 2
        left.set_namespaces(())
        assert left.list() == []
        assert len(right.list()) == 1
        assert len(it.cache.stats().informers) == 1


async def test_namespaces_that_are_not_cached_are_read_from_the_server() -> None:
    async with rig() as it:
        await it.namespaces("one", "two")
        await it.create("a", "two")
        it.cache.declare(ConfigMap, CacheOptions(namespaces=("one",)))
        await it.cache.wait_for_sync(timeout=5)
        assert (await it.cache.get(ConfigMap, "a", namespace="two")) is not None
        requests = len(it.transport.script.log)
        assert (await it.cache.get(ConfigMap, "a", namespace="one")) is None
        assert (await it.cache.list(ConfigMap, namespace="one")) == []
        assert len(it.transport.script.log) == requests, "one is read from memory"


async def test_invalid_namespaces_are_rejected() -> None:
    async with rig() as it:
        maps = it.cache.declare(ConfigMap)
        with pytest.raises(ValueError, match=r"^the empty namespace means all of them: pass it alone, or omit it$"):
            maps.set_namespaces(("", "shop"))
        with pytest.raises(ValueError, match=r"^[A-Za-z]+ is cluster-scoped: it cannot be cached by namespace$"):
            it.cache.declare(Namespace, CacheOptions(namespaces=("shop",)))


# Sync


async def test_a_read_before_the_first_list_raises_with_the_reason() -> None:
    async with rig() as it:
        maps = it.cache.declare(ConfigMap)
        with pytest.raises(NotSynced, match=r"^ConfigMap cache not synced: it is not started$"):
            maps.get("a", namespace="default")
        with pytest.raises(NotSynced):
            await it.cache.get(ConfigMap, "a", namespace="default")


async def test_a_cache_that_does_not_sync_reports_the_reason_for_each_kind() -> None:
    async with rig() as it:
        forbidden = status_response(403, reason="Forbidden", message="no")
        it.transport.script.add(lists("configmaps"), forbidden)
        it.transport.script.add(watches("configmaps"), forbidden)
        it.cache.declare(ConfigMap)
        it.cache.declare(WIDGET)
        it.cache.declare(ServiceAccount)
        with pytest.raises(NotSynced) as caught:
            await it.cache.wait_for_sync(timeout=20)
        assert str(caught.value) == (
            "ConfigMap cache not synced after 20 s: watch is forbidden (needs list, watch on configmaps); "
            "Widget cache not synced after 20 s: the server does not serve widgets.example.com "
            "(is its CRD installed, is the version right?)"
        )
        assert caught.value.reasons.keys() == {"ConfigMap", "Widget"} == it.cache.stats().not_synced.keys()

        it.transport.script.clear()
        await asyncio.sleep(60)
        assert it.cache.stats().not_synced.keys() == {"Widget"}


async def test_declarations_before_the_cache_is_opened_start_with_it() -> None:
    async with rig() as it:
        await it.create("a")
        cache = Cache(it.client.collection)
        maps = cache.declare(ConfigMap)
        async with cache:
            await cache.wait_for_sync(timeout=5)
            assert len(maps.list()) == 1
        assert len(maps.list()) == 1, "what was read can still be read"


async def test_stats_count_objects_and_bytes() -> None:
    async with rig() as it:
        await it.create("a", value="1")
        it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        stats = it.cache.stats()
        (informer,) = stats.informers
        assert (stats.objects, informer.not_synced_reason, informer.kind) == (1, "", CONFIG_MAP)
        assert stats.bytes == informer.store.bytes > 100
        assert informer.reflector.watches == 1


async def test_an_index_by_function_can_be_added_to_a_lister() -> None:
    async with rig() as it:
        await it.create("a", value="1")
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        maps.add_index("keys", by_function(ConfigMap, lambda one: one.data))
        assert [one.name for one in maps.find("keys", "value", namespace="default")] == ["a"]


async def test_children_are_found_by_their_owner() -> None:
    async with rig() as it:
        owner = await it.create("owner")
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        child = {"metadata": {"name": "child", "ownerReferences": [reference]}}
        await it.plane.good("POST", "/api/v1/namespaces/default/configmaps", child)
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        assert [one.name for one in maps.owned_by(uid)] == ["child"]


async def test_a_read_from_a_thread_before_sync_raises() -> None:
    async with rig() as it:
        it.transport.script.add(watches("configmaps"), Fault(delay=30))
        maps = it.cache.declare(ConfigMap)
        await settle()
        with pytest.raises(NotSynced, match="the first list is not complete"):
            await asyncio.to_thread(maps.list)


async def test_wait_for_sync_ignores_removed_listers() -> None:
    async with rig() as it:
        it.transport.script.add(watches("configmaps"), Fault(delay=3000))
        maps = it.cache.declare(ConfigMap)
        async with asyncio.TaskGroup() as group:
            group.create_task(it.cache.wait_for_sync(timeout=600))
            await settle()
            it.cache.remove_lister(maps)
        assert asyncio.get_running_loop().time() < 10


async def test_the_lister_of_a_kind_is_the_one_with_the_most_namespaces() -> None:
    async with rig() as it:
        await it.namespaces("shop", "bank")
        with pytest.raises(ValueError, match=r"^ConfigMap is not cached; declare it with \.owns\(\) or \.watches\(\)$"):
            it.cache.lister(ConfigMap)
        it.cache.declare(ConfigMap, CacheOptions(labels="app=web"))
        it.cache.declare(ConfigMap, CacheOptions(metadata_only=True))
        with pytest.raises(ValueError, match=r"^ConfigMap is not cached; declare it with \.owns\(\) or \.watches\(\)$"):
            it.cache.lister(ConfigMap)  # neither has all objects as they are
        for namespaces in (("shop",), ("shop", "bank"), ("bank",)):
            it.cache.declare(ConfigMap, CacheOptions(namespaces=namespaces))
        it.cache.declare(Pod)
        assert it.cache.lister(ConfigMap).namespaces == ("shop", "bank")
        everywhere = it.cache.declare(ConfigMap)
        assert it.cache.lister(ConfigMap) is everywhere
        assert it.cache.lister(CONFIG_MAP).type is Unstructured
        assert it.cache.lister(CONFIG_MAP).namespaces == ("",)


async def test_the_entry_of_an_object_is_that_of_a_complete_cache() -> None:
    async with rig() as it:
        made = await it.create("a")
        key = Key("default", "a")
        it.cache.declare(ConfigMap, CacheOptions(labels="app=web"))
        await it.cache.wait_for_sync(timeout=5)
        assert it.cache.entry(CONFIG_MAP, key) is None
        it.cache.declare(ConfigMap, CacheOptions(namespaces=("default",)))
        await it.cache.wait_for_sync(timeout=5)
        entry = it.cache.entry(CONFIG_MAP, key)
        assert entry is not None
        assert entry.uid == made["metadata"]["uid"]
        assert it.cache.entry(CONFIG_MAP, Key("default", "b")) is None
        assert it.cache.entry(CONFIG_MAP, Key("other", "a")) is None
        assert it.cache.entry(kind_of(Pod), key) is None


async def test_selectors_are_evaluated_in_memory_and_by_the_server() -> None:
    async with rig() as it:
        await it.namespaces("shop")
        for namespace, name, app in (("default", "a", "web"), ("default", "b", "db"), ("shop", "c", "web")):
            labelled = {"metadata": {"name": name, "labels": {"app": app}}}
            await it.plane.good("POST", f"/api/v1/namespaces/{namespace}/configmaps", labelled)

        async def names(**options: str) -> list[str]:
            return sorted(one.name for one in await it.cache.list(ConfigMap, **options))

        async def check() -> None:
            assert await names() == ["a", "b", "c"]
            assert await names(labels="app=web") == ["a", "c"]
            assert await names(labels="app=web", namespace="default") == ["a"]
            assert await names(namespace="shop") == ["c"]

        await check()
        maps = it.cache.declare(ConfigMap)
        await it.cache.wait_for_sync(timeout=5)
        await check()
        assert [one.key.name for one in maps.entries(labels="app=db")] == ["b"]
        assert [one.key.name for one in maps.entries(labels="app", namespace="shop")] == ["c"]


async def test_a_cache_that_does_not_reach_a_version_that_was_read_is_stale_since_then() -> None:
    async with rig() as it:
        await it.namespaces("shop")
        it.cache.declare(ConfigMap)
        it.cache.declare(ConfigMap, CacheOptions(namespaces=("shop",)))
        it.cache.declare(ConfigMap, CacheOptions(labels="app=web"))
        it.cache.declare(ConfigMap, CacheOptions(fields="metadata.name=a"))
        await it.cache.wait_for_sync(timeout=5)

        def stale() -> list[float | None]:
            return [one.stale_for for one in it.cache.stats().informers]

        async def read(version: str) -> None:
            it.cache.record_live_version(CONFIG_MAP, Key("default", "a"), version)

        known = it.cache.stats().informers[0].store.version
        await read(known)
        await read("not a number")
        it.cache.record_live_version(kind_of(Pod), Key("default", "a"), str(int(known) + 1000))
        assert stale() == [None] * 4
        it.transport.pause_streams()
        made = await it.create("a")
        await read(made["metadata"]["resourceVersion"])
        await asyncio.sleep(7)
        await read(str(int(made["metadata"]["resourceVersion"]) + 1))
        await read(known)  # an older one changes nothing
        await asyncio.sleep(3)
        assert stale() == [pytest.approx(10.0), None, None, None]


async def test_the_stats_of_an_informer_name_its_selection() -> None:
    async with rig() as it:
        await it.namespaces("shop")
        it.cache.declare(ConfigMap, CacheOptions(labels="app=web", fields="metadata.name=a", namespaces=("shop",)))
        await it.cache.wait_for_sync(timeout=5)
        (informer,) = it.cache.stats().informers
        assert (informer.namespace, informer.labels, informer.fields) == ("shop", "app=web", "metadata.name=a")


async def test_an_own_write_in_another_namespace_is_not_cached() -> None:
    async with rig() as it:
        await it.namespaces("shop")
        it.cache.declare(ConfigMap, CacheOptions(namespaces=("shop",)))
        await it.cache.wait_for_sync(timeout=5)
        made = await it.create("a")
        it.cache.record_write(CONFIG_MAP, encode(made), created=True)
        (informer,) = it.cache.stats().informers
        assert (informer.store.objects, informer.store.pending) == (0, 0)
