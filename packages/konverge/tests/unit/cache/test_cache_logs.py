"""What the cache logs: each line names the kind and the object, so that a person finds them."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from cached_objects import WIDGET, widget
from konverge.cache import Cache, by_function
from konverge.cache.options import CacheOptions
from konverge.cache.store import Store
from konverge.client import Client, InProcessTransport
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Key, Kind, Unstructured
from konverge.testing.faults import Fault, any_request, connection_refused, status_response, watches
from recording_sink import RecordingSink
from reflector_harness import CONFIG_MAP, VirtualTimeServer, config_map, reflector_harness, running
from virtual_server import CONFIG_MAPS

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level(logging.DEBUG, "konverge.cache")
    return Lines(caplog)


class Lines:
    """The log lines of the cache, with their level and their fields."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def found(self) -> list[tuple[str, str, dict[str, Any]]]:
        records = [record for record in self._caplog.records if record.name == "konverge.cache"]
        self._caplog.clear()
        return [
            (one.levelname, one.getMessage(), {k: v for k, v in vars(one).items() if k not in _STANDARD})
            for one in records
        ]


async def stored(*objects: bytes, **options: Any) -> Store:
    store = Store(WIDGET, options=CacheOptions(**options))
    store.begin()
    for raw in objects:
        store.put(raw)
    await store.swap("10")
    return store


def broken(_argument: object) -> Any:
    raise KeyError("a mistake")


async def test_functions_of_the_author_that_fail(lines: Lines) -> None:
    kind = str(WIDGET)
    await stored(widget("a", 1), transform=broken)
    assert lines.found() == [("ERROR", "transform failed", {"kind": kind, "key": "shop/a"})]
    store = await stored(widget("a", 1))
    store.add_index("size", by_function(Unstructured, broken))
    assert lines.found() == [("ERROR", "index function failed", {"index": "size", "key": "shop/a"})]
    store = await stored()
    store.subscribe(broken, at_once=True)
    store.put(widget("b", 11))
    assert lines.found() == [("ERROR", "event handler failed", {"key": "shop/b", "event": "added"})]


async def test_versions_that_are_not_numbers(lines: Lines) -> None:
    store = await stored(widget("a", 1))
    for version in ("x", "y"):
        odd = json.loads(widget("a", 1))
        odd["metadata"]["resourceVersion"] = version
        store.put(json.dumps(odd).encode())
    text = "resourceVersions are not numbers: own writes are visible only after the watch"
    assert lines.found() == [("WARNING", text, {"kind": str(WIDGET)})]


async def test_kinds_that_are_not_cached_and_objects_that_do_not_decode(lines: Lines) -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))
    async with (
        Client(InProcessTransport(plane.server.handle)) as client,
        Cache(client.collection, server=client) as cache,
    ):
        for _ in range(2):
            await cache.get(ConfigMap, Key("default", "a"))
        kind = str(CONFIG_MAP)
        assert lines.found() == [("INFO", "kind is not cached: reading from the server", {"kind": kind})]
        maps = cache.declare(Kind("", "v1", "ConfigMap", "configmaps")).with_type(ConfigMap)
        await cache.wait_for_sync(5)
        informer = maps.informers[0]
        for version in (1_000, 1_000, 1_001):
            metadata = {"name": "odd", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
            informer.store.put(json.dumps({"metadata": metadata, "data": 7}).encode())
            assert [one.name for one in maps.list()] == ["a"]
        (level, text, fields), second = lines.found()
        assert (level, text, second[1]) == ("WARNING", "undecodable object omitted from lists", text)
        assert (fields["kind"], fields["key"]) == (kind, "default/odd")
        assert "data" in fields["error"]


async def test_failures_and_the_recovery_of_a_watch(lines: Lines) -> None:
    kind = {"kind": "ConfigMap"}
    async with reflector_harness(start=False) as it:
        with it.script.active(any_request, connection_refused()):
            async with running(it.reflector):
                await asyncio.sleep(3)
                (first,) = lines.found()
        assert (first[0], first[1], first[2]["kind"]) == ("WARNING", "watch failed", "ConfigMap")
        assert first[2]["error"]
        async with running(it.reflector):
            await asyncio.sleep(30)
        assert lines.found() == [("INFO", "watch recovered", kind)]


async def test_initial_events_that_do_not_end(lines: Lines) -> None:
    async with reflector_harness(start=False) as it:
        without_end = Fault(rewrite=lambda chunk: chunk.replace(b"k8s.io/initial-events-end", b"k8s.io/something"))
        it.script.add(watches(), without_end, times=1)
        async with running(it.reflector):
            await asyncio.sleep(40)
        expected = ("INFO", "initial events timed out: listing in pages", {"kind": "ConfigMap"})
        assert expected in lines.found()


async def test_an_error_of_the_code_that_a_reflector_calls(lines: Lines) -> None:
    class Broken(RecordingSink):
        def put(self, raw: bytes) -> str:
            raise KeyError("a mistake")

    async with reflector_harness(start=False) as it:
        await it.create("a")
        it.reflector._sink = Broken()
        async with running(it.reflector):
            await asyncio.sleep(1.5)
            error = it.reflector.stats().error
        assert str(error) == "watch ConfigMap: KeyError: 'a mistake'"
        assert lines.found()[0] == ("ERROR", "unexpected error in reflector", {"kind": "ConfigMap"})


async def test_an_error_of_the_server_names_verb_and_kind(lines: Lines) -> None:
    async with reflector_harness(start=False) as it:
        down = status_response(500, reason="InternalError", message="etcd is away")
        with it.script.active(any_request, down):
            async with running(it.reflector):
                await asyncio.sleep(3)
        fields = lines.found()[0][2]
        assert "etcd is away" in fields["error"]
        assert "ConfigMap" in fields["error"]
