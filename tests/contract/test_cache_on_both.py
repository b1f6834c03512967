"""Promises C2, C3 and C7, and who is told of what, on the embedded control plane and on a real API server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from konverge.cache import Cache, CacheOptions, Event, EventType, Lister, by_path
from konverge.client import Client, HttpTransport, InProcessTransport, load_config
from konverge.k8s.core.v1 import ConfigMap, Namespace, Pod, ServiceAccount
from konverge.objects import Key, Kind, ObjectMeta, kind_of
from konverge.testing import ControlPlane
from konverge.wire import Request, Transport
from konverge_cluster.embedded_server import EmbeddedServer

CONFIG_MAP, POD = kind_of(ConfigMap), kind_of(Pod)
MANAGER = "cache-tests"

Open = Callable[..., "AbstractAsyncContextManager[Home]"]


@dataclass
class Home:
    """A server, a namespace of our own on it, and a cache of it that is open."""

    transport: Transport
    client: Client
    cache: Cache
    namespace: str

    async def request(self, method: str, path: str, body: Any = None, media: str = "application/json") -> bytes:
        """Send a request and give the bytes of a good answer, as they came."""
        path, _, query = path.partition("?")
        options = tuple(tuple(part.split("=", 1)) for part in query.split("&") if part)
        request = Request(
            method,
            path,
            query=options,  # type: ignore[arg-type]
            headers={"accept": "application/json", "content-type": media},
            body=b"" if body is None else msgspec.json.encode(body),
            timeout=30,
        )
        async with await self.transport.send(request) as response:
            answer = await response.read()
            assert response.status < 300, answer
        return answer

    def path(self, name: str = "", plural: str = "configmaps") -> str:
        return f"/api/v1/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    # Own writes: the cache is told of each response, as the client's writers do

    async def create(self, name: str, data: Any = None, **more: Any) -> Any:
        wish = {"metadata": {"name": name, **more}, "data": data or {}}
        answer = await self.request("POST", self.path(), wish)
        self.cache.record_write(CONFIG_MAP, answer, created=True, writer=MANAGER)
        return msgspec.json.decode(answer)

    async def patch(self, name: str, patch: Any, *, base: str = "") -> Any:
        if base:
            patch = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": base}}
        answer = await self.request("PATCH", self.path(name), patch, "application/merge-patch+json")
        self.cache.record_write(CONFIG_MAP, answer, base_version=base, writer=MANAGER)
        return msgspec.json.decode(answer)

    async def apply(self, name: str, data: Any) -> Any:
        wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        path = f"{self.path(name)}?fieldManager={MANAGER}&force=true"
        answer = await self.request("PATCH", path, wish, "application/apply-patch+yaml")
        self.cache.record_write(CONFIG_MAP, answer, writer=MANAGER)
        return msgspec.json.decode(answer)

    async def delete(self, name: str, kind: Kind = CONFIG_MAP) -> Any:
        answer = await self.request("DELETE", self.path(name, kind.plural))
        self.cache.record_delete(kind, Key(self.namespace, name), answer, writer=MANAGER)
        return msgspec.json.decode(answer)

    # Writes of others: nobody tells the cache

    async def others_patch(self, name: str, patch: Any) -> Any:
        return msgspec.json.decode(await self.request("PATCH", self.path(name), patch, "application/merge-patch+json"))

    async def declared(self, options: CacheOptions | None = None) -> Lister[ConfigMap]:
        own = CacheOptions(namespaces=(self.namespace,), manager=MANAGER)
        view = self.cache.declare(ConfigMap, (options or CacheOptions()).over(own))
        await self.cache.wait_for_sync(timeout=30)
        return view

    async def becomes_equal(self, view: Lister[ConfigMap], labels: str = "") -> None:
        """Wait until the view is what the server has, and nothing of ours is left."""
        async with asyncio.timeout(30):
            while True:
                found = await self.client.list(CONFIG_MAP, namespace=self.namespace, labels=labels)
                expected = {one.key: one.resource_version for one in found}
                seen = {entry.key: str(entry.version) for entry in view.entries()}
                pending = sum(informer.store.stats().pending for informer in view.informers)
                if expected == seen and not pending:
                    return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def home(transport: Transport, namespace: str) -> AsyncIterator[Home]:
    async with Client(transport) as client, Cache(client.collection, server=client) as cache:
        yield Home(transport, client, cache, namespace)


@pytest.fixture(params=["embedded", pytest.param("real", marks=[pytest.mark.control_plane, pytest.mark.real_time])])
def opened(request: pytest.FixtureRequest) -> Open:
    """A function that opens a home on the embedded server, then on a real one."""
    if request.param == "embedded":
        return lambda: home(InProcessTransport(EmbeddedServer(seed=1).handle), "default")
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    return lambda: home(HttpTransport(load_config(kubeconfig=plane.kubeconfig)), namespace)


async def becomes_true(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not claim():  # noqa: ASYNC110 - what is waited for is anywhere
            await asyncio.sleep(0.05)


def version_of(found: Any) -> int:
    return int(found["metadata"]["resourceVersion"])


# C3: after a write returns, every read sees it


async def test_every_kind_of_write_is_seen_by_every_read_at_once(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared(CacheOptions(indexes=(("value", by_path(".data.value")),)))

        def seen() -> dict[str, int]:
            by_get = {entry.key.name: int(entry.version) for entry in [maps.entry(Key(it.namespace, "a"))] if entry}
            by_list = {e.key.name: int(e.version) for e in maps.entries(namespace=it.namespace) if e.key.name == "a"}
            by_label = {e.key.name: int(e.version) for e in maps.entries(labels="app=web") if e.key.name == "a"}
            assert by_get == by_list == by_label
            return by_get

        made = await it.create("a", {"value": "1"}, labels={"app": "web"})
        assert seen() == {"a": version_of(made)}
        assert [one.name for one in maps.find("value", "1")] == ["a"]

        changed = await it.patch("a", {"data": {"value": "2"}})
        assert seen() == {"a": version_of(changed)}
        assert maps.find("value", "1") == []
        assert [one.name for one in maps.find("value", "2")] == ["a"]

        applied = await it.apply("a", {"value": "3"})
        assert seen() == {"a": version_of(applied)}
        assert [one.data for one in maps.find("value", "3")] == [{"value": "3"}]

        await it.delete("a")
        assert seen() == {}
        assert maps.find("value", "3") == []
        await it.becomes_equal(maps)


async def test_a_finalizer_keeps_an_object_in_sight_and_the_last_one_takes_it_away(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared()
        await it.create("a", finalizers=["example.com/one"])
        marked = await it.delete("a")
        assert marked["metadata"]["deletionTimestamp"]
        entry = maps.entry(Key(it.namespace, "a"))
        assert entry is not None
        assert entry.terminating

        await it.patch("a", {"metadata": {"finalizers": None}})
        assert maps.get("a", namespace=it.namespace) is None
        await it.becomes_equal(maps)


async def test_a_kind_whose_delete_answers_with_the_object_is_gone_all_the_same(opened: Open) -> None:
    async with opened() as it:
        options = CacheOptions(namespaces=(it.namespace,))
        pods, accounts = it.cache.declare(Pod, options), it.cache.declare(ServiceAccount, options)
        await it.cache.wait_for_sync(timeout=30)
        account = {"metadata": {"name": "a"}, "automountServiceAccountToken": False}
        answer = await it.request("POST", it.path(plural="serviceaccounts"), account)
        it.cache.record_write(kind_of(ServiceAccount), answer, created=True)
        spec = {"containers": [{"name": "c", "image": "c"}], "serviceAccountName": "a"}
        answer = await it.request("POST", it.path(plural="pods"), {"metadata": {"name": "a"}, "spec": spec})
        it.cache.record_write(POD, answer, created=True)
        assert pods.get("a", namespace=it.namespace) is not None

        await it.delete("a", POD)
        await it.delete("a", kind_of(ServiceAccount))
        assert pods.get("a", namespace=it.namespace) is None
        assert accounts.get("a", namespace=it.namespace) is None
        await becomes_true(lambda: not any(informer.store.pending for informer in it.cache.stats().informers))


async def test_a_namespace_that_is_terminating_is_still_seen(opened: Open) -> None:
    async with opened() as it:
        spaces = it.cache.declare(Namespace)
        await it.cache.wait_for_sync(timeout=30)
        made = await it.client.create(Namespace(metadata=ObjectMeta(generate_name="passing-")))
        assert made.source is not None
        it.cache.record_write(kind_of(Namespace), made.source, created=True)
        answer = await it.request("DELETE", f"/api/v1/namespaces/{made.name}")
        it.cache.record_delete(kind_of(Namespace), made.key, answer)
        entry = spaces.entry(Key("", made.name))
        assert entry is None or entry.terminating
        if msgspec.json.decode(answer)["spec"].get("finalizers"):
            assert entry is not None


async def test_a_write_out_of_the_selector_is_out_of_sight(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared(CacheOptions(labels="app=web"))
        await it.create("a", labels={"app": "web"})
        await it.create("b", labels={"app": "db"})
        assert [one.name for one in maps.list()] == ["a"]
        await it.patch("a", {"metadata": {"labels": {"app": "db"}}})
        assert maps.list() == []
        await it.patch("b", {"metadata": {"labels": {"app": "web"}}})
        assert [one.name for one in maps.list()] == ["b"]
        await it.becomes_equal(maps, "app=web")


async def test_a_name_used_again_at_once_is_another_object(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared()
        uids = []
        for _ in range(5):
            made = await it.create("a")
            uids.append(made["metadata"]["uid"])
            found = maps.get("a", namespace=it.namespace)
            assert found is not None
            assert found.uid == uids[-1]
            await it.delete("a")
            assert maps.get("a", namespace=it.namespace) is None
        await it.becomes_equal(maps)


async def test_many_writers_at_once_each_see_their_own_writes(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared(CacheOptions(indexes=(("value", by_path(".data.value")),)))
        newest: dict[Key, int] = {}

        def never_back(event: Event) -> None:
            if event.new is not None:
                assert newest.get(event.key, 0) < int(event.new.version)
                newest[event.key] = int(event.new.version)

        await maps.subscribe(never_back)

        async def write(worker: int) -> None:
            choose = random.Random(worker)
            name, there = f"own-{worker}", False
            for number in range(25):
                value = f"{worker}-{number}"
                if not there:
                    made = await it.create(name, {"value": value})
                    there = True
                elif choose.random() < 0.25:
                    await it.delete(name)
                    there = False
                    assert maps.get(name, namespace=it.namespace) is None
                    continue
                elif choose.random() < 0.5:
                    made = await it.apply(name, {"value": value})
                else:
                    made = await it.patch(name, {"data": {"value": value}})
                entry = maps.entry(Key(it.namespace, name))
                assert entry is not None
                assert int(entry.version) >= version_of(made)
                assert [one.name for one in maps.find("value", value)] == [name]

        async def disturb() -> None:
            await it.request("POST", it.path(), {"metadata": {"name": "foreign"}})
            for number in range(60):
                await it.others_patch("foreign", {"data": {"value": f"x-{number}"}})

        async with asyncio.TaskGroup() as group:
            group.create_task(disturb())
            for worker in range(6):
                group.create_task(write(worker))
        await it.becomes_equal(maps)


# C2 and C7


async def test_what_an_event_tells_is_in_the_store_and_in_its_indexes_when_it_is_told(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared(CacheOptions(indexes=(("value", by_path(".data.value")),)))
        told = 0

        def check(event: Event) -> None:
            nonlocal told
            told += 1
            entry = maps.entry(event.key)
            if event.new is not None:
                assert entry is not None
                assert int(entry.version) >= int(event.new.version)
                value = event.new.read(ConfigMap).data["value"]
                assert event.key in [one.key for one in maps.find("value", value)]
            else:
                assert entry is None
                assert event.key not in [one.key for one in maps.list()]

        await maps.subscribe(check)
        for number in range(10):
            await it.request("POST", it.path(), {"metadata": {"name": f"a-{number}"}, "data": {"value": "0"}})
            await it.others_patch(f"a-{number}", {"data": {"value": "1"}})
            await it.request("DELETE", it.path(f"a-{number}"))
        await becomes_true(lambda: told == 30)


async def test_what_a_reader_changes_is_its_own(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared()
        await it.create("a", {"value": "1"}, labels={"app": "web"})
        mine = maps.get("a", namespace=it.namespace)
        assert mine is not None
        mine.data["value"] = "changed"
        mine.metadata.labels.clear()
        (listed,) = [one for one in maps.list() if one.name == "a"]
        listed.data.clear()
        again = maps.get("a", namespace=it.namespace)
        assert again is not None
        assert (again.data, again.metadata.labels) == ({"value": "1"}, {"app": "web"})


# Who is told


async def test_only_what_is_purely_ours_names_its_writer(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared()
        told: list[tuple[EventType, str, object]] = []
        await maps.subscribe(
            lambda event: told.append((event.type, event.entry.read(ConfigMap).data.get("value", ""), event.writer))
        )

        made = await it.create("a", {"value": "created"})
        await it.patch("a", {"data": {"value": "patched"}}, base=made["metadata"]["resourceVersion"])
        await it.others_patch("a", {"data": {"value": "foreign"}})
        await it.apply("a", {"value": "foreign"})
        await it.delete("a")
        await it.becomes_equal(maps)
        await becomes_true(lambda: told[-1][0] is EventType.DELETED)

        by_value = {(kind, value): writer for kind, value, writer in told}
        assert by_value[EventType.UPDATED, "foreign"] is None, "others, and an apply that may have merged with them"
        # The watch may be faster than the response: then an own write is told as if it were anybody's.
        assert by_value[EventType.ADDED, "created"] in (MANAGER, None)
        assert by_value[EventType.UPDATED, "patched"] in (MANAGER, None)
        assert told[-1][2] in (MANAGER, None)


async def test_of_managed_fields_only_our_own_are_kept(opened: Open) -> None:
    async with opened() as it:
        maps = await it.declared()
        await it.create("a", {"value": "1"})
        await it.apply("a", {"mine": "2"})
        await it.becomes_equal(maps)
        found = maps.get("a", namespace=it.namespace)
        assert found is not None
        assert {entry.manager for entry in found.metadata.managed_fields} == {MANAGER}
        assert found.metadata.managed_fields[0].fields() == {"f:data": {"f:mine": {}}}


# Scopes


async def test_fields_are_selected_by_the_server_and_own_writes_alike(opened: Open) -> None:
    async with opened() as it:
        options = CacheOptions(namespaces=(it.namespace,))
        pending = it.cache.declare(Pod, CacheOptions(fields="spec.nodeName=,status.phase!=Failed").over(options))
        placed = it.cache.declare(Pod, CacheOptions(fields="spec.nodeName=n1").over(options))
        await it.cache.wait_for_sync(timeout=30)
        await it.request("POST", it.path(plural="serviceaccounts"), {"metadata": {"name": "a"}})
        for name, node in (("a", {}), ("b", {"nodeName": "n1"})):
            spec: dict[str, Any] = {"containers": [{"name": "c", "image": "c"}], "serviceAccountName": "a", **node}
            spec["automountServiceAccountToken"] = False
            answer = await it.request("POST", it.path(plural="pods"), {"metadata": {"name": name}, "spec": spec})
            it.cache.record_write(POD, answer, created=True)
            assert [one.name for one in pending.list()] == ["a"]
            assert [one.name for one in placed.list()] == (["b"] if node else [])


async def test_a_hundred_namespaces_come_and_go(opened: Open) -> None:
    async with opened() as it:
        names = [f"many-{it.namespace}-{number}"[:60] for number in range(100)]
        for part in range(0, 100, 20):
            await asyncio.gather(
                *(it.client.create(Namespace(metadata=ObjectMeta(name=name))) for name in names[part : part + 20])
            )
        maps = it.cache.declare(ConfigMap, CacheOptions(namespaces=tuple(names), labels="many=yes"))
        await it.cache.wait_for_sync(timeout=120)
        known: dict[Key, Event] = {}

        def replay(event: Event) -> None:
            if event.new is None:
                del known[event.key]
            else:
                known[event.key] = event

        await maps.subscribe(replay)
        for name in names:
            wish = ConfigMap(metadata=ObjectMeta(name="a", namespace=name, labels={"many": "yes"}))
            await it.client.create(wish)
        await becomes_true(lambda: len(maps.list()) == 100)
        assert len(known) == 100

        maps.set_namespaces(names[:1])
        assert [key.namespace for key in known] == names[:1]
        assert len(it.cache.stats().informers) == 1
        maps.set_namespaces(names)
        await it.cache.wait_for_sync(timeout=120)
        assert len(maps.list()) == len(known) == 100
        maps.set_namespaces(())
        assert maps.list() == []
        assert (known, it.cache.stats().informers) == ({}, ())
        for name in names:
            await it.client.delete(Namespace, name)
