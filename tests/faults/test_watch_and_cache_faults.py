"""Scenarios T01 to T13 of the reliability plan: they check the store and the events of its subscribers."""

from __future__ import annotations

import asyncio
import time
from random import Random

import pytest

from konverge.cache.events import EventType
from konverge.cache.options import CacheOptions
from konverge.cache.reflector_stats import ReflectorState
from konverge.client import Client, InProcessTransport, load_config
from konverge.errors import ApiError, Expired, ServerError, TooManyRequests
from konverge.objects import Unstructured
from konverge.testing import ControlPlane
from konverge.testing.faults import (
    End,
    Fault,
    connection_refused,
    connection_reset,
    extra_data,
    status_response,
    stream_closed,
    watches,
)
from konverge.testing.raw_proxy import RawProxy
from konverge.wire.list_watch import Selection
from konverge_cluster.embedded_server import EmbeddedServer
from rigs import OpenRig, Rig, embedded_config, running

MINUTE = 60.0


def names(count: int, letter: str = "c") -> list[str]:
    return [f"{letter}{number:04}" for number in range(count)]


def share(rig: Rig, count: int) -> int:
    """Return the number of the scenario's objects on this rig."""
    return count if rig.namespace != "default" else count // 5


# T01


async def test_t01_a_half_open_stream_is_replaced_and_nothing_is_lost(open_rig: OpenRig) -> None:
    async with open_rig() as rig, rig.watching() as it:
        await rig.create("before")
        await rig.becomes_equal(it, within=5)
        assert rig.traffic.pause_streams() == 1

        await rig.create(*names(10))

        await rig.becomes_equal(it, within=50)
        assert len(rig.lists()) == 1
        assert rig.traffic.streams == 1, "the stalled stream was closed"


@pytest.mark.real_time
async def test_t01_a_connection_that_drops_all_data_is_detected_while_new_connections_work() -> None:
    async with (
        EmbeddedServer() as plane,
        RawProxy(embedded_config(plane)) as proxy,
        Client(InProcessTransport(plane.handle)) as server,
        Client.connect(proxy.config) as through,
    ):
        await _drop_all_data(Rig(server, through, None, "default", 0.05), proxy)


@pytest.mark.faults
async def test_t01_a_connection_that_drops_all_data_before_a_real_server(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        RawProxy(control_plane) as proxy,
        Client.connect(proxy.config) as through,
        Client.connect(load_config(kubeconfig=control_plane.kubeconfig)) as server,
    ):
        await _drop_all_data(Rig(server, through, None, namespace, 1.0), proxy)


async def _drop_all_data(rig: Rig, proxy: RawProxy) -> None:
    async with rig.watching() as it:
        await rig.pass_time(10)
        connections = len(proxy.connections)
        assert proxy.pause() >= 1

        await rig.create(*names(10))

        await rig.becomes_equal(it, within=50)
        assert len(proxy.connections) == connections + 1
        assert it.stats.lists == 1


# T02, T03


async def test_t02_a_version_that_expired_while_no_watch_was_open_costs_one_list(open_rig: OpenRig) -> None:
    async with open_rig() as rig:
        present, come, changed = names(share(rig, 500), "a"), names(share(rig, 500), "b"), share(rig, 300)
        gone = present[: share(rig, 200)]
        await rig.create(*present)
        async with rig.watching() as it:
            resume = await rig.pause()
            await rig.create(*come)
            await rig.change(*present[-changed:])
            await rig.delete(*gone)
            rig.compact()
            begin = rig.now()
            resume()

            await rig.becomes_equal(it, within=35)
            assert len(rig.lists(since=begin)) == 1
            assert all(it.recorder.types(name)[-1] is EventType.DELETED for name in gone)
            assert all(event.old is not None for event in it.recorder.events if event.type is EventType.DELETED)


async def test_t03_a_version_that_expired_as_a_status_costs_one_list(open_rig: OpenRig) -> None:
    async with open_rig() as rig:
        await rig.create("a", "b")
        async with rig.watching() as it:
            await rig.pass_time(10)
            rig.script.add(watches(), status_response(410, reason="Expired", message="too old"), times=1)
            begin = rig.now()
            rig.traffic.close_streams()
            await rig.delete("a")

            await rig.becomes_equal(it, within=10)
            assert len(rig.lists(since=begin)) == 1
            assert it.recorder.types("a") == [EventType.ADDED, EventType.DELETED]


# T04


@pytest.mark.parametrize(("code", "error"), [(500, ServerError), (504, ServerError), (429, TooManyRequests)])
async def test_t04_an_error_in_the_stream_is_retried_without_a_list(
    open_rig: OpenRig, code: int, error: type[ApiError]
) -> None:
    async with open_rig() as rig:
        await rig.create("a")
        async with rig.watching() as it:
            await rig.pass_time(10)
            retry_after = 2 if code == 429 else 0
            status = status_response(code, details={"retryAfterSeconds": retry_after}).body
            broken = Fault(before=b'{"type":"ERROR","object":' + status + b"}\n", keep=0, end=End.CLEAN)
            rig.script.add(watches(), broken, times=1)
            begin = rig.now()
            rig.traffic.close_streams()
            await rig.until(lambda: it.stats.error is not None, within=1)
            assert isinstance(it.stats.error, error)
            await rig.create("b")

            await rig.becomes_equal(it, within=60)
            assert rig.lists(since=begin) == []
            failed, retried = rig.script.requests(watches(), since=begin)[:2]
            # Retry-After is in real seconds, however fast the scenario runs.
            assert retried.time - failed.time >= retry_after
            assert (retried.time - failed.time) / rig.scale >= 1


# T05


async def test_t05_cut_frames_and_invalid_data_lose_nothing(open_rig: OpenRig) -> None:
    random = Random(5)
    garbage = [b"\0\0\0\0\n", b"<html>bad gateway</html>\n", b"\n\n\r\n", b"\xff\xfe", b'{"type":"ADDED"}\n', b"{}\n"]
    async with open_rig(scale=0.05) as rig:
        await rig.create("a", "b")
        async with rig.watching() as it:
            for number in range(50 if rig.scale == 1 or rig.namespace != "default" else 10):
                fault = random.choice([connection_reset, stream_closed])(after=random.randrange(1, 900))
                if number % 5 == 0:
                    fault = extra_data(random.choice(garbage), after=random.randrange(0, 900))
                rule = rig.script.add(watches(), fault, times=1)
                rig.traffic.close_streams()
                await rig.change("a", "b", value=str(number))
                await rig.create(f"c{number}")
                await rig.until(lambda rule=rule: rule.times == 0, within=60)  # type: ignore[misc]
                await rig.until(lambda: it.stats.state is ReflectorState.WATCHING and it.stats.error is None, within=60)
                if number % 3 == 0:
                    await rig.delete(f"c{number}")
            await rig.becomes_equal(it, within=60)

        events = [(event.key, event.entry.uid, event.entry.version, event.type) for event in it.recorder.events]
        assert len(events) == len(set(events)), "no event is reported twice"


# T06, T07


@pytest.mark.parametrize(
    "fault", [stream_closed(), connection_reset(), connection_refused()], ids=["ended", "cut", "refused"]
)
async def test_t06_watches_that_end_at_once_for_five_minutes_are_retried_with_backoff(
    open_long_rig: OpenRig, fault: Fault
) -> None:
    await _check_backoff(open_long_rig, fault)


@pytest.mark.parametrize("as_status", [False, True], ids=["frame", "status"])
async def test_t07_an_expired_version_for_five_minutes_is_retried_with_backoff(
    open_long_rig: OpenRig, as_status: bool
) -> None:
    status = status_response(410, reason="Expired", message="too old")
    frame = Fault(before=b'{"type":"ERROR","object":' + status.body + b"}\n", keep=0, end=End.CLEAN)
    await _check_backoff(open_long_rig, status if as_status else frame, expired=True)


async def _check_backoff(open_long_rig: OpenRig, fault: Fault, *, expired: bool = False) -> None:
    async with open_long_rig() as rig:
        await rig.create("a")
        # A streaming list continues as a watch, which would end the failure.
        async with rig.watching(Selection(streaming=not expired)) as it:
            await rig.pass_time(10)
            begin, cpu = rig.now(), time.process_time()
            with rig.script.active(lambda request: request.watches and "sendInitialEvents" not in request.query, fault):
                rig.traffic.close_streams()
                await rig.create("b")
                await rig.pass_time(5 * MINUTE)
                assert it.stats.error is not None
                assert isinstance(it.stats.error, Expired) == expired
            used = time.process_time() - cpu
            assert used < 0.05 * 5 * MINUTE
            # The first request replaces the closed stream, as soon as the machine can; those after it are retries.
            first = rig.script.requests(since=begin)[0]
            rig.check_request_rate(first.time + 0.001)

            await rig.create("c")
            await rig.becomes_equal(it, within=35)
            await rig.until(lambda: it.stats.error is None, within=35)


# T08


async def test_t08_deletes_in_a_gap_leave_no_stale_key_in_an_index(open_rig: OpenRig) -> None:
    async with open_rig() as rig:
        indexed = CacheOptions(indexes=(("app", lambda entry: (entry.label_map().get("app", ""),)),))
        it = rig.watched_collection(options=indexed)
        for number, name in enumerate(names(20)):
            await rig.create(name, labels={"app": f"app-{number % 4}"})
        async with running(it.reflector):
            await rig.becomes_equal(it, within=10)
            resume = await rig.pause()
            await rig.delete(*names(20)[::2])
            rig.compact()
            resume()
            await rig.becomes_equal(it, within=35)

        remaining = set(names(20)[1::2])
        found = {entry.key.name for number in range(4) for entry in it.store.find("app", f"app-{number}")}
        assert found == remaining == it.names()
        for name in names(20)[::2]:
            assert it.recorder.types(name) == [EventType.ADDED, EventType.DELETED]


# T09


async def test_t09_bookmarks_keep_an_idle_kind_current_through_cuts_and_compactions(
    open_compacting_rig: OpenRig,
) -> None:
    random = Random(9)
    async with open_compacting_rig() as rig:
        await rig.create("a")
        async with rig.watching() as it:
            begin = rig.now()
            for _ in range(10):
                await rig.pass_time(MINUTE)
                await rig.server.create(_elsewhere(rig))
                if random.random() < 0.5:
                    rig.traffic.reset_streams()
                rig.compact_old()
            await rig.create("b")

            await rig.becomes_equal(it, within=35)
            assert rig.lists(since=begin) == []
            assert it.stats.bookmarks >= 5


def _elsewhere(rig: Rig) -> Unstructured:
    metadata = {"name": f"other-{rig.now()}", "namespace": rig.namespace}
    return Unstructured(apiVersion="v1", kind="ServiceAccount", metadata=metadata)


# T11


async def test_t11_a_list_is_streamed_if_the_server_supports_it(open_rig: OpenRig) -> None:
    async with open_rig() as rig:
        await rig.create(*names(30))
        async with rig.watching() as it:
            await rig.becomes_equal(it, within=10)
            assert [request.watches for request in rig.lists()] == [True]
            assert it.stats.streaming


@pytest.mark.parametrize("code", [400, 422])
async def test_t11_if_a_streaming_list_is_rejected_a_paged_list_is_sent_within_two_seconds(
    open_rig: OpenRig, code: int
) -> None:
    async with open_rig() as rig:
        await rig.create(*names(30))
        rig.script.add(lambda request: "sendInitialEvents" in request.query, status_response(code, reason="Invalid"))
        begin = rig.now()
        async with rig.watching(Selection(page_size=7)) as it:
            assert rig.now() - begin < 2 + rig.slack
            await rig.becomes_equal(it, within=10)
            rig.script.add(watches(), status_response(410, reason="Expired"), times=1)
            rig.traffic.reset_streams()
            await rig.create("more")
            await rig.becomes_equal(it, within=10)

            assert len([request for request in rig.lists() if request.watches]) == 1, "remembered"
            assert len(rig.lists()) == 3


# T12


async def test_t12_five_restarts_under_writes_lose_nothing_and_stay_within_the_request_rate(
    open_long_rig: OpenRig,
) -> None:
    async with open_long_rig() as rig:
        collections = [
            rig.watched_collection(selection=Selection(label_selector=f"n={number}")) for number in range(20)
        ]
        async with running(*(it.reflector for it in collections)), asyncio.TaskGroup() as tasks:
            await rig.until(lambda: all(it.stats.synced for it in collections), within=30)
            begin = rig.now()
            writing = tasks.create_task(_write(rig, seconds=75))
            for _ in range(5):
                await rig.pass_time(10)
                resume = await rig.pause()
                await rig.pass_time(5)
                resume()
            await writing
            for number, it in enumerate(collections):
                await rig.becomes_equal(it, within=35, labels=f"n={number}")
            _check_attempts(rig, [request.time for request in rig.script.requests(since=begin)])


async def _write(rig: Rig, *, seconds: float) -> None:
    random = Random(12)
    present: list[str] = []
    for number in range(int(seconds * 4)):
        if present and random.random() < 0.3:
            await rig.delete(present.pop(random.randrange(len(present))))
        elif present and random.random() < 0.5:
            await rig.change(random.choice(present), value=str(number))
        else:
            present.append(f"w{number}")
            await rig.create(present[-1], labels={"n": str(number % 20)})
        await rig.pass_time(0.25)


def _check_attempts(rig: Rig, times: list[float]) -> None:
    """Check that present are at most five requests in any second, and on average in any ten."""
    # The recorded time is that of arrival: on a loaded machine a request may be late, and the next seem early.
    late = 0.5 if rig.slack else 0.01
    for seconds in (1, 10):
        for one, other in zip(times, times[5 * seconds :], strict=False):
            apart = (other - one) / rig.scale
            assert apart >= seconds - late, f"{5 * seconds + 1} attempts in {apart} s"


# T13


async def test_t13_an_object_deleted_and_recreated_in_a_gap_is_two_objects(open_rig: OpenRig) -> None:
    async with open_rig() as rig:
        await rig.create("a", "b")
        async with rig.watching() as it:
            await rig.becomes_equal(it, within=10)
            resume = await rig.pause()
            await rig.delete("a", "b")
            await rig.create("a")
            rig.compact()
            resume()
            await rig.becomes_equal(it, within=35)

            assert it.recorder.types("a") == [EventType.ADDED, EventType.DELETED, EventType.ADDED]
            first, last, second = (event.entry.uid for event in it.recorder.events if event.key.name == "a")
            assert first == last != second
            assert it.recorder.types("b") == [EventType.ADDED, EventType.DELETED]
