"""Watches: every change once and in order, from any version in the history, at any reading speed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.testing.virtual_time import run_in_virtual_time
from virtual_server import CONFIG_MAPS, Json, VirtualTimeServer, config_map


def summarize(events: Iterable[Json]) -> list[tuple[str, str, int]]:
    """Return type, name and version of each event."""
    return [
        (each["type"], each["object"]["metadata"].get("name", ""), int(each["object"]["metadata"]["resourceVersion"]))
        for each in events
    ]


async def test_a_watch_from_a_version_sends_every_change_after_it() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))
    start = plane.server.cluster.storage.revision
    await plane.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "1"}})
    await plane.good("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "elsewhere"}})

    async with plane.watch(CONFIG_MAPS, resourceVersion=start, timeoutSeconds=10) as watcher:
        await plane.good("POST", CONFIG_MAPS, config_map("b"))
        await plane.good("DELETE", f"{CONFIG_MAPS}/a")
        events = summarize(await watcher.rest())

    assert events == [("MODIFIED", "a", start + 1), ("ADDED", "b", start + 3), ("DELETED", "a", start + 4)]


async def test_a_watch_without_a_version_starts_with_the_current_objects() -> None:
    plane = VirtualTimeServer()
    for name in "ab":
        await plane.good("POST", CONFIG_MAPS, config_map(name))

    async with plane.watch(CONFIG_MAPS, timeoutSeconds=10) as watcher:
        first = [await watcher.next(), await watcher.next()]
        await plane.good("POST", CONFIG_MAPS, config_map("c"))
        later = await watcher.rest()

    assert [name for _, name, _ in summarize(first)] == ["a", "b"]
    assert [name for _, name, _ in summarize(later)] == ["c"]
    assert first[0]["object"]["kind"] == "ConfigMap"


async def test_a_streamed_list_ends_with_an_annotated_bookmark() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    async with plane.watch(CONFIG_MAPS, timeoutSeconds=1, **options) as watcher:
        events = await watcher.rest()

    revision = plane.server.cluster.storage.revision
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": str(revision), "annotations": annotations}
    assert [each["type"] for each in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"] == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


async def test_without_initial_events_a_watch_starts_at_the_current_revision() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))
    options = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}

    async with plane.watch(CONFIG_MAPS, timeoutSeconds=1, **options) as watcher:
        await plane.good("POST", CONFIG_MAPS, config_map("b"))
        events = summarize(await watcher.rest())

    assert [name for _, name, _ in events] == ["b"]


async def test_bookmarks_are_sent_every_minute_and_two_seconds_before_the_end() -> None:
    plane = VirtualTimeServer()
    loop = asyncio.get_running_loop()
    start = plane.server.cluster.storage.revision
    options = {"resourceVersion": start, "allowWatchBookmarks": "true", "timeoutSeconds": 150}
    at = []

    async with plane.watch(CONFIG_MAPS, **options) as watcher:
        await plane.good("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        began = loop.time()
        with pytest.raises(StopAsyncIteration):
            while True:
                event = await watcher.next()
                at.append((event["type"], loop.time() - began, event["object"]["metadata"]["resourceVersion"]))

    assert at == [("BOOKMARK", moment, str(start + 1)) for moment in (60, 120, 148)]
    assert loop.time() - began == 150


async def test_bookmarks_pause_while_nothing_changes_and_resume_with_the_next_change() -> None:
    plane = VirtualTimeServer()
    loop = asyncio.get_running_loop()
    start = plane.server.cluster.storage.revision
    options = {"resourceVersion": start, "allowWatchBookmarks": "true", "timeoutSeconds": 7200}
    at = []

    async def write_later() -> None:
        await asyncio.sleep(3600)
        await plane.good("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})

    began = loop.time()
    writing = asyncio.create_task(write_later())
    async with plane.watch(CONFIG_MAPS, **options) as watcher:
        with pytest.raises(StopAsyncIteration):
            while True:
                event = await watcher.next()
                at.append((loop.time() - began, event["object"]["metadata"]["resourceVersion"]))
    await writing

    assert at == [(moment, str(start + 1)) for moment in (3660, 3720, 7198)]


async def test_bookmarks_are_sent_only_on_request() -> None:
    plane = VirtualTimeServer()

    async with plane.watch(CONFIG_MAPS, timeoutSeconds=300) as watcher:
        assert await watcher.rest() == []


async def test_a_selector_turns_changes_into_additions_and_deletions() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a", {"app": "w"}, k="old"))
    start = plane.server.cluster.storage.revision

    async with plane.watch(CONFIG_MAPS, resourceVersion=start, labelSelector="app%3Dw", timeoutSeconds=1) as watcher:
        await plane.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "z"}}, "data": {"k": "hidden"}})
        await plane.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "hidden too"}})
        await plane.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "w"}}})
        await plane.good("DELETE", f"{CONFIG_MAPS}/a")
        events = await watcher.rest()

    assert summarize(events) == [("DELETED", "a", start + 1), ("ADDED", "a", start + 3), ("DELETED", "a", start + 4)]
    assert events[0]["object"]["data"] == {"k": "old"}
    assert events[0]["object"]["metadata"]["labels"] == {"app": "w"}


async def test_an_expired_version_is_an_error_event_and_ends_the_watch() -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))
    plane.server.cluster.storage.compact()

    async with plane.watch(CONFIG_MAPS, resourceVersion=1) as watcher:
        events = await watcher.rest()

    assert [(each["type"], each["object"]["code"], each["object"]["reason"]) for each in events] == [
        ("ERROR", 410, "Expired")
    ]


async def test_a_watch_from_a_future_version_sends_nothing_until_it_is_reached() -> None:
    plane = VirtualTimeServer()
    future = plane.server.cluster.storage.revision + 2

    async with plane.watch(CONFIG_MAPS, resourceVersion=future, timeoutSeconds=5) as watcher:
        for name in "abc":
            await plane.good("POST", CONFIG_MAPS, config_map(name))
        events = summarize(await watcher.rest())

    assert events == [("ADDED", "c", future + 1)]


async def test_a_watch_that_falls_too_far_behind_is_closed() -> None:
    plane = VirtualTimeServer(history=10)
    await plane.good("POST", CONFIG_MAPS, config_map("a"))

    async with plane.watch(CONFIG_MAPS, timeoutSeconds=3600) as watcher:
        await watcher.next()
        for number in range(40):
            await plane.merge(f"{CONFIG_MAPS}/a", {"data": {"k": str(number)}})
        assert await watcher.rest() == []


async def test_a_closed_watch_is_unsubscribed() -> None:
    plane = VirtualTimeServer()
    found = plane.server.cluster.storage.collection(("", "configmaps"))

    async with plane.watch(CONFIG_MAPS, timeoutSeconds=3600) as watcher:
        await plane.good("POST", CONFIG_MAPS, config_map("a"))
        await watcher.next()
        assert found.watcher_count == 1

    assert found.watcher_count == 0


async def test_watches_share_the_encoded_bytes_of_an_event() -> None:
    plane = VirtualTimeServer()
    query = f"{CONFIG_MAPS}?watch=1&resourceVersion={plane.server.cluster.storage.revision}"
    responses = [await plane.send("GET", query) for _ in range(3)]
    await plane.good("POST", CONFIG_MAPS, config_map("a"))

    chunks = [await anext(response.chunks()) for response in responses]

    assert chunks[0] is chunks[1] is chunks[2]
    for response in responses:
        await response.close()


async def test_a_watched_table_has_its_columns_in_the_first_event_only() -> None:
    plane = VirtualTimeServer()
    for name in "ab":
        await plane.good("POST", CONFIG_MAPS, config_map(name))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    response = await plane.send("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1", accept=table)
    events = [line for line in (await response.read()).splitlines() if line]

    assert [b'"columnDefinitions":null' in line for line in events] == [False, True]


ACTS = ["put", "put", "put", "delete", "elsewhere", "pause"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "elsewhere", "pause"]), st.sampled_from("abc"), st.booleans()
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 24), st.integers(0, 24), st.booleans())
def test_watch_guarantees_hold_over_any_history(
    steps: list[tuple[str, str, bool]], joins: int, breaks: int, selecting: bool
) -> None:
    """Ordered, unique, reliable, resumable, bookmarkable, filtered: replaying the events yields the current state."""
    run_in_virtual_time(_check_history(steps, joins, joins + breaks, selecting))


async def _check_history(steps: list[tuple[str, str, bool]], joins: int, breaks: int, selecting: bool) -> None:
    plane = VirtualTimeServer()
    selector = {"labelSelector": "on%3Dyes"} if selecting else {}
    start = plane.server.cluster.storage.revision
    events: list[Json] = []
    state: dict[str, Json] = {}
    for number, step in enumerate(steps):
        if number == joins:
            # Start at an old version; stop, and resume from the last event.
            events += await _drained(plane, start, selector)
        if number == breaks:
            events += await _drained(plane, _last(events, start), selector)
        await _act(plane, *step)
    events += await _drained(plane, _last(events, start), selector)

    versions = [version for _, _, version in summarize(events)]
    assert versions == sorted(versions)
    changes = [event for event in events if event["type"] != "BOOKMARK"]
    assert len({version for _, _, version in summarize(changes)}) == len(changes)
    for event in changes:
        _replay(state, event)
    listed = await plane.good("GET", f"{CONFIG_MAPS}?" + "".join(f"{k}={v}" for k, v in selector.items()))
    assert {each["metadata"]["name"]: each for each in listed["items"]} == {
        name: {key: value for key, value in each.items() if key not in ("kind", "apiVersion")}
        for name, each in state.items()
    }


def _last(events: list[Json], start: int) -> int:
    return int(events[-1]["object"]["metadata"]["resourceVersion"]) if events else start


async def _drained(plane: VirtualTimeServer, version: int, selector: dict[str, str]) -> list[Json]:
    options = {"resourceVersion": version, "timeoutSeconds": 4, "allowWatchBookmarks": "true"}
    async with plane.watch(CONFIG_MAPS, **options, **selector) as watcher:
        return await watcher.rest()


async def _act(plane: VirtualTimeServer, act: str, name: str, flag: bool) -> None:
    path = f"{CONFIG_MAPS}/{name}"
    body = config_map(name, {"on": "yes" if flag else "no"}, k=str(plane.server.cluster.storage.revision))
    if act == "put":
        code, _ = await plane.request("POST", CONFIG_MAPS, body)
        if code == 409:
            await plane.good("PUT", path, body)
    elif act == "delete":
        await plane.request("DELETE", path)
    elif act == "elsewhere":
        await plane.good("POST", "/api/v1/namespaces", {"metadata": {"generateName": "x-"}})
    else:
        await asyncio.sleep(1)


def _replay(state: dict[str, Json], event: Json) -> None:
    name = event["object"]["metadata"]["name"]
    if event["type"] == "ADDED":
        assert name not in state
    else:
        assert name in state
    if event["type"] == "DELETED":
        del state[name]
    else:
        state[name] = event["object"]
