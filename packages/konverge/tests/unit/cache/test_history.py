"""T41 and the opposite, on virtual time: a restored etcd is found, and an old list is never taken for one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from konverge.cache import Cache, CacheOptions
from konverge.cache.history import HistoryCheck
from konverge.cache.informers import Informer
from konverge.client import Client, InProcessTransport
from konverge.errors import Cause, NotFound, ServerError
from konverge.objects import Key
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import RecordedRequest, status_response
from konverge.wire.messages import Request, Response
from konverge.wire.options import ListOptions, WatchOptions
from recording_sink import RecordingSink
from reflector_harness import CONFIG_MAP
from stale_reads import StaleReads
from virtual_server import CONFIG_MAPS, VirtualTimeServer, config_map

MINUTE = 60.0


async def server_with(*names: str, writes: int = 0) -> VirtualTimeServer:
    """Return a server with these config maps; the first is written again and again."""
    plane = VirtualTimeServer()
    for name in names:
        await plane.good("POST", CONFIG_MAPS, config_map(name))
    for number in range(writes):
        await plane.merge(f"{CONFIG_MAPS}/{names[0]}", {"data": {"value": str(number)}})
    return plane


@dataclass
class Watched:
    """A cache of the config maps of a server that can be replaced."""

    plane: VirtualTimeServer
    transport: FaultTransport
    cache: Cache

    def names(self) -> set[str]:
        return {entry.key.name for entry in self.informer.store.list()}

    @property
    def informer(self) -> Informer:
        (found,) = self.cache._informers.values()
        return found

    def requests(self, wanted: Callable[[RecordedRequest], bool]) -> list[RecordedRequest]:
        return self.transport.script.requests(wanted)

    async def versions(self) -> dict[str, str]:
        listing = await self.plane.good("GET", CONFIG_MAPS)
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listing["items"]}

    def cached_versions(self) -> dict[str, str]:
        return {entry.key.name: str(entry.version) for entry in self.informer.store.list()}


def is_probe(request: RecordedRequest) -> bool:
    return request.query.get("limit") == "1" and "resourceVersionMatch" in request.query


def is_watch_of_changes(request: RecordedRequest) -> bool:
    return "watch" in request.query and "sendInitialEvents" not in request.query


def is_full_list(request: RecordedRequest) -> bool:
    lists = request.method == "GET" and request.path.endswith("/configmaps") and "watch" not in request.query
    return (lists and not is_probe(request)) or "sendInitialEvents" in request.query


@asynccontextmanager
async def watching(plane: VirtualTimeServer) -> AsyncGenerator[tuple[Watched, StaleReads]]:
    found: list[Watched] = []

    async def handle(request: Request) -> Response:
        return await found[0].plane.server.handle(request) if found else await plane.server.handle(request)

    reads = StaleReads(InProcessTransport(handle))
    transport = FaultTransport(reads)
    async with Client(transport) as client, Cache(client.collection) as cache:
        cache.declare(CONFIG_MAP, CacheOptions(namespaces=("default",)))
        await cache.wait_for_sync(10)
        found.append(Watched(plane, transport, cache))
        yield found[0], reads


async def test_a_restored_server_is_found_under_a_silent_watch_within_two_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with watching(await server_with("a", "b", "late", writes=50)) as (it, _):
        it.plane = await server_with("a", "b")
        await asyncio.sleep(2 * MINUTE)
        assert it.cached_versions() == await it.versions()
        (record,) = [one for one in caplog.records if one.getMessage() == "server history restarted: listing again"]
        assert (record.levelname, vars(record)["kind"]) == ("WARNING", "ConfigMap")
        assert int(vars(record)["version"]) > 50
        await it.plane.good("POST", CONFIG_MAPS, config_map("new"))
        await asyncio.sleep(1)
        assert it.names() == {"a", "b", "new"}
        assert it.informer.stats().reflector.error is None


async def test_a_restored_server_that_cuts_its_watches_is_found_too() -> None:
    async with watching(await server_with("a", "b", "late", writes=50)) as (it, reads):
        it.plane = await server_with("a", "b")
        reads.stop()  # cuts all streams, as a server that restarts does
        await asyncio.sleep(2 * MINUTE)
        assert it.cached_versions() == await it.versions()


async def test_a_server_that_does_not_answer_the_question_is_a_failure_of_the_watch() -> None:
    async with watching(await server_with("a", "late", writes=50)) as (it, _):
        it.plane = await server_with("a")
        down = status_response(500, reason="InternalError", message="etcd is away")
        with it.transport.script.active(is_probe, down):
            await asyncio.sleep(2 * MINUTE)
            error = it.informer.stats().reflector.error
        assert isinstance(error, ServerError)
        assert "etcd is away" in str(error)
        await asyncio.sleep(2 * MINUTE)
        assert it.cached_versions() == await it.versions()


async def test_a_restored_server_without_objects_is_found() -> None:
    async with watching(await server_with("a", writes=50)) as (it, _):
        it.plane = await server_with()
        await asyncio.sleep(2 * MINUTE)
        assert it.names() == set()


async def test_old_lists_are_never_accepted_however_often_they_are_repeated(caplog: pytest.LogCaptureFixture) -> None:
    plane = await server_with("a")
    async with watching(plane) as (it, reads):
        await reads.take_snapshot(CONFIG_MAPS)
        await plane.good("POST", CONFIG_MAPS, config_map("b"))
        await plane.good("DELETE", f"{CONFIG_MAPS}/a")
        await asyncio.sleep(1)
        assert it.names() == {"b"}
        reads.start()
        it.transport.script.add(is_watch_of_changes, status_response(410, reason="Expired"), times=1)
        for _ in range(10):
            await asyncio.sleep(MINUTE)
            assert it.names() == {"b"}
        stats = it.informer.stats().reflector
        assert "is older than version" in str(stats.error)
        assert (stats.error_age or 0) > 5 * MINUTE, "so that readiness reports it"
        assert "server history restarted: listing again" not in caplog.messages
        reads.stop()
        await plane.good("POST", CONFIG_MAPS, config_map("c"))
        await asyncio.sleep(MINUTE)
        assert it.names() == {"b", "c"}


async def test_an_idle_kind_is_listed_once_and_costs_a_small_request_now_and_then() -> None:
    plane = await server_with("a")
    async with watching(plane) as (it, _):
        for _ in range(10):
            await asyncio.sleep(MINUTE)
            body = {"metadata": {"generateName": "other-"}}
            await plane.good("POST", "/api/v1/namespaces/default/serviceaccounts", body)
        assert len(it.requests(is_full_list)) == 1
        assert len(it.requests(is_probe)) <= 10, "at most one for each watch that ended without a bookmark"


# Rules, one by one


@dataclass
class LateServer:
    """A source that has not reached the version that is asked for; `objects` are the versions of live reads."""

    current: int = 100
    objects: dict[str, int] = field(default_factory=dict)
    probes: list[ListOptions] = field(default_factory=list)

    async def list(self, options: ListOptions) -> bytes:
        self.probes.append(options)
        if int(options.resource_version) <= self.current:
            return b"{}"
        text = f"Too large resource version: {options.resource_version}, current: {self.current}"
        raise ServerError(text, status=504, causes=(Cause("", "ResourceVersionTooLarge", ""),))

    async def watch(self, options: WatchOptions) -> Response:
        raise NotImplementedError

    async def get(self, key: Key) -> bytes:
        if key.name not in self.objects:
            raise NotFound("gone")
        return json.dumps({"metadata": {"resourceVersion": str(self.objects[key.name])}}).encode()


class KnownObjects(RecordingSink):
    """A sink at version 150 with some objects."""

    def __init__(self, **versions: int) -> None:
        super().__init__(swaps=["150"])
        self._versions = versions

    def newest(self, count: int) -> list[tuple[Key, int]]:
        return [(Key("", name), version) for name, version in self._versions.items()][:count]


async def answers(source: LateServer, **known: int) -> list[bool | str]:
    """Ask until there is an answer; return what was answered."""
    check, found = HistoryCheck(source, KnownObjects(**known)), list[bool | str]()
    check.start()
    while check.is_pending and len(found) < 10:
        try:
            found.append(await check.check())
        except ServerError:
            found.append("open")
    return found


async def test_a_server_that_has_the_version_did_not_restart() -> None:
    source = LateServer(current=150)
    assert await answers(source, a=120) == [False]
    assert source.probes[0].limit == 1


async def test_another_version_of_an_object_that_is_not_newer_proves_a_restart() -> None:
    assert await answers(LateServer(objects={"a": 90}), a=120) == ["open", True]
    assert await answers(LateServer(objects={"a": 125}), a=120) == ["open", True], "written again since"


async def test_an_object_that_a_late_server_claims_not_to_have_proves_the_opposite() -> None:
    assert await answers(LateServer(objects={"a": 120}), a=120) == ["open", False]
    assert await answers(LateServer(objects={"a": 160}), a=120) == ["open", False]


async def test_without_a_proof_four_answers_are_a_restart() -> None:
    for objects in ({}, {"a": 50}):
        assert await answers(LateServer(objects=objects), a=50) == ["open", "open", "open", True]
    assert await answers(LateServer()) == ["open", "open", "open", True]


async def test_other_errors_are_no_answer() -> None:
    class Broken(LateServer):
        async def list(self, options: ListOptions) -> bytes:
            raise ServerError("internal error", status=500)

    assert await answers(Broken(objects={"a": 90}), a=120) == ["open"] * 10
