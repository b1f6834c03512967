"""When a key is in a hot loop: reconciles are passed to the detector one by one, without a server."""

from __future__ import annotations

import asyncio
import json

import pytest

from gadgets import Gadget, World, gadget
from konverge.cache import Cache, CacheOptions
from konverge.client import WriteEvent
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Key, kind_of
from konverge.reconcile import ActiveReconcile, EnqueueEvent, Outcome, ReconcileEnd
from konverge.reconcile.changed_fields import changed_fields
from konverge.reconcile.hot_loops import HotLoopDetector
from konverge.reconcile.write_history import WriteHistory
from konverge.triggers.reasons import EnqueueReason

HOUR = 3600.0


class Detector:
    """Passes reconciles to a `HotLoopDetector`."""

    def __init__(self) -> None:
        client = World().client
        self.cache = Cache(client.collection, server=client, options=CacheOptions())
        self.counted = 0
        self.hot_loops = HotLoopDetector("gadget", self.cache)
        self._versions = iter(range(1, 10**6))

    def enqueue(self, reason: EnqueueReason, *, name: str = "lamp") -> None:
        self.hot_loops.enqueue(EnqueueEvent("gadget", Key("default", name), reason, 0.0))

    def delete(self) -> str:
        """Record a reconcile that deletes the box; return the warning of its run."""
        return self._run("lamp", [WriteEvent("delete", kind_of(ConfigMap), Key("default", "box"), b"{}")])

    def write(self, *boxes: str) -> str:
        """Record a reconcile that writes some boxes, each with a new text; return the warning of its run."""
        return self._run("lamp", [self._write(name, str(next(self._versions))) for name in boxes])

    def reconcile(self, text: str | None, *, name: str = "lamp", succeeded: bool = True, generation: int = 1) -> str:
        """Record a reconcile that writes this text, or nothing; return the warning of its run."""
        writes = [] if text is None else [self._write("box", text)]
        return self._run(name, writes, succeeded=succeeded, generation=generation)

    def _write(self, name: str, text: str) -> WriteEvent:
        metadata = {"name": name, "namespace": "default", "resourceVersion": str(next(self._versions))}
        response = json.dumps({"metadata": metadata, "data": {"text": text}}).encode()
        return WriteEvent("apply", kind_of(ConfigMap), Key("default", name), response)

    def _run(self, name: str, writes: list[WriteEvent], *, succeeded: bool = True, generation: int = 1) -> str:
        obj = gadget(name)
        obj.metadata.generation = generation
        reconcile = ActiveReconcile(controller="gadget", kind=kind_of(Gadget), key=obj.key, reconcile_id="1", obj=obj)
        self.hot_loops.begin(reconcile)
        for write in writes:
            self.hot_loops.write(reconcile, write)
        outcome = Outcome.SUCCESS if succeeded else Outcome.ERROR
        self.hot_loops.end(reconcile, ReconcileEnd(outcome, error="" if succeeded else "a mistake"))
        self.counted += bool(reconcile.warning)
        return reconcile.warning


def warnings(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage() == "hot loop detected" for record in caplog.records)


async def test_a_hot_loop_is_logged_at_growing_intervals(caplog: pytest.LogCaptureFixture) -> None:
    detector, logged = Detector(), []
    for number in range(1, 600):
        before = warnings(caplog)
        detector.reconcile(str(number))
        if warnings(caplog) > before:
            logged.append(number)
        await asyncio.sleep(300)
    assert logged == [10, 12, 16, 24, 40, 72, 136, 264, 520]
    assert detector.counted == 590


async def test_after_a_long_pause_the_log_interval_starts_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    detector = Detector()
    for _ in range(2):
        for number in range(10):
            detector.reconcile(str(number))
        detector.reconcile(None)
        await asyncio.sleep(2 * HOUR)
        detector.reconcile(None)
        assert len(detector.hot_loops) == 0
    assert warnings(caplog) == 2


async def test_restoring_the_same_content_counts_though_reconciles_between_write_nothing() -> None:
    detector = Detector()
    for _ in range(9):
        assert detector.reconcile("ours") == ""
        assert detector.reconcile(None) == ""
        await asyncio.sleep(180)
    assert "wrote ConfigMap default/box in 10 reconciles in a row" in detector.reconcile("ours")


async def test_other_content_after_a_reconcile_without_a_write_resets_the_count() -> None:
    detector = Detector()
    for number in range(30):
        assert detector.reconcile(str(number)) == ""
        assert detector.reconcile(None) == ""


async def test_restoring_content_less_than_once_an_hour_is_not_a_hot_loop() -> None:
    detector = Detector()
    for _ in range(30):
        assert detector.reconcile("ours") == ""
        detector.reconcile(None)
        await asyncio.sleep(1.5 * HOUR)


async def test_a_reconcile_that_fails_before_it_writes_does_not_reset_the_count() -> None:
    detector = Detector()
    for number in range(9):
        assert detector.reconcile(str(number)) == ""
        assert detector.reconcile(None, succeeded=False) == ""
    assert detector.reconcile("9") != ""


async def test_fields_of_an_uncached_object_are_found_in_the_responses() -> None:
    detector = Detector()
    texts = [detector.reconcile(str(number)) for number in range(12)]
    assert ".data.text keeps changing" in texts[-1]


async def test_fields_are_unknown_if_the_responses_are_the_same() -> None:
    detector = Detector()
    texts = [detector.reconcile("ours") for _ in range(12)]
    assert "another client changes it back" in texts[-1]


async def test_a_thousand_keys_are_tracked_and_old_ones_are_replaced() -> None:
    detector = Detector()
    for number in range(1200):
        detector.reconcile("a", name=f"gadget-{number}")
    assert len(detector.hot_loops) == 1000
    await asyncio.sleep(61)
    for number in range(10):
        warning = detector.reconcile(str(number), name="gadget-1100")
    assert warning != ""
    assert len(detector.hot_loops) == 1000


async def test_a_key_whose_object_is_gone_is_dropped() -> None:
    detector = Detector()
    for number in range(12):
        detector.reconcile(str(number))
    detector.hot_loops.forget(Key("default", "lamp"))
    assert len(detector.hot_loops) == 0


def after_nine(detector: Detector) -> Detector:
    for number in range(9):
        assert detector.reconcile(str(number)) == ""
    return detector


BOX, OTHER, LAMP = Key("default", "box"), Key("default", "other"), Key("default", "lamp")


@pytest.mark.parametrize(
    ("reason", "is_new_input"),
    [
        (EnqueueReason("channel", "", Key("", ""), "", "channel"), True),
        (EnqueueReason("every 60 s", "", Key("", ""), "", "timer"), False),
        (EnqueueReason("watches ConfigMap", "ConfigMap", OTHER, "7", "updated"), True),
        (EnqueueReason("watches ConfigMap", "ConfigMap", OTHER, "7", "updated", listed=True), False),
        (EnqueueReason("watches Secret", "Secret", BOX, "7", "updated"), True),
        (EnqueueReason("owns ConfigMap", "ConfigMap", BOX, "7", "updated"), False),
        (EnqueueReason("for Gadget", "Gadget", LAMP, "7", "updated"), False),
    ],
)
async def test_what_is_new_input_does_not_count(reason: EnqueueReason, is_new_input: bool) -> None:
    detector = after_nine(Detector())
    detector.enqueue(reason)
    assert (detector.reconcile("9") == "") is is_new_input
    assert detector.reconcile("10") != "", "the input was used up by one reconcile"


async def test_one_new_input_among_others_is_enough_if_it_is_one_of_the_first_ten() -> None:
    own = EnqueueReason("owns ConfigMap", "ConfigMap", BOX, "7", "updated")
    new = EnqueueReason("watches ConfigMap", "ConfigMap", OTHER, "7", "updated")
    for before, counts in ((9, False), (10, True)):
        detector = after_nine(Detector())
        for _ in range(before):
            detector.enqueue(own)
        detector.enqueue(new)
        assert (detector.reconcile("9") != "") is counts


async def test_reasons_of_ten_thousand_waiting_keys_are_stored() -> None:
    new = EnqueueReason("watches ConfigMap", "ConfigMap", OTHER, "7", "updated")
    for others, counts in ((9_999, False), (10_000, True)):
        detector = after_nine(Detector())
        detector.enqueue(new)
        for number in range(others):
            detector.enqueue(new, name=f"other-{number}")
        assert (detector.reconcile("9") != "") is counts


async def test_a_key_that_is_gone_has_no_input_left() -> None:
    detector = Detector()
    detector.enqueue(EnqueueReason("watches ConfigMap", "ConfigMap", OTHER, "7", "updated"))
    detector.hot_loops.forget(LAMP)
    for number in range(9):
        assert detector.reconcile(str(number)) == ""
    assert detector.reconcile("9") != ""


async def test_a_change_of_the_spec_starts_the_count_again() -> None:
    detector = after_nine(Detector())
    texts = [detector.reconcile(str(number), generation=2) for number in range(20)]
    assert [bool(text) for text in texts] == [False] * 10 + [True] * 10
    assert texts[10].startswith("wrote ConfigMap default/box in 10 reconciles in a row without new input: ")


async def test_an_object_that_is_deleted_in_each_reconcile_is_named() -> None:
    detector = Detector()
    texts = [detector.delete() for _ in range(10)]
    assert texts == [""] * 9 + [
        "wrote ConfigMap default/box in 10 reconciles in a row without new input: it is deleted by another client, or"
        " created again each time"
    ]


async def test_the_object_that_was_written_most_often_is_named_and_of_two_the_first() -> None:
    detector = Detector()
    detector.write("second")
    for _ in range(9):
        detector.write("first", "second")
    assert detector.write("first", "second").startswith("wrote ConfigMap default/second in 11 reconciles")
    detector = Detector()
    for _ in range(9):
        detector.write("first", "second")
    assert detector.write("first", "second").startswith("wrote ConfigMap default/first in 10 reconciles")


async def test_the_log_of_a_hot_loop_has_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    text = after_nine(Detector()).reconcile("9")
    (record,) = caplog.records
    fields = vars(record)
    assert (record.levelname, record.name) == ("WARNING", "konverge.reconcile")
    assert (fields["controller"], fields["key"]) == ("gadget", "default/lamp")
    assert (fields["object"], fields["reason"]) == ("ConfigMap default/box", text)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            set(),
            "another client changes it back (in which fields is not known, since it is not cached)",
        ),
        (
            {".a"},
            ".a keeps changing (another client sets the same field, or the desired value is not stable)",
        ),
        (
            {".e", ".d", ".c", ".b", ".a"},
            ".a, .b, .c, .d, .e keep changing (another client sets the same field, or the desired value is not stable)",
        ),
        (
            {".f", ".e", ".d", ".c", ".b", ".a", ".g"},
            ".a, .b, .c, .d, .e and 2 more keep changing (another client sets the same field, or the desired value is"
            " not stable)",
        ),
    ],
)
def test_a_history_describes_what_changes(fields: set[str], text: str) -> None:
    assert WriteHistory(0.0, fields=frozenset(fields)).describe() == text


def test_a_history_expires_more_than_an_hour_after_the_last_write_if_a_reconcile_wrote_nothing_since() -> None:
    history = WriteHistory(100.0, stable=True)
    assert not history.is_expired(100.0 + HOUR)
    assert history.is_expired(100.1 + HOUR)
    assert not WriteHistory(100.0).is_expired(100.1 + HOUR)


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": True}}, [".spec.a"]),
        ({"data": {"a.b": "1"}}, {"data": {}}, ['.data["a.b"]']),
        ({"spec": {"l": [{"i": 1}, {"i": 2}]}}, {"spec": {"l": [{"i": 1}, {"i": 3}]}}, [".spec.l[1].i"]),
        ({"spec": {"l": [1]}}, {"spec": {"l": [1, 2]}}, [".spec.l"]),
        ({"spec": {}}, {"spec": {"a": None}}, [".spec.a"]),
        ({"spec": {"a": None}}, {"spec": {}}, [".spec.a"]),
        ({"spec": {"a": {"b": 1}}}, {"spec": {"a": [1]}}, [".spec.a"]),
        ({"status": {"a": 1}}, {"status": {"a": 2}}, []),
        ({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}, {"metadata": {}}, [".metadata.labels"]),
    ],
)
def test_changed_fields_are_named_by_their_wire_paths(old: object, new: object, paths: list[str]) -> None:
    assert changed_fields(json.dumps(old).encode(), json.dumps(new).encode()) == paths
