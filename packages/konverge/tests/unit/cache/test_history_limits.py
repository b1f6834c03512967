"""The check of the history at its limits: what is asked, which versions prove what, and what is unreadable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.history import HistoryCheck
from konverge.errors import Cause, Forbidden, ServerError, TransportError
from konverge.objects import Key
from konverge.wire.list_watch import Selection
from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions
from recording_sink import RecordingSink


def too_large(text: str = "Too large resource version: 150, current: 100") -> ServerError:
    causes = (Cause("", "Other", ""), Cause("", "ResourceVersionTooLarge", ""))
    return ServerError(text, status=504, causes=causes)


class Source:
    """A source that does not have the version, and live objects as JSON, or errors."""

    def __init__(self, error: ServerError | None, **objects: bytes | Exception) -> None:
        self.error = error
        self._objects = objects
        self.probes: list[ListOptions] = []
        self.reads: list[str] = []

    async def list(self, options: ListOptions) -> bytes:
        self.probes.append(options)
        if self.error is not None:
            raise self.error
        return b"{}"

    async def watch(self, options: WatchOptions) -> Response:
        raise NotImplementedError

    async def get(self, key: Key) -> bytes:
        self.reads.append(key.name)
        found = self._objects[key.name]
        if isinstance(found, Exception):
            raise found
        return found


class Known(RecordingSink):
    """A sink at a version, with some objects."""

    def __init__(self, version: str = "150", **versions: int) -> None:
        super().__init__(swaps=[version])
        self._versions = versions
        self.counts: list[int] = []

    def newest(self, count: int) -> list[tuple[Key, int]]:
        self.counts.append(count)
        return [(Key("", name), version) for name, version in self._versions.items()][:count]


def live(version: object) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": version}}).encode()


async def answer(source: Any, sink: Known, *, attempts: int = 2) -> bool | None:
    """Ask as often as given; return the last answer, None if it is open."""
    check = HistoryCheck(source, sink)
    check.start()
    for _ in range(attempts - 1):
        with pytest.raises(ServerError):
            await check.check()
        assert check.is_pending
    try:
        found = await check.check()
    except ServerError:
        return None
    assert not check.is_pending
    return found


async def test_the_server_is_asked_for_one_object_of_the_selection_at_the_delivered_version() -> None:
    source = Source(None)
    selection = Selection(label_selector="app=web", field_selector="spec.node=n")
    assert not await HistoryCheck(source, Known(), selection).check()
    assert not await HistoryCheck(source, Known()).check()
    options: dict[str, Any] = {"limit": 1, "resource_version": "150", "resource_version_match": "NotOlderThan"}
    assert source.probes == [
        ListOptions(label_selector="app=web", field_selector="spec.node=n", **options),
        ListOptions(**options),
    ]


@pytest.mark.parametrize(
    ("version", "current", "proof"),
    [
        (151, 100, False),
        (150, 100, True),
        (120, 100, False),
        (120, 119, False),
        (120, 120, None),
        (121, 100, True),
        (119, 100, True),
    ],
)
async def test_the_version_of_a_live_object_proves_a_restart_or_the_opposite(
    version: int, current: int, proof: bool | None
) -> None:
    """The object was delivered at version 120, and everything up to 150."""
    error = too_large(f"Too large resource version: 150, current: {current}")
    source = Source(error, a=live(str(version)))
    assert await answer(source, Known(a=120)) is proof


async def test_without_the_current_version_an_unchanged_object_proves_nothing() -> None:
    assert await answer(Source(too_large("Too large resource version"), a=live("120")), Known(a=120)) is None
    assert await answer(Source(too_large("Too large resource version"), a=live("121")), Known(a=120)) is True


@pytest.mark.parametrize("unreadable", [Forbidden("no"), b"", b"{}", live(7), live(""), live("x"), b'{"metadata":{}}'])
async def test_an_object_that_cannot_be_read_is_skipped(unreadable: bytes | Exception) -> None:
    source, sink = Source(too_large(), a=unreadable, b=live("110")), Known(a=120, b=120)
    assert await answer(source, sink) is True
    assert (source.reads, sink.counts) == (["a", "b"], [3])


async def test_another_error_of_a_live_read_is_that_of_the_check() -> None:
    source = Source(too_large(), a=TransportError("cut"))
    check = HistoryCheck(source, Known(a=120))
    with pytest.raises(ServerError):
        await check.check()
    with pytest.raises(TransportError):
        await check.check()


async def test_a_source_without_live_reads_proves_nothing() -> None:
    class Lists:
        list = Source.list
        error = too_large()

        def __init__(self) -> None:
            self.probes: list[ListOptions] = []

    assert await answer(Lists(), Known(a=120), attempts=3) is None
    assert await answer(Lists(), Known(a=120), attempts=4) is True


async def test_a_reset_forgets_the_answers_so_far() -> None:
    source = Source(too_large())
    check = HistoryCheck(source, Known())
    check.start()
    for _ in range(3):
        with pytest.raises(ServerError):
            await check.check()
    check.reset()
    assert not check.is_pending
    for _ in range(3):
        with pytest.raises(ServerError):
            await check.check()
    assert await check.check()


async def test_an_answer_in_between_ends_a_row() -> None:
    source = Source(too_large(), a=live("110"))
    check = HistoryCheck(source, Known(a=120))
    with pytest.raises(ServerError):
        await check.check()
    source.error = None
    assert not await check.check()
    source.error = too_large()
    with pytest.raises(ServerError):
        await check.check()
    assert source.reads == []


async def test_an_error_for_another_reason_is_no_answer() -> None:
    source = Source(ServerError("busy", status=504, causes=(Cause("", "Other", ""),)))
    check = HistoryCheck(source, Known(a=120))
    for _ in range(5):
        with pytest.raises(ServerError):
            await check.check()
    assert source.reads == []


@pytest.mark.parametrize(("version", "pending"), [("150", True), ("0", True), ("", False), ("x", False)])
def test_a_collection_without_a_numbered_version_cannot_be_checked(version: str, pending: bool) -> None:
    check = HistoryCheck(Source(None), Known(version))
    assert not check.is_pending
    check.start()
    assert check.is_pending is pending
