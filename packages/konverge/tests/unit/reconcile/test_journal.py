"""The journal: what is stored, how much of it, and at what cost."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
import weakref
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from call_counts import count_calls
from konverge.objects import Key
from konverge.reconcile.journal import Journal, render

WEB = Key("shop", "web")


@dataclass(frozen=True)
class EnqueueReason:
    trigger: str = "owns Deployment"
    kind: str = "Deployment"
    key: Key = WEB
    version: str = "7"
    what: str = "updated"
    listed: bool = False


async def test_a_run_has_its_reasons_reads_writes_and_result() -> None:
    journal = Journal()
    journal.add_reason(WEB, EnqueueReason())
    await asyncio.sleep(2)
    journal.add_reason(WEB, EnqueueReason(trigger="every 60 s", kind="", key=Key("", ""), version="", what="timer"))
    await asyncio.sleep(1)
    run = journal.begin(WEB, attempt=3)
    run.record_read("WebApp", WEB, "12")
    run.record_read("ConfigMap", Key("shop", "settings"))
    run.record_write("apply", "Service", WEB, "13")
    await asyncio.sleep(0.5)
    run.finish(result="requeue after 30 s")
    (entry,) = journal.why(WEB)
    assert entry.pop("started").endswith("Z")
    assert entry == {
        "result": "requeue after 30 s",
        "error": "",
        "reconcile_id": run.reconcile_id,
        "attempt": 3,
        "wait_seconds": 3.0,
        "duration_seconds": 0.5,
        "enqueued_by": [
            {
                "trigger": "owns Deployment",
                "what": "updated",
                "kind": "Deployment",
                "key": "shop/web",
                "version": "7",
                "listed": False,
            },
            {"trigger": "every 60 s", "what": "timer", "kind": "", "key": "", "version": "", "listed": False},
        ],
        "more_reasons": 0,
        "reads": [
            {"kind": "WebApp", "key": "shop/web", "found": "12"},
            {"kind": "ConfigMap", "key": "shop/settings", "found": ""},
        ],
        "writes": [{"verb": "apply", "kind": "Service", "key": "shop/web", "version": "13"}],
        "dropped": 0,
        "warning": "",
    }


def test_runs_are_newest_first_and_the_oldest_are_dropped() -> None:
    journal = Journal(limit_runs=3)
    made = [journal.begin(WEB).reconcile_id for _ in range(5)]
    assert [run["reconcile_id"] for run in journal.why(WEB)] == made[:1:-1]


def test_the_least_recently_reconciled_keys_are_dropped_first() -> None:
    journal = Journal(limit_keys=2)
    for name in ("a", "b", "a", "c"):
        journal.begin(Key("", name))
    assert journal.why(Key("", "b")) == []
    assert len(journal.why(Key("", "a"))) == 2
    assert journal.stats().keys == 2


def test_reasons_added_during_a_run_belong_to_the_next() -> None:
    journal = Journal()
    journal.add_reason(WEB, EnqueueReason(version="1"))
    first = journal.begin(WEB)
    journal.add_reason(WEB, EnqueueReason(version="2"))
    first.finish()
    journal.begin(WEB)
    newer, older = journal.why(WEB)
    assert [reason["version"] for reason in newer["enqueued_by"]] == ["2"]
    assert [reason["version"] for reason in older["enqueued_by"]] == ["1"]


async def test_a_waiting_key_and_a_running_one_have_entries() -> None:
    journal = Journal()
    journal.begin(WEB)
    journal.add_reason(WEB, EnqueueReason())
    await asyncio.sleep(4)
    waiting, running = journal.why(WEB)
    assert (waiting["result"], waiting["wait_seconds"]) == ("waiting", 4.0)
    assert (running["result"], running["duration_seconds"]) == ("running", None)


def test_a_run_without_reasons_has_no_wait() -> None:
    journal = Journal()
    journal.begin(WEB).finish()
    (entry,) = journal.why(WEB)
    assert (entry["wait_seconds"], entry["enqueued_by"]) == (None, [])


def test_ten_thousand_keys_of_a_first_list_keep_their_reasons_until_they_run() -> None:
    journal = Journal()
    keys = [Key("shop", f"w{number}") for number in range(10_000)]
    for key in keys:
        journal.add_reason(key, EnqueueReason())
    for key in keys:
        journal.begin(key).finish()
        assert journal.why(key)[0]["enqueued_by"]
    assert journal.stats().keys == 1000


def test_a_journal_that_is_never_read_stays_small() -> None:
    journal = Journal(limit_runs=2, limit_keys=5)
    for number in range(500):
        key = Key("shop", f"w{number}")
        for _ in range(30):
            journal.add_reason(key, EnqueueReason())
        if number % 2:
            run = journal.begin(key)
            for _ in range(200):
                run.record_read("Pod", key, "1")
                run.record_write("apply", "Pod", key, "1")
            run.finish(error="x" * 100_000)
    stats = journal.stats()
    assert (stats.keys, stats.runs) == (5, 5)
    assert stats.waiting <= 50
    (entry,) = journal.why(Key("shop", "w499"))
    assert (len(entry["reads"]), len(entry["writes"]), entry["dropped"]) == (50, 50, 300)
    assert (len(entry["enqueued_by"]), entry["more_reasons"]) == (10, 20)
    assert len(entry["error"]) <= 500


def test_calls_after_finish_change_nothing() -> None:
    journal = Journal()
    run = journal.begin(WEB)
    run.finish(result="done")
    run.finish(error="late")
    run.record_read("Pod", WEB, "1")
    run.record_write("apply", "Pod", WEB, "1")
    (entry,) = journal.why(WEB)
    assert (entry["result"], entry["error"], entry["reads"], entry["writes"], entry["dropped"]) == (
        "done",
        "",
        [],
        [],
        2,
    )


def test_an_error_is_stored_as_text_and_not_kept_alive() -> None:
    class Oops(Exception):
        pass

    journal = Journal()

    def fail() -> weakref.ref[Oops]:
        error = Oops("no room")
        journal.begin(WEB).finish(error=error)
        return weakref.ref(error)

    alive = fail()
    gc.collect()
    assert alive() is None
    assert journal.why(WEB)[0]["error"] == "Oops: no room"


@pytest.mark.parametrize(
    "text",
    ["login to https://admin:hunter2@db failed", "Authorization: Bearer hunter2hunter2", "password='hunter2' is wrong"],
)
def test_secrets_in_errors_are_not_stored(text: str) -> None:
    journal = Journal()
    journal.begin(WEB).finish(error=ValueError(text))
    assert "hunter2" not in json.dumps(journal.why(WEB))


def test_finished_runs_take_few_bytes_and_few_objects() -> None:
    journal = Journal(limit_runs=10)
    keys = [Key("shop", f"w{number}") for number in range(100)]
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    for number in range(1000):
        key = keys[number % 100]
        journal.add_reason(key, EnqueueReason(key=key, version=str(number)))
        run = journal.begin(key)
        run.record_read("WebApp", key, str(number))
        run.record_write("apply", "Deployment", key, str(number))
        run.record_write("apply", "Service", key, str(number))
        run.finish(result="requeue after 30 s")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    gc.collect()
    assert journal.stats().runs == 1000
    assert held < 1000 * 500
    assert len(gc.get_objects()) - objects < 1000


def test_a_run_that_ends_after_it_was_dropped_changes_nothing() -> None:
    journal = Journal(limit_runs=1)
    first, second = journal.begin(WEB), journal.begin(WEB)
    first.finish(result="late")
    assert [run["result"] for run in journal.why(WEB)] == ["running"]
    journal.forget(WEB)
    second.finish()
    assert journal.why(WEB) == []


def test_invalid_unicode_is_replaced() -> None:
    journal = Journal()
    run = journal.begin(WEB)
    run.record_read("File", "na\udcefve", "x")
    run.finish(error="no such file: \udcff")
    (entry,) = journal.why(WEB)
    assert entry["error"] == "no such file: ?"
    assert entry["reads"] == [{"kind": "File", "key": "na?ve", "found": "x"}]


def test_a_key_can_be_dropped() -> None:
    journal = Journal()
    journal.add_reason(WEB, EnqueueReason())
    journal.begin(WEB)
    journal.add_reason(WEB, EnqueueReason())
    journal.forget(WEB)
    assert journal.why(WEB) == []
    assert journal.list_keys() == []


def test_keys_are_returned_latest_first() -> None:
    journal = Journal()
    for name in ("a", "b"):
        journal.begin(Key("", name))
    journal.add_reason(Key("", "c"), EnqueueReason())
    assert [key.name for key in journal.list_keys()] == ["c", "b", "a"]


def test_no_two_runs_have_the_same_id() -> None:
    journals = [Journal(), Journal()]
    assert len({journal.begin(WEB).reconcile_id for journal in journals for _ in range(100)}) == 200


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Journal(limit_runs=0)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("wbrwfx"), st.sampled_from("abc"), st.text(max_size=5)), max_size=40))
def test_every_history_can_be_shown_as_json_and_as_text(steps: list[tuple[str, str, str]]) -> None:
    journal = Journal(limit_runs=2, limit_keys=2)
    run = journal.begin(WEB)
    for step, name, text in steps:
        key = Key("shop", name)
        match step:
            case "w":
                journal.add_reason(key, EnqueueReason(trigger=text, version=text))
            case "b":
                run = journal.begin(key)
            case "r":
                run.record_read(text, key, text)
            case "f":
                run.finish(result=text)
            case "x":
                run.finish(error=text)
    for key in journal.list_keys():
        why = journal.why(key)
        assert len(why) <= 3
        assert json.loads(json.dumps(why)) == why
        assert render(why)


def test_the_text_for_a_terminal() -> None:
    why = [
        {"result": "waiting", "wait_seconds": 0.002, "enqueued_by": [], "more_reasons": 3},
        {
            "result": "error",
            "error": "Conflict: apply Service shop/web: another client wrote first\nread again",
            "reconcile_id": "ab-1",
            "attempt": 2,
            "started": "2026-01-01T00:00:00.000Z",
            "wait_seconds": 3.0,
            "duration_seconds": 0.0124,
            "enqueued_by": [
                {"trigger": "owns Deployment", "what": "updated", "kind": "Deployment", "key": "shop/web"}
                | {"version": "7", "listed": True},
                {"trigger": "every 60 s", "what": "timer", "kind": "", "key": "", "version": "", "listed": False},
            ],
            "reads": [
                {"kind": "Pod", "key": "shop/a", "found": ""},
                {"kind": "WebApp", "key": "shop/web", "found": "9"},
            ],
            "writes": [{"verb": "apply", "kind": "Service", "key": "shop/web", "version": "12"}],
            "dropped": 4,
        },
    ]
    assert render(why) == (
        "waiting  (waited 2.0 ms)\n"
        "  enqueued  ... and 3 more\n"
        "2026-01-01T00:00:00.000Z  error  (attempt 2, waited 3.0 s, took 12.4 ms, id ab-1)\n"
        "  error     Conflict: apply Service shop/web: another client wrote first\n"
        "            read again\n"
        "  enqueued  owns Deployment: Deployment shop/web updated, version 7 (found by a list)\n"
        "  enqueued  every 60 s\n"
        "  read      Pod shop/a: not found\n"
        "  read      WebApp shop/web: 9\n"
        "  wrote     apply Service shop/web, now version 12\n"
        "            ... and 4 more\n"
    )


def test_an_empty_history_has_a_text_too() -> None:
    assert "no entries" in render([])


async def test_a_run_costs_few_calls() -> None:
    """Of functions of Python, as every reconcile has a run."""
    journal, reason, key = Journal(), EnqueueReason(), Key("shop", "web")

    def run_once() -> None:
        journal.add_reason(key, reason)
        run = journal.begin(key)
        run.record_read("WebApp", key, "1")
        run.record_write("apply", "Service", key, "2")
        run.finish(result="done")

    run_once()
    assert count_calls(run_once) <= 40
