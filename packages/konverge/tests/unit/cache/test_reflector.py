"""The reflector on virtual time, with an embedded server at the other end: lists, watches, closed and idle streams."""

from __future__ import annotations

import asyncio
import itertools
import logging
from random import Random

import pytest

from konverge.cache.backoff import Stagger
from konverge.cache.options import ReflectorOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState
from konverge.client import Client, InProcessTransport
from konverge.errors import DecodeError, Forbidden, NotFound, TransportError, Unauthorized
from konverge.testing.faults import (
    Fault,
    any_request,
    connection_refused,
    connection_reset,
    forbidden,
    lists,
    status_response,
    stream_closed,
    stream_paused,
    watches,
)
from konverge.wire.list_watch import Selection
from recording_sink import RecordingSink
from reflector_harness import CONFIG_MAP, VirtualTimeServer, config_map, reflector_harness, running
from virtual_server import CONFIG_MAPS

PAGES_OF_TWO = Selection(page_size=2, streaming=False)


def now() -> float:
    return asyncio.get_running_loop().time()


async def plane_with(*names: str) -> VirtualTimeServer:
    plane = VirtualTimeServer()
    for name in names:
        await plane.good("POST", CONFIG_MAPS, config_map(name))
    return plane


# Lists


async def test_a_collection_is_listed_by_a_stream_and_then_watched() -> None:
    async with reflector_harness(plane=await plane_with("a", "b")) as it:
        await asyncio.sleep(0.1)
        assert it.sink.names() == ["a", "b"]

        await it.create("c")
        await it.change("a")
        await it.delete("b")
        await asyncio.sleep(0.1)

        await it.check()
        assert [event.type for event in it.sink.events] == ["ADDED", "ADDED", "ADDED", "MODIFIED", "DELETED"]
        assert len(it.script.log) == 1, "one request for all of it"


async def test_a_server_without_streaming_lists_gets_paged_requests_at_once_and_from_then_on() -> None:
    async with reflector_harness(
        plane=await plane_with("a", "b", "c"), selection=Selection(page_size=2), start=False
    ) as it:
        unknown = it.script.add(
            lambda request: "sendInitialEvents" in request.query,
            status_response(422, reason="Invalid", message="forbidden"),
        )
        async with running(it.reflector):
            await asyncio.sleep(2)
            assert it.sink.names() == ["a", "b", "c"]
            assert len(it.lists) == 2, "two pages"
            assert it.reflector.stats().error is None

            it.script.remove(unknown)
            it.compact()
            it.transport.reset_streams()
            await it.create("d")
            it.compact()
            await asyncio.sleep(10)

            await it.check()
            streamed = [request for request in it.watches if "sendInitialEvents" in request.query]
            assert len(streamed) == 1, "remembered"
            assert not it.reflector.stats().streaming


async def test_a_first_list_is_staged_page_by_page_and_delivered_at_once() -> None:
    async with reflector_harness(plane=await plane_with(*"abcde"), selection=PAGES_OF_TWO, start=False) as it:
        it.script.add(lists("configmaps"), Fault(delay=1.0))
        async with running(it.reflector):
            await asyncio.sleep(2.5)
            assert it.sink.names() == [], "two pages are in"
            assert len(it.sink.staged or {}) == 4
            assert it.reflector.stats().state is ReflectorState.LISTING

            await asyncio.sleep(1)
            assert it.sink.names() == ["a", "b", "c", "d", "e"]
            assert it.sink.swaps == [it.reflector.stats().resource_version]


async def test_no_page_is_repeated_when_one_fails() -> None:
    async with reflector_harness(plane=await plane_with(*"abcde"), selection=PAGES_OF_TWO, start=False) as it:
        it.script.add(lambda request: "continue" in request.query, connection_refused(), times=1)
        async with running(it.reflector):
            await asyncio.sleep(5)

        await it.check()
        assert len(it.lists) == 4
        assert len([request for request in it.lists if "continue" not in request.query]) == 1


async def test_a_page_request_times_out_after_45_seconds() -> None:
    async with reflector_harness(plane=await plane_with(*"abcde"), selection=PAGES_OF_TWO, start=False) as it:
        it.script.add(lambda request: "continue" in request.query, stream_paused(after=100), times=1)
        async with running(it.reflector):
            await asyncio.sleep(44)
            assert it.sink.names() == []
            await asyncio.sleep(4)

            await it.check()


async def test_a_page_that_always_fails_is_retried_with_backoff() -> None:
    async with reflector_harness(plane=await plane_with(*"abcde"), selection=PAGES_OF_TWO, start=False) as it:
        rule = it.script.add(lambda request: "continue" in request.query, status_response(503))
        async with running(it.reflector):
            await asyncio.sleep(300)
            times = [each.time for each in it.lists[1:]]
            assert all(other - one >= (1 if one < 60 else 4) for one, other in itertools.pairwise(times))

            it.script.remove(rule)
            await asyncio.sleep(35)
            await it.check()


async def test_an_expired_page_restarts_the_list_and_the_second_time_it_is_unpaged() -> None:
    async with reflector_harness(plane=await plane_with(*"abcde"), selection=PAGES_OF_TWO, start=False) as it:
        it.script.add(lambda request: "continue" in request.query, status_response(410, reason="Expired"))
        async with running(it.reflector):
            await asyncio.sleep(10)

            await it.check()
            assert [request.query.get("limit") for request in it.lists] == ["2", "2", "2", "2", None]


async def test_an_object_deleted_between_two_reads_of_the_first_page_is_removed() -> None:
    async with reflector_harness(plane=await plane_with(*"abc"), selection=PAGES_OF_TWO, start=False) as it:
        it.script.add(lists(), connection_reset(after=2000), times=1)
        async with running(it.reflector):
            await asyncio.sleep(0.1)
            await it.delete("a")
            await asyncio.sleep(5)

            assert it.sink.names() == ["b", "c"]


async def test_initial_events_that_do_not_end_time_out_and_the_list_is_paged() -> None:
    async with reflector_harness(plane=await plane_with("a"), start=False) as it:
        # A server that streams the existing objects but never sends the bookmark.
        without_end = Fault(rewrite=lambda chunk: chunk.replace(b"k8s.io/initial-events-end", b"k8s.io/something"))
        it.script.add(watches(), without_end, times=1)
        async with running(it.reflector):
            await asyncio.sleep(29)
            assert it.sink.names() == []
            await asyncio.sleep(2)

            assert it.sink.names() == ["a"]
            assert len(it.lists) == 1
            assert not it.reflector.stats().streaming


async def test_an_endless_stream_of_initial_events_times_out_too() -> None:
    async with reflector_harness(start=False) as it:
        without_end = Fault(rewrite=lambda chunk: chunk.replace(b"k8s.io/initial-events-end", b"k8s.io/something"))
        it.script.add(watches(), without_end, times=1)
        async with running(it.reflector):
            for number in range(20):
                await it.create(f"c{number}")
                await asyncio.sleep(20)

            await it.check()


# Closed streams


async def test_a_closed_watch_resumes_from_the_last_version_without_a_list() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        await it.create("b")
        await asyncio.sleep(0.1)
        it.transport.close_streams()
        await asyncio.sleep(0.1)

        assert len(it.watches) == 2
        assert it.watches[1].query["resourceVersion"] == it.sink.objects["default/b"]["metadata"]["resourceVersion"]
        assert it.reflector.stats().error is None


async def test_changes_while_no_watch_is_open_are_delivered_afterwards() -> None:
    async with reflector_harness(plane=await plane_with("a", "b")) as it:
        await asyncio.sleep(10)
        with it.script.active(watches(), connection_refused()):
            it.transport.reset_streams()
            await asyncio.sleep(0.1)
            await it.delete("a")
            await it.create("c")
            await asyncio.sleep(5)
            assert it.sink.names() == ["a", "b"]
        await asyncio.sleep(10)

        await it.check()
        assert it.reflector.stats().lists == 1


async def test_objects_deleted_before_a_compaction_are_reported_as_deleted() -> None:
    async with reflector_harness(plane=await plane_with("a", "b")) as it:
        await asyncio.sleep(10)
        with it.script.active(watches(), connection_refused()):
            it.transport.reset_streams()
            await asyncio.sleep(0.1)
            await it.delete("a")
            it.compact()
        await asyncio.sleep(10)

        await it.check()
        assert ("DELETED", "a") in [(event.type, event.name) for event in it.sink.events]
        assert it.reflector.stats().lists == 2
        assert it.reflector.stats().error is None


async def test_an_object_deleted_and_recreated_in_a_gap_is_another_object() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        with it.script.active(watches(), connection_refused()):
            it.transport.reset_streams()
            await asyncio.sleep(0.1)
            await it.delete("a")
            await it.create("a")
            it.compact()
        await asyncio.sleep(10)

        await it.check()
        assert [event.type for event in it.sink.events] == ["ADDED", "DELETED", "ADDED"]
        first, _, second = (event.uid for event in it.sink.events)
        assert first != second


async def test_watches_last_between_five_and_ten_minutes_and_not_all_equally_long() -> None:
    async with reflector_harness(plane=await plane_with("a"), selection=Selection(streaming=False)) as it:
        for number in range(120):
            await it.change("a", str(number))
            await asyncio.sleep(30)

        timeouts = [int(each.query["timeoutSeconds"]) for each in it.watches]
        assert 6 <= len(timeouts) <= 12
        assert all(300 <= seconds <= 600 for seconds in timeouts)
        assert len(set(timeouts)) > 3
        await it.check()


# Idle streams


async def test_an_idle_watch_is_reopened_within_45_seconds_without_a_failure() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        assert it.transport.pause_streams() == 1
        frozen_at = now()
        for name in "bcdefghijk":
            await it.create(name)
        await asyncio.sleep(36)

        assert len(it.sink.objects) == 11
        assert it.watches[-1].time - frozen_at <= 45
        assert it.reflector.stats().error is None
        assert it.reflector.stats().lists == 1


async def test_a_watch_without_a_response_fails_within_45_seconds() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        it.script.add(watches(), Fault(delay=1e6), times=1)
        it.transport.close_streams()
        await asyncio.sleep(45.5)

        assert isinstance(it.reflector.stats().error, TransportError)
        assert str(it.reflector.stats().error) == "watch ConfigMap: no response within 45 s"
        await it.create("b")
        await asyncio.sleep(5)
        await it.check()
        assert it.reflector.stats().error is None or it.reflector.stats().state is ReflectorState.WATCHING


async def test_an_idle_watch_of_a_source_that_cannot_stall_stays_open() -> None:
    plane = await plane_with("a")
    sink = RecordingSink()
    async with Client(InProcessTransport(plane.server.handle)) as client:
        reflector = Reflector(client.collection(CONFIG_MAP, namespace="default"), sink, kind="ConfigMap")
        async with running(reflector):
            await asyncio.sleep(250)
            assert sink.names() == ["a"]
            assert reflector.stats().watches == 1


async def test_watches_that_open_but_deliver_nothing_are_a_failure() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        with it.script.active(watches(), stream_paused()):
            it.transport.pause_streams()
            await asyncio.sleep(45)
            assert it.reflector.stats().error is None, "it may just be quiet"
            await asyncio.sleep(50)
            for _ in range(10):
                assert "stalled, no data and no end within 45 s" in str(it.reflector.stats().error)
                await asyncio.sleep(10)
        await asyncio.sleep(110)

        assert it.reflector.stats().error is None
        await it.create("b")
        await asyncio.sleep(1)
        await it.check()


async def test_bookmarks_keep_the_version_of_an_idle_collection_recent_and_it_is_never_relisted() -> None:
    random = Random(3)
    async with reflector_harness(plane=await plane_with("a")) as it:
        versions = []
        for number in range(120):
            await asyncio.sleep(5)
            await it.elsewhere()
            versions.append(it.plane.server.cluster.storage.revision)
            # A real server compacts after five minutes; this one does so more than twice as often.
            it.plane.server.cluster.storage.compact(versions[-25] if number >= 25 else 0)
            if random.random() < 0.1:
                it.transport.reset_streams()
        await it.create("b")
        await asyncio.sleep(5)

        await it.check()
        assert it.reflector.stats().lists == 1
        assert len(it.script.log) <= 600 / 35 + 30
        assert it.reflector.stats().bookmarks >= 8
        assert (it.reflector.stats().bookmark_age or 600) < 120


# Error responses


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (forbidden("watch configmaps"), Forbidden, "needs watch on configmaps"),
        (status_response(401, reason="Unauthorized"), Unauthorized, "does not accept the credentials"),
        (status_response(404, b"404 page not found\n"), NotFound, "is its CRD installed"),
    ],
    ids=["403", "401", "404"],
)
async def test_a_forbidden_watch_is_reported_and_retried(fault: Fault, error: type[Exception], words: str) -> None:
    async with reflector_harness(plane=await plane_with("a"), start=False) as it:
        refusal = it.script.add(any_request, fault)
        async with running(it.reflector):
            await asyncio.sleep(300)
            stats = it.reflector.stats()
            assert isinstance(stats.error, error)
            assert words in str(stats.error)
            assert stats.error_age == pytest.approx(300)
            assert not stats.synced
            assert it.rate(since=60, until=300) <= 0.25

            it.script.remove(refusal)
            await asyncio.sleep(35)
            await it.check()
            assert it.reflector.stats().error is None
            assert it.reflector.stats().synced


async def test_a_forbidden_error_is_available_in_the_stats() -> None:
    async with reflector_harness(start=False) as it:
        it.script.add(any_request, forbidden("watch configmaps"))
        async with running(it.reflector):
            await asyncio.sleep(1)
            error = it.reflector.stats().error
            assert isinstance(error, Forbidden)
            assert error.needs == "watch on configmaps"


async def test_no_change_is_lost_when_permissions_are_revoked_and_restored() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        with it.script.active(any_request, forbidden("watch configmaps")):
            it.transport.close_streams()
            await it.create("b")
            await it.delete("a")
            await asyncio.sleep(120)
            assert it.sink.names() == ["a"]
        await asyncio.sleep(35)

        await it.check()
        assert it.reflector.stats().lists == 1


# Invalid responses


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html><body>502 Bad Gateway</body></html>\n",
        b"\0\0\0\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"x","resourceVer\n',
        b"null\n",
        b'{"type":"BOOKMARK","object":{"metadata":{}}}\n',
        b"\xff\xfe\n",
    ],
)
async def test_invalid_data_in_a_stream_ends_only_that_stream(garbage: bytes) -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        it.script.add(watches(), Fault(before=garbage), times=2)
        it.transport.close_streams()
        await asyncio.sleep(0.1)
        assert isinstance(it.reflector.stats().error, DecodeError)
        await it.create("b")
        await asyncio.sleep(10)

        await it.check()
        assert it.reflector.stats().error is None
        assert it.reflector.stats().lists == 1


async def test_empty_lines_in_a_stream_are_ignored() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        it.script.add(watches(), Fault(before=b"\n\r\n  \n"), times=1)
        it.transport.close_streams()
        await asyncio.sleep(0.1)

        assert it.reflector.stats().error is None


async def test_an_invalid_list_response_is_requested_again() -> None:
    async with reflector_harness(plane=await plane_with("a"), selection=PAGES_OF_TWO, start=False) as it:
        for body in (b"<html>", b"[]", b""):
            it.script.add(lists(), status_response(200, body), times=1)
        async with running(it.reflector):
            await asyncio.sleep(0.5)
            assert str(it.reflector.error).startswith("list ConfigMap: the response is not a list: ")
            await asyncio.sleep(10)
            await it.check()


# Errors in the sink


class Flawed(RecordingSink):
    """A sink whose `put` raises for one name, a number of times."""

    flaws = 2

    def put(self, raw: bytes) -> str:
        if b'"flawed"' in raw and self.flaws:
            self.flaws -= 1
            raise RuntimeError("a bug")
        return super().put(raw)


async def test_the_reflector_continues_when_the_sink_raises(caplog: pytest.LogCaptureFixture) -> None:
    plane, sink = await plane_with("a"), Flawed()
    async with Client(InProcessTransport(plane.server.handle)) as client:
        reflector = Reflector(client.collection(CONFIG_MAP), sink, kind="ConfigMap")
        async with running(reflector):
            await asyncio.sleep(10)
            await plane.good("POST", CONFIG_MAPS, config_map("flawed"))
            await asyncio.sleep(0.1)
            assert "RuntimeError: a bug" in str(reflector.stats().error)
            await asyncio.sleep(20)

            assert sink.names() == ["a", "flawed"]
            assert reflector.stats().error is None
    assert any(record.exc_info for record in caplog.records)


async def test_a_failure_is_logged_once_and_so_is_the_recovery(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="konverge.cache")
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(10)
        with it.script.active(watches(), connection_refused()):
            it.transport.reset_streams()
            await asyncio.sleep(300)
        await asyncio.sleep(60)

    messages = [record.message for record in caplog.records if record.name == "konverge.cache"]
    assert messages == ["watch failed", "watch recovered"]
    assert caplog.records[-2].__dict__["kind"] == "ConfigMap"


# Stats


async def test_stats_report_state_counters_and_error() -> None:
    async with reflector_harness(plane=await plane_with("a"), start=False) as it:
        before = it.reflector.stats()
        assert (before.state, before.synced, before.lists, before.error) == (ReflectorState.IDLE, False, 0, None)
        async with running(it.reflector):
            await asyncio.sleep(10)
            await it.create("b")
            await asyncio.sleep(5)
            during = it.reflector.stats()
            assert (during.state, during.synced, during.lists, during.watches, during.events) == (
                ReflectorState.WATCHING,
                True,
                1,
                1,
                1,
            )
            assert during.resource_version == it.sink.objects["default/b"]["metadata"]["resourceVersion"]
            assert during.idle_time == pytest.approx(5)
            assert during.state_age == pytest.approx(15)
            with it.script.active(any_request, connection_refused()):
                it.transport.reset_streams()
                await asyncio.sleep(0.5)
                assert it.reflector.stats().state is ReflectorState.WAITING
        assert it.reflector.stats().state is ReflectorState.STOPPED


async def test_stats_report_ages_and_counters_of_failures() -> None:
    async with reflector_harness(plane=await plane_with("a", "b", "c"), selection=PAGES_OF_TWO, start=False) as it:
        assert (it.reflector.now(), it.reflector.watch_count) == (0, 0)
        assert it.reflector.stats().error_age is None
        assert it.reflector.stats().bookmark_age is None
        async with running(it.reflector):
            await asyncio.sleep(10)
            with it.script.active(any_request, connection_refused()):
                it.transport.reset_streams()
                await asyncio.sleep(20)
                failing = it.reflector.stats()
            await asyncio.sleep(30)
            healthy = it.reflector.stats()
            assert it.reflector.now() == pytest.approx(60)
    assert isinstance(failing.error, TransportError)
    assert failing.error_age == pytest.approx(20)
    assert (failing.synced, failing.lists, failing.pages, failing.streaming) == (True, 1, 2, False)
    assert 4 <= failing.failures <= 8
    assert (healthy.error, healthy.error_age) == (None, None)
    assert (healthy.lists, healthy.pages, healthy.state) == (1, 2, ReflectorState.WATCHING)
    assert it.reflector.watch_count == 2, "how often a watch was opened"
    assert healthy.watches == failing.watches + 1


async def test_stats_report_bookmarks_and_their_age() -> None:
    async with reflector_harness(plane=await plane_with("a")) as it:
        await asyncio.sleep(1)
        before = it.reflector.stats().bookmarks
        await it.elsewhere()
        await asyncio.sleep(100)
        stats = it.reflector.stats()
        assert stats.bookmarks > before
        assert stats.bookmark_age is not None
        assert 0 <= stats.bookmark_age <= 100
        assert it.sink.progressed[-1] == stats.resource_version


async def test_an_observer_of_changes_is_called_for_each_change_of_state_and_error() -> None:
    async with reflector_harness(plane=await plane_with("a"), start=False) as it:
        seen: list[tuple[ReflectorState, bool]] = []
        it.reflector.on_change = lambda: seen.append((it.reflector.state, it.reflector.error is not None))
        async with running(it.reflector):
            await asyncio.sleep(1)
            it.script.add(any_request, connection_refused(), times=1)
            it.transport.reset_streams()
            await asyncio.sleep(20)
        assert [state for state, _ in itertools.groupby(seen, key=lambda one: one[0])][-1] is ReflectorState.STOPPED
        assert [failed for failed, _ in itertools.groupby(failed for _, failed in seen)] == [False, True, False]


async def test_metadata_only_collections_are_watched_in_the_same_way() -> None:
    async with reflector_harness(plane=await plane_with("a"), metadata_only=True) as it:
        await asyncio.sleep(0.1)
        await it.create("b")
        await asyncio.sleep(0.1)

        assert it.sink.names() == ["a", "b"]
        assert all("data" not in found for found in it.sink.objects.values())


async def test_a_selector_limits_what_is_watched() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a", {"app": "web"}))
    await plane.good("POST", CONFIG_MAPS, config_map("b"))
    async with reflector_harness(plane=plane, selection=Selection(label_selector="app=web")) as it:
        await asyncio.sleep(0.1)
        assert it.sink.names() == ["a"]
        await plane.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "db"}}})
        await plane.merge(f"{CONFIG_MAPS}/b", {"metadata": {"labels": {"app": "web"}}})
        await asyncio.sleep(0.1)

        assert it.sink.names() == ["b"]


async def test_no_task_is_left_when_the_reflector_is_cancelled_at_any_moment() -> None:
    for moment in range(30):
        async with reflector_harness(plane=await plane_with("a", "b", "c"), selection=PAGES_OF_TWO) as it:
            it.script.add(any_request, Fault(delay=0.1), times=3)
            await asyncio.sleep(moment * 0.02)


async def test_reflectors_that_lose_a_server_together_reconnect_one_after_the_other() -> None:
    plane, stagger = await plane_with("a"), Stagger()
    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(_watch_for(plane, stagger, 60)) for _ in range(20)]
    times = sorted(time for task in watching for time in task.result())

    for begin in range(10, 60):
        assert len([time for time in times if begin <= time < begin + 1]) <= 5


async def _watch_for(plane: VirtualTimeServer, stagger: Stagger, seconds: float) -> list[float]:
    """Watch for a while, with a server that is down from 10 s to 20 s; return the times of the requests since."""
    async with reflector_harness(
        plane=plane, stagger=stagger, reflector_options=ReflectorOptions(idle_timeout=500)
    ) as it:
        await asyncio.sleep(10)
        with it.script.active(any_request, connection_refused()):
            it.transport.close_streams()
            await asyncio.sleep(10)
        await asyncio.sleep(seconds - 20)
        await it.check()
        return [each.time for each in it.script.requests(since=10)]


async def test_a_stream_that_is_cut_or_closed_at_once_is_a_failure() -> None:
    for fault in (connection_reset(), stream_closed()):
        async with reflector_harness(plane=await plane_with("a")) as it:
            await asyncio.sleep(10)
            with it.script.active(watches(), fault):
                it.transport.close_streams()
                await asyncio.sleep(30)
                assert isinstance(it.reflector.stats().error, TransportError)
                assert it.rate(since=10, until=40) <= 1
            await asyncio.sleep(10)
            assert it.reflector.stats().error is None
