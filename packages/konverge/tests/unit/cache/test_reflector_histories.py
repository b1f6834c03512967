"""Random histories with faults: the store ends equal to the server, and so do the replayed events."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache.reflector import Reflector
from konverge.cache.store import Store
from konverge.client import Client, InProcessTransport
from konverge.objects import Kind
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import (
    Fault,
    any_request,
    connection_refused,
    connection_reset,
    extra_data,
    status_response,
    stream_closed,
    stream_paused,
)
from konverge.testing.virtual_time import run_in_virtual_time
from konverge.wire.list_watch import Selection
from live_collection import LiveCollection
from model_collection import status_frame
from rigs import EventRecorder, running

WIDGET = Kind("", "v1", "Widget", "widgets")

NAMES = st.sampled_from("abcde")
PLACES = st.integers(0, 1500)
FAULTS = st.one_of(
    st.sampled_from([connection_refused(), Fault(delay=20.0), Fault(delay=70.0)]),
    st.sampled_from([status_response(code) for code in (400, 401, 403, 404, 410, 422, 429, 500, 503)]),
    st.sampled_from(
        [status_response(200, body) for body in (b"", b"<html>", b"{}", b'{"metadata":{"resourceVersion":"0"}}')]
    ),
    st.builds(lambda place: connection_reset(after=place), PLACES),
    st.builds(lambda place: stream_closed(after=place), PLACES),
    st.builds(lambda place: stream_paused(after=place), PLACES),
    st.builds(
        lambda data, place: extra_data(data, after=place),
        st.sampled_from([b"\0", b"\n", b"<html>\n", *(status_frame(code) for code in (410, 429, 500, 504))]),
        PLACES,
    ),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.sampled_from(["elsewhere", "compact", "cut", "freeze", "end"])),
        st.tuples(st.just("fault"), FAULTS),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.5, 3.0, 50.0])),
    ),
    max_size=40,
)


@given(STEPS, st.booleans(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_the_store_converges_to_the_server_after_any_history(steps: list[Any], streaming: bool, page_size: int) -> None:
    run_in_virtual_time(_live_through(steps, streaming, page_size))


async def _live_through(steps: list[Any], streaming: bool, page_size: int) -> None:
    server = LiveCollection(offers_streaming=streaming)
    transport = FaultTransport(InProcessTransport(server.handle))
    store, recorder = Store(WIDGET), EventRecorder()
    store.subscribe(recorder)
    async with Client(transport) as client:
        selection = Selection(page_size=page_size)
        reflector = Reflector(client.collection(WIDGET), store, kind="Widget", selection=selection, random=Random(1))
        async with running(reflector):
            for what, *details in steps:
                await _do(server, transport, what, *details)
            transport.script.clear()
            # The worst case: a stalled list, the timeout of its page, and the longest backoff.
            await asyncio.sleep(300)

            delivered = {f"/{entry.key.name}": str(entry.version) for entry in store.list()}
            assert delivered == server.versions(), reflector.stats()
            assert {f"/{key.name}": version for key, version in recorder.objects.items()} == delivered
            assert reflector.stats().error is None
            _check_order(recorder, server)


async def _do(server: LiveCollection, transport: FaultTransport, what: str, *details: Any) -> None:
    match what:
        case "wait":
            await asyncio.sleep(*details)
        case "fault":
            transport.script.add(any_request, *details, times=1)
        case "cut":
            transport.reset_streams()
        case "freeze":
            transport.pause_streams()
        case "end":
            transport.close_streams()
        case _:
            getattr(server, what)(*details)


def _check_order(recorder: EventRecorder, server: LiveCollection) -> None:
    """The states seen of an object are a subsequence, in order, of its real states."""
    for name in {event.key.name for event in recorder.events}:
        seen = [str(event.new.version) for event in recorder.events if event.key.name == name and event.new is not None]
        real = iter(server.states(name))
        assert all(version in real for version in seen), f"{seen} is no subsequence of {server.states(name)}"
