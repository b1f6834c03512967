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
from konverge.reconcile import ActiveReconcile, Outcome, ReconcileEnd
from konverge.reconcile.changed_fields import changed_fields
from konverge.reconcile.hot_loops import HotLoopDetector

HOUR = 3600.0


class Detector:
    """Passes reconciles to a `HotLoopDetector`."""

    def __init__(self) -> None:
        client = World().client
        self.cache = Cache(client.collection, server=client, options=CacheOptions())
        self.counted = 0
        self.hot_loops = HotLoopDetector("gadget", self.cache)
        self._versions = iter(range(1, 10**6))

    def reconcile(self, text: str | None, *, name: str = "lamp", succeeded: bool = True) -> str:
        """Record a reconcile that writes this text, or nothing; return the warning of its run."""
        obj = gadget(name)
        obj.metadata.generation = 1
        reconcile = ActiveReconcile(controller="gadget", kind=kind_of(Gadget), key=obj.key, reconcile_id="1", obj=obj)
        self.hot_loops.begin(reconcile)
        if text is not None:
            metadata = {"name": "box", "namespace": "default", "resourceVersion": str(next(self._versions))}
            response = json.dumps({"metadata": metadata, "data": {"text": text}}).encode()
            self.hot_loops.write(reconcile, WriteEvent("apply", kind_of(ConfigMap), Key("default", "box"), response))
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
