"""Informers: why one is not synced, what it requests, and since when it is stale."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.backoff import Stagger
from konverge.cache.changes import Changes
from konverge.cache.informers import Informer, InformerStats
from konverge.cache.options import CacheOptions, ReflectorOptions
from konverge.cache.reflector_stats import ReflectorState
from konverge.errors import Forbidden, KonvergeError, NotFound, TransportError
from konverge.objects import Kind
from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions


class Refusing:
    """A collection whose requests fail, or never return."""

    def __init__(self, error: KonvergeError | None = None) -> None:
        self._error = error
        self.asked: list[tuple[Kind, str, bool]] = []
        self.watches: list[tuple[float, WatchOptions]] = []

    def __call__(self, kind: Kind, *, namespace: str, metadata_only: bool) -> Refusing:
        self.asked.append((kind, namespace, metadata_only))
        return self

    async def list(self, options: ListOptions) -> bytes:
        raise NotImplementedError

    async def watch(self, options: WatchOptions) -> Response:
        self.watches.append((asyncio.get_running_loop().time(), options))
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@asynccontextmanager
async def failing(source: Refusing, *, namespace: str = "", **options: Any) -> AsyncIterator[Informer]:
    """Run an informer whose requests fail."""
    informer = Informer(WIDGET, namespace, CacheOptions(**options), source_factory=source)
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(0.5)
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.wait([task])


NOT_SERVED = "the server does not serve widgets.example.com (is its CRD installed, is the version right?)"


@pytest.mark.parametrize(
    ("error", "namespace", "reason"),
    [
        (Forbidden("no", verb="watch"), "", "watch is forbidden (needs list, watch on widgets.example.com)"),
        (Forbidden("no"), "shop", "list is forbidden (needs list, watch on widgets.example.com in namespace shop)"),
        (NotFound("no"), "shop", NOT_SERVED),
        (TransportError("watch Widget: refused"), "shop", "watch Widget: refused"),
        (None, "", "the first list is not complete"),
        (None, "shop", "the first list is not complete in namespace shop"),
    ],
)
async def test_an_informer_says_why_it_is_not_synced(error: KonvergeError | None, namespace: str, reason: str) -> None:
    async with failing(Refusing(error), namespace=namespace) as informer:
        assert informer.not_synced_reason() == reason
        assert not informer.is_missing
        informer.synced.set()
        assert informer.not_synced_reason() == ""


async def test_an_informer_that_never_ran_is_not_started() -> None:
    informer = Informer(WIDGET, "shop", CacheOptions(), source_factory=Refusing())
    assert informer.not_synced_reason() == "it is not started"
    assert (informer.version, informer.is_watching, informer.watch_count) == ("", False, 0)


async def test_an_optional_kind_is_missing_until_it_is_served() -> None:
    async with failing(Refusing(NotFound("no")), optional=True) as informer:
        assert (informer.is_missing, informer.not_synced_reason()) == (True, "")
        informer.synced.set()
        assert (informer.is_missing, informer.not_synced_reason()) == (False, "")
    async with failing(Refusing(Forbidden("no")), optional=True) as informer:
        assert not informer.is_missing
        assert informer.not_synced_reason() != ""
    async with failing(Refusing(NotFound("no")), optional=False) as informer:
        assert not informer.is_missing


@pytest.mark.parametrize("metadata_only", [True, False, None])
async def test_an_informer_requests_what_its_options_say(metadata_only: bool | None) -> None:
    source = Refusing()
    options = {"labels": "app=web", "fields": "metadata.name=a", "metadata_only": metadata_only}
    async with failing(source, namespace="shop", **options):
        assert source.asked == [(WIDGET, "shop", bool(metadata_only))]
        (_, watch), *_ = source.watches
        assert (watch.label_selector, watch.field_selector) == ("app=web", "metadata.name=a")
    source = Refusing()
    async with failing(source):
        (_, watch), *_ = source.watches
        assert (watch.label_selector, watch.field_selector) == ("", "")


async def test_an_informer_has_the_reflector_options_the_stagger_and_the_observers_that_it_gets() -> None:
    source, changes, seen = Refusing(TransportError("refused")), Changes(), list[float]()
    stagger = Stagger(interval=100.0, max_total=100.0)
    options = ReflectorOptions(initial_backoff=10.0, max_backoff=10.0)
    informer = Informer(
        WIDGET,
        "",
        CacheOptions(),
        source_factory=source,
        reflector_options=options,
        stagger=stagger,
        changes=changes,
    )

    async def observe() -> None:
        await changes.wait_for(lambda: "refused" in informer.not_synced_reason())
        seen.append(asyncio.get_running_loop().time())

    tasks = [asyncio.create_task(informer.run()), asyncio.create_task(observe())]
    await asyncio.sleep(250)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    first, second, third = (time for time, _ in source.watches[:3])
    assert (first, seen) == (0.0, [0.0])
    assert 10 <= second <= 12.5, "the backoff"
    assert third - second == pytest.approx(100.0), "the stagger"


async def test_the_end_of_the_first_list_is_a_change_and_syncs_the_informer() -> None:
    changes = Changes()
    informer = Informer(WIDGET, "", CacheOptions(), source_factory=Refusing(), changes=changes)
    waiting = asyncio.create_task(changes.wait_for(informer.synced.is_set))
    await asyncio.sleep(0)
    informer.begin()
    informer.put(widget("a", 5))
    await informer.swap("10")
    await asyncio.sleep(0)
    assert waiting.done()
    assert (informer.version, informer.store.version) == ("10", "10")
    assert informer.newest(1) == [(at("a"), 5)]
    informer.progress("12")
    assert informer.remove(widget("a", 13)) == "13"
    assert informer.version == "13"
    informer.restart_history()
    informer.begin()
    await informer.swap("3")
    assert informer.version == "3"


def stale_for(informer: Informer) -> float | None:
    return informer.stats().stale_for


async def synced_at(version: str, *, namespace: str = "", **options: Any) -> Informer:
    informer = Informer(WIDGET, namespace, CacheOptions(**options), source_factory=Refusing())
    informer._reflector._now = asyncio.get_running_loop().time  # as when it runs
    informer.begin()
    await informer.swap(version)
    return informer


async def test_an_informer_is_stale_since_the_first_version_that_it_does_not_have() -> None:
    informer = await synced_at("10")
    informer.record_live_version(at("a"), "10")
    assert stale_for(informer) is None
    await asyncio.sleep(1)
    informer.record_live_version(at("a"), "11")
    await asyncio.sleep(2)
    informer.record_live_version(at("b"), "13")
    informer.record_live_version(at("b"), "12")
    assert stale_for(informer) == 2.0
    informer.progress("12")
    assert stale_for(informer) == 2.0
    informer.progress("13")
    assert stale_for(informer) is None
    await asyncio.sleep(3)
    informer.record_live_version(at("b"), "14")
    assert stale_for(informer) == 0.0, "since now"


@pytest.mark.parametrize(
    ("namespace", "options", "stale"),
    [
        ("", {}, True),
        ("shop", {}, True),
        ("bank", {}, False),
        ("", {"labels": "app=web"}, False),
        ("", {"fields": "metadata.name=a"}, False),
    ],
)
async def test_only_objects_that_an_informer_must_have_make_it_stale(
    namespace: str, options: dict[str, str], stale: bool
) -> None:
    informer = await synced_at("10", namespace=namespace, **options)
    informer.record_live_version(at("a"), "x")
    assert stale_for(informer) is None
    informer.record_live_version(at("a"), "11")
    assert (stale_for(informer) is not None) is stale


async def test_an_informer_at_version_zero_is_not_stale_without_a_read() -> None:
    assert stale_for(await synced_at("0")) is None


async def test_an_informer_without_a_numbered_version_is_not_stale() -> None:
    informer = Informer(WIDGET, "", CacheOptions(), source_factory=Refusing())
    informer.record_live_version(at("a"), "11")
    assert stale_for(informer) is None


async def test_the_stats_of_an_informer_say_what_it_watches() -> None:
    informer = Informer(WIDGET, "shop", CacheOptions(labels="app=web", fields="x=y"), source_factory=Refusing())
    expected = InformerStats(
        WIDGET,
        "shop",
        "app=web",
        "x=y",
        "it is not started",
        informer._reflector.stats(),
        informer.store.stats(),
        None,
    )
    assert informer.stats() == expected
    assert expected.reflector.state is ReflectorState.IDLE
    plain = Informer(WIDGET, "", CacheOptions(), source_factory=Refusing()).stats()
    assert (plain.namespace, plain.labels, plain.fields) == ("", "", "")
