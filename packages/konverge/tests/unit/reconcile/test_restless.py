"""When a key is taken for restless, by the clock: runs are told one by one, with no server."""

from __future__ import annotations

import asyncio
import json

import pytest

from gadgets import Gadget, World, gadget
from konverge.cache import Cache, CacheOptions
from konverge.client import Written
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Key, kind_of
from konverge.reconcile.changed_fields import changed_fields
from konverge.reconcile.hot_loops import HotLoopDetector
from konverge.reconcile.journal import Journal

HOUR = 3600.0


class Bench:
    """Tells a `HotLoopDetector` of runs."""

    def __init__(self) -> None:
        client = World().client
        self.cache = Cache(client.collection, server=client, options=CacheOptions())
        self.counted = 0
        self.restless = HotLoopDetector("gadget", told=self._count)
        self._journal = Journal()
        self._versions = iter(range(1, 10**6))

    def _count(self) -> None:
        self.counted += 1

    def run(self, text: str | None, *, name: str = "lamp", well: bool = True) -> str:
        """Let a run write this text, or nothing, and give what is remarked."""
        obj = gadget(name)
        obj.metadata.generation = 1
        run = self._journal.begin(obj.key)
        self.restless.began(obj.key, self.cache)
        if text is not None:
            metadata = {"name": "box", "namespace": "default", "resourceVersion": str(next(self._versions))}
            answer = json.dumps({"metadata": metadata, "data": {"text": text}}).encode()
            written = Written("apply", kind_of(ConfigMap), Key("default", "box"), answer)
            self.restless.wrote(written, by=obj, kind=kind_of(Gadget), cache=self.cache)
        self.restless.ended(run, well=well)
        return run.remark


def complaints(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage().startswith("Never at rest") for record in caplog.records)


async def test_complaints_come_at_growing_intervals(caplog: pytest.LogCaptureFixture) -> None:
    bench, told = Bench(), []
    for number in range(1, 600):
        before = complaints(caplog)
        bench.run(str(number))
        if complaints(caplog) > before:
            told.append(number)
        await asyncio.sleep(300)
    assert told == [10, 12, 16, 24, 40, 72, 136, 264, 520]
    assert bench.counted == 590


async def test_after_a_long_rest_a_key_is_complained_about_as_if_for_the_first_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    for _ in range(2):
        for number in range(10):
            bench.run(str(number))
        bench.run(None)
        await asyncio.sleep(2 * HOUR)
        bench.run(None)
        assert len(bench.restless) == 0
    assert complaints(caplog) == 2


async def test_putting_the_same_back_counts_though_runs_between_write_nothing() -> None:
    bench = Bench()
    for _ in range(9):
        assert bench.run("ours") == ""
        assert bench.run(None) == ""
        await asyncio.sleep(180)
    assert "wrote ConfigMap default/box in 10 runs in a row" in bench.run("ours")


async def test_something_else_after_a_rest_begins_anew() -> None:
    bench = Bench()
    for number in range(30):
        assert bench.run(str(number)) == ""
        assert bench.run(None) == ""


async def test_what_is_put_back_once_in_an_hour_is_nothing_to_speak_of() -> None:
    bench = Bench()
    for _ in range(30):
        assert bench.run("ours") == ""
        bench.run(None)
        await asyncio.sleep(1.5 * HOUR)


async def test_a_run_that_fails_before_it_writes_is_no_rest() -> None:
    bench = Bench()
    for number in range(9):
        assert bench.run(str(number)) == ""
        assert bench.run(None, well=False) == ""
    assert bench.run("9") != ""


async def test_of_what_is_not_watched_the_last_answers_tell_which_field_it_is() -> None:
    bench = Bench()
    remarks = [bench.run(str(number)) for number in range(12)]
    assert ".data.text keeps changing" in remarks[-1]


async def test_when_the_answers_are_the_same_the_fields_are_not_known() -> None:
    bench = Bench()
    remarks = [bench.run("ours") for _ in range(12)]
    assert "somebody changes it back" in remarks[-1]


async def test_a_thousand_keys_are_followed_and_old_ones_make_room() -> None:
    bench = Bench()
    for number in range(1200):
        bench.run("a", name=f"gadget-{number}")
    assert len(bench.restless) == 1000
    await asyncio.sleep(61)
    for number in range(10):
        remark = bench.run(str(number), name="gadget-1100")
    assert remark != ""
    assert len(bench.restless) == 1000


async def test_a_key_that_is_gone_is_forgotten() -> None:
    bench = Bench()
    for number in range(12):
        bench.run(str(number))
    bench.restless.forget(Key("default", "lamp"))
    assert len(bench.restless) == 0


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": True}}, [".spec.a"]),
        ({"data": {"a.b": "1"}}, {"data": {}}, ['.data["a.b"]']),
        ({"spec": {"l": [{"i": 1}, {"i": 2}]}}, {"spec": {"l": [{"i": 1}, {"i": 3}]}}, [".spec.l[1].i"]),
        ({"spec": {"l": [1]}}, {"spec": {"l": [1, 2]}}, [".spec.l"]),
        ({"status": {"a": 1}}, {"status": {"a": 2}}, []),
        ({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}, {"metadata": {}}, [".metadata.labels"]),
    ],
)
def test_fields_that_changed_are_named_by_their_wire_paths(old: object, new: object, paths: list[str]) -> None:
    assert changed_fields(json.dumps(old).encode(), json.dumps(new).encode()) == paths
