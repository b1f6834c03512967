"""The limits of the journal, each at its exact value."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import Key
from konverge.reconcile import Journal
from konverge.reconcile.journal import JournalStats
from konverge.reconcile.journal_records import reasons_to_json, round_seconds, shorten
from konverge.triggers.reasons import EnqueueReason

WEB = Key("shop", "web")
REASON = EnqueueReason("owns Pod", "Pod", Key("shop", "a"), "7", "updated")


def entry(journal: Journal, key: Key = WEB) -> dict[str, Any]:
    return journal.why(key)[0]


def test_fifty_reads_and_fifty_writes_are_stored_and_the_others_counted() -> None:
    journal = Journal()
    run = journal.begin(WEB)
    for number in range(52):
        run.record_read("Pod", Key("shop", str(number)), "1")
    for number in range(53):
        run.record_write("apply", "Pod", Key("shop", str(number)), "1")
    run.finish()
    run.record_read("Pod", WEB)
    run.record_write("apply", "Pod", WEB)
    found = entry(journal)
    assert [one["key"] for one in found["reads"]] == [f"shop/{number}" for number in range(50)]
    assert [one["key"] for one in found["writes"]] == [f"shop/{number}" for number in range(50)]
    assert found["dropped"] == 2 + 3 + 2


@pytest.mark.parametrize(("count", "more"), [(1, 0), (10, 0), (11, 1), (15, 5)])
async def test_ten_reasons_are_stored_and_the_others_counted(count: int, more: int) -> None:
    journal = Journal()
    for number in range(count):
        journal.add_reason(WEB, EnqueueReason(str(number), "Pod", WEB, "7", "updated"), since=0.0)
    await asyncio.sleep(2)
    waiting = entry(journal)
    journal.begin(WEB)
    running = entry(journal)
    assert (waiting["result"], waiting["wait_seconds"], running["result"]) == ("waiting", 2.0, "running")
    for found in (waiting, running):
        assert [one["trigger"] for one in found["enqueued_by"]] == [str(number) for number in range(min(count, 10))]
        assert found["more_reasons"] == more


async def test_a_waiting_key_has_these_facts() -> None:
    journal = Journal()
    journal.add_reason(WEB, REASON)
    await asyncio.sleep(1.5)
    reason = {"trigger": "owns Pod", "what": "updated", "kind": "Pod", "key": "shop/a", "version": "7", "listed": False}
    assert journal.why(WEB) == [{"result": "waiting", "wait_seconds": 1.5, "enqueued_by": [reason], "more_reasons": 0}]
    assert reasons_to_json(WEB, [REASON]) == [reason]


def test_reasons_are_stored_for_ten_times_as_many_keys_as_runs() -> None:
    journal = Journal(limit_keys=2)
    keys = [Key("shop", str(number)) for number in range(21)]
    for key in keys[:20]:
        journal.add_reason(key, REASON)
    assert journal.stats() == JournalStats(keys=0, runs=0, waiting=20)
    journal.add_reason(keys[20], REASON)
    assert journal.why(keys[0]) == []
    assert journal.why(keys[1]) != []
    assert journal.stats().waiting == 20


def test_runs_and_keys_are_stored_up_to_their_limits() -> None:
    journal = Journal(limit_runs=2, limit_keys=2)
    for name in ("a", "a", "b", "a"):
        journal.begin(Key("shop", name)).finish(result=name)
    assert journal.stats() == JournalStats(keys=2, runs=3, waiting=0)
    journal.begin(Key("shop", "c")).finish()
    assert journal.why(Key("shop", "b")) == [], "the least recently reconciled key is dropped"
    assert len(journal.why(Key("shop", "a"))) == 2
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match=r"^a journal stores at least one run of one key, got \d and \d$"):
            Journal(*wrong)
    assert Journal(1, 1).stats() == JournalStats(0, 0, 0)


def test_a_journal_has_ten_runs_of_a_thousand_keys_by_default() -> None:
    journal = Journal()
    for _ in range(11):
        journal.begin(WEB).finish()
    assert len(journal.why(WEB)) == 10
    for number in range(1001):
        journal.begin(Key("shop", str(number))).finish()
    assert journal.stats().keys == 1000


@pytest.mark.parametrize(
    ("length", "stored"), [(0, ""), (500, "x" * 500), (501, "x" * 497 + "..."), (9999, "x" * 497 + "...")]
)
def test_a_text_has_at_most_five_hundred_characters(length: int, stored: str) -> None:
    assert shorten("x" * length) == stored
    journal = Journal()
    run = journal.begin(WEB, reconcile_id="7f")
    run.warning = "x" * length
    run.record_read("x" * length, "x" * length, "x" * length)
    run.record_write("x" * length, "x" * length, "x" * length, "x" * length)
    run.finish(result="x" * length)
    found = entry(journal)
    assert (found["result"], found["warning"]) == (stored, stored)
    assert found["reads"] == [{"kind": stored, "key": stored, "found": stored}]
    assert found["writes"] == [{"verb": stored, "kind": stored, "key": stored, "version": stored}]


def test_an_error_is_stored_with_its_type_and_only_the_first_end_counts() -> None:
    journal = Journal()
    run = journal.begin(WEB)
    run.finish(error=ValueError("no such size"))
    run.finish(result="done")
    found = entry(journal)
    assert (found["result"], found["error"]) == ("error", "ValueError: no such size")
    again = journal.begin(WEB)
    again.finish()
    assert (entry(journal)["result"], entry(journal)["error"]) == ("done", "")


def test_durations_are_rounded_to_microseconds() -> None:
    assert round_seconds(1.23456789) == 1.234568
    assert round_seconds(None) is None


def test_a_key_that_is_forgotten_has_neither_runs_nor_reasons() -> None:
    journal = Journal()
    journal.begin(WEB).finish()
    journal.add_reason(WEB, REASON)
    journal.forget(WEB)
    journal.forget(WEB)
    assert (journal.why(WEB), journal.list_keys()) == ([], [])
