"""What a worker does with each error and each result: log lines, outcomes, delays, and the arguments of observers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, Key, Reconciler, Result, TerminalError, controller_for
from konverge.cache import Cache, Event, EventType
from konverge.controller.decode_failures import report_decode_failure
from konverge.controller.worker import _checked
from konverge.errors import (
    ApiError,
    Conflict,
    DecodeError,
    Forbidden,
    KonvergeError,
    NotFound,
    Retry,
    ServerError,
    WriteRefused,
)
from konverge.objects import Kind, encode, kind_of
from konverge.queue import Backoff
from konverge.reconcile import ActiveReconcile, ReconcileDependencies, ReconcileEnd, ReconcileObserver, Reference
from konverge.reconcile.last_applied import LastApplied
from konverge.triggers import Predicate

STEADY = Backoff(jitter=0.0)
A = Key("default", "a")


def now() -> float:
    return asyncio.get_running_loop().time()


class Reconciles(ReconcileObserver):
    """Records what happens to each reconcile."""

    def __init__(self) -> None:
        self.begun: list[ActiveReconcile] = []
        self.times: list[float] = []
        self.reads: list[tuple[str, Key, str]] = []
        self.ends: list[ReconcileEnd] = []

    def begin(self, reconcile: ActiveReconcile) -> None:
        assert reconcile.obj is None
        self.begun.append(reconcile)
        self.times.append(now())

    def read(self, reconcile: ActiveReconcile, kind: str, key: Key, found: str) -> None:
        assert reconcile.obj is not None
        self.reads.append((kind, key, found))

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        assert self.begun[-1] is reconcile
        self.ends.append(end)

    @property
    def outcomes(self) -> list[str]:
        return [str(one.outcome) for one in self.ends]

    @property
    def delays(self) -> list[float]:
        return [round(time - self.times[0], 3) for time in self.times]


Reconcile = Callable[[Gadget, Context], Awaitable[Any]]


async def reconciles_of(
    reconcile: Reconcile | Reconciler[Gadget], *, seconds: float = 5.0, backoff: Backoff = STEADY
) -> Reconciles:
    """Run a controller on one gadget for some time."""
    world, seen = await world_with_gadgets(), Reconciles()
    await world.client.create(gadget("a"))
    controller = controller_for(Gadget).backoff(backoff).build(reconcile)
    async with operating(world, controller, observers=(seen,)):
        await asyncio.sleep(seconds)
    return seen


def raising(*errors: BaseException) -> Reconcile:
    """Return a reconciler that raises each error once, and then succeeds."""
    left = list(errors)

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if left:
            raise left.pop(0)

    return reconcile


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "konverge.controller"]


def fields(record: logging.LogRecord) -> dict[str, Any]:
    standard = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
    return {name: value for name, value in vars(record).items() if name not in standard}


# Logs


@pytest.mark.parametrize(
    ("error", "level", "message", "traceback", "more"),
    [
        (RuntimeError("bad"), "ERROR", "reconcile failed: bad", True, {}),
        (TerminalError("bad"), "ERROR", "reconcile failed, not retried: bad", False, {}),
        (Retry("bad", after=2.5), "WARNING", "reconcile is retried: bad", False, {"after": "2.5 s"}),
        (Retry("bad"), "WARNING", "reconcile is retried: bad", False, {"after": "1 s"}),
    ],
)
async def test_an_error_is_logged_with_its_text_and_its_reconcile(
    error: Exception, level: str, message: str, traceback: bool, more: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    seen = await reconciles_of(raising(error))
    (record,) = lines(caplog)
    assert (record.levelname, record.getMessage(), bool(record.exc_info)) == (level, message, traceback)
    facts = {"controller": "gadget", "kind": "Gadget", "key": "default/a", "attempt": "1"}
    assert fields(record) == facts | {"reconcile_id": seen.begun[0].reconcile_id} | more


@pytest.mark.parametrize(
    "error",
    [
        Conflict("changed"),
        WriteRefused("stopping"),
        NotFound("gone", kind="Gadget", key="default/a"),
        NotFound("no namespace", verb="create", kind="ConfigMap", key="default/b"),
    ],
)
async def test_conflicts_refusals_and_deletions_are_not_logged(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    await reconciles_of(raising(error))
    assert lines(caplog) == []


# Outcomes and delays


@pytest.mark.parametrize(
    ("errors", "outcomes", "delays"),
    [
        ([RuntimeError("x")] * 2, ["error", "error", "success"], [0, 1, 3]),
        ([TerminalError("x")], ["terminal"], [0]),
        ([WriteRefused("x")], ["refused"], [0]),
        ([Retry("x", after=2)], ["retry", "success"], [0, 2]),
        ([Conflict("x")] * 3, ["conflict"] * 3 + ["success"], [0, 0, 0.1, 0.6]),
        ([Conflict("x")] * 4, ["conflict"] * 3 + ["error", "success"], [0, 0, 0.1, 0.6, 1.6]),
        ([Conflict("x")] * 5, ["conflict"] * 3 + ["error", "conflict", "success"], [0, 0, 0.1, 0.6, 1.6, 1.6]),
        (
            [Conflict("x"), RuntimeError("x"), Conflict("x"), Conflict("x")],
            ["conflict", "error", "conflict", "conflict", "success"],
            [0, 0, 1, 1, 1.1],
        ),
        ([NotFound("x", kind="Gadget", key="default/a")] * 2, ["requeue", "requeue", "success"], [0, 1, 3]),
        ([NotFound("x", kind="Lamp", key="default/a")], ["error", "success"], [0, 1]),
        ([Forbidden("x")], ["error", "success"], [0, 1]),
    ],
)
async def test_each_error_has_an_outcome_and_a_delay(
    errors: list[Exception], outcomes: list[str], delays: list[float]
) -> None:
    seen = await reconciles_of(raising(*errors))
    assert (seen.outcomes, seen.delays) == (outcomes, delays)


async def test_the_backoff_may_be_shorter_than_a_second() -> None:
    """Without a Retry-After of the server nothing else delays a key."""
    seen = await reconciles_of(
        raising(ServerError("x"), RuntimeError("x")), backoff=Backoff(base_delay=0.1, jitter=0.0)
    )
    assert seen.delays == [0, 0.1, 0.3]


async def test_an_attempt_counts_the_failures_in_a_row() -> None:
    errors = [RuntimeError("x"), RuntimeError("x"), TerminalError("x")]
    seen = await reconciles_of(raising(*errors), seconds=10)
    assert [one.attempt for one in seen.begun] == [1, 2, 3]


async def test_the_attempts_start_again_after_a_terminal_error() -> None:
    world, seen = await world_with_gadgets(), Reconciles()
    await world.client.create(gadget("a"))
    controller = controller_for(Gadget).backoff(STEADY).build(raising(RuntimeError("x"), TerminalError("x")))
    async with operating(world, controller, observers=(seen,)):
        await asyncio.sleep(5)
        await world.client.patch(Gadget, "a", {"metadata": {"labels": {"by": "hand"}}})
        await asyncio.sleep(5)
    assert [one.attempt for one in seen.begun] == [1, 2, 1]


async def test_a_key_with_a_conflict_goes_before_the_others() -> None:
    world, order = await world_with_gadgets(), list[str]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        order.append(obj.name)
        await asyncio.sleep(1)
        if order == ["a"]:
            raise Conflict("changed")

    async with operating(world, controller_for(Gadget).max_concurrent_reconciles(1).build(reconcile)):
        await asyncio.sleep(1)
        for name in ("a", "b", "c"):
            await world.client.create(gadget(name))
        await asyncio.sleep(10)
    assert order == ["a", "a", "b", "c"]


def is_no_deletion(event: Event) -> bool:
    return event.type is not EventType.DELETED


async def test_the_first_requeue_of_the_next_object_of_a_name_is_immediate() -> None:
    world, times = await world_with_gadgets(), list[float]()

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        times.append(round(now(), 3))
        return Result.requeue()

    controller = controller_for(Gadget).backoff(STEADY).predicate(Predicate(is_no_deletion)).build(reconcile)
    async with operating(world, controller):
        await asyncio.sleep(10)
        made = await world.client.create(gadget("a"))
        await asyncio.sleep(0.5)
        await world.client.delete(made)
        await world.client.create(gadget("a"))
        await asyncio.sleep(0.4)
    assert times == [10, 10, 10.5, 10.5]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (Conflict("changed", verb="update", kind="Gadget", key="default/a"), None),
        (asyncio.CancelledError(), "KonvergeError: a task or future that the reconcile awaited was cancelled"),
        (TimeoutError("slow"), "TimeoutError: slow"),
    ],
)
async def test_the_end_of_a_reconcile_has_the_type_and_the_text_of_its_error(
    error: BaseException, text: str | None
) -> None:
    seen = await reconciles_of(raising(error))
    assert seen.ends[0].error == (text or "Conflict: update Gadget default/a: changed")
    assert (seen.ends[0].result, seen.ends[-1].error) == ("", "")


async def test_the_end_of_a_reconcile_has_its_result_and_its_duration() -> None:
    results = [Result.requeue(after=1, reason="wait"), Result.requeue(), None]
    expected = [str(results[0]), str(results[1]), str(Result.done())]

    async def reconcile(obj: Gadget, ctx: Context) -> Result | None:
        await asyncio.sleep(0.5)
        return results.pop(0)

    seen = await reconciles_of(reconcile)
    assert [one.result for one in seen.ends] == expected
    assert seen.outcomes == ["requeue_after", "requeue", "success"]
    assert [round(one.seconds, 3) for one in seen.ends] == [0.5] * 3
    assert seen.delays == [0, 1.5, 2.0]


async def test_the_last_error_is_that_of_the_last_failure() -> None:
    errors: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        errors.append(ctx.last_error)
        if len(errors) == 1:
            raise Conflict("first")
        if len(errors) == 2:
            raise RuntimeError("second")
        return Result.requeue(after=1) if len(errors) == 3 else Result.done()

    await reconciles_of(reconcile)
    assert errors == ["", "first", "second", ""]


# Observers


async def test_observers_receive_the_controller_the_kind_and_what_was_read() -> None:
    world, seen = await world_with_gadgets(), Reconciles()
    made = await world.client.create(gadget("a"))
    ids: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        ids.append(ctx.reconcile_id)

    async with operating(world, controller_for(Gadget).named("lamps").build(reconcile), observers=(seen,)):
        await asyncio.sleep(5)
        await world.client.patch(Gadget, "a", {"spec": {"size": 2}})
        await asyncio.sleep(5)
    first, second = seen.begun
    assert (first.controller, first.kind, first.key) == ("lamps", kind_of(Gadget), A)
    assert [first.reconcile_id, second.reconcile_id] == ids
    assert len(set(ids)) == 2
    assert (first.attempt, second.attempt) == (1, 1)
    assert seen.reads[0] == ("Gadget", A, made.resource_version)
    assert isinstance(first.obj, Gadget)
    assert first.obj.uid == made.uid


async def test_the_wait_in_the_queue_counts_until_a_worker_is_free() -> None:
    world, seen = await world_with_gadgets(), list[float]()

    class Waits(ReconcileObserver):
        def begin(self, reconcile: ActiveReconcile) -> None:
            seen.append(round(reconcile.queue_wait, 1))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(3)

    async with operating(
        world, controller_for(Gadget).max_concurrent_reconciles(1).build(reconcile), observers=(Waits(),)
    ):
        await asyncio.sleep(1)
        for name in ("a", "b"):
            await world.client.create(gadget(name))
        await asyncio.sleep(10)
    assert seen == [0.0, 3.0]


# Return values


@pytest.mark.parametrize(
    ("value", "text"), [(30, "30"), ("x" * 200, repr("x" * 200)[:100]), (Result, "<class 'konverge.reconcile")]
)
def test_the_error_for_a_wrong_return_value_says_what_to_return(value: object, text: str) -> None:
    with pytest.raises(TerminalError) as caught:
        _checked(value)
    hint = ", not a Result: return Result.done(), Result.requeue(after=30) or None"
    assert str(caught.value).startswith(f"reconcile returned {text}")
    assert str(caught.value).endswith(hint)
    assert len(str(caught.value)) <= len("reconcile returned ") + 100 + len(hint)


def test_nothing_is_the_result_of_a_reconciler_that_is_done() -> None:
    result = Result.requeue(after=5)
    assert _checked(None) == Result.done()
    assert _checked(result) is result


# Objects that do not decode


class Recorder:
    """Records events in place of the recorder."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, dict[str, Any]]] = []

    def record(self, regarding: Reference, **facts: Any) -> None:
        self.events.append((regarding, facts))


class Patches:
    """A client that records patches, or refuses them."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.sent: list[tuple[Any, ...]] = []

    async def patch(self, kind: Kind, key: Key, patch: Any, *, subresource: str) -> None:
        if self._error is not None:
            raise self._error
        self.sent.append((kind, key, patch, subresource))


class Unread:
    """A collection that nobody reads."""

    def __call__(self, kind: Kind, *, namespace: str, metadata_only: bool) -> Any:
        return self


ERROR = DecodeError("expected int, got str, at .spec.size of Gadget default/a", path=".spec.size")
READY = {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def reported(
    status: Any, *, error: DecodeError = ERROR, refusal: Exception | None = None, recorder: Any = None
) -> list[tuple[Any, ...]]:
    """Report a gadget with this status as undecodable; return the patches."""
    client: Any = Patches(refusal)
    cache: Any = Cache(Unread())
    lister = cache.declare(kind_of(Gadget))
    metadata = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 3}
    lister.informers[0].begin()
    lister.informers[0].put(encode({"metadata": metadata, "spec": {"size": "large"}} | status))
    await lister.informers[0].swap("10")
    dependencies = ReconcileDependencies(
        controller="gadget",
        client=client,
        cache=cache,
        field_manager="gadgets",
        last_applied=LastApplied(),
        recorder=recorder,
    )
    await report_decode_failure(dependencies, lister, A, error)
    await report_decode_failure(dependencies, lister, Key("default", "unknown"), error)
    sent: list[tuple[Any, ...]] = client.sent
    return sent


def condition(patch: tuple[Any, ...]) -> dict[str, Any]:
    found: dict[str, Any] = patch[2]["status"]["conditions"][-1]
    return found


async def test_an_undecodable_object_gets_an_event_that_says_why() -> None:
    recorder = Recorder()
    await reported({}, recorder=recorder)
    ((regarding, facts),) = recorder.events
    assert (regarding.kind, regarding.name, regarding.namespace, regarding.uid) == ("Gadget", "a", "default", "u")
    assert facts == {"type": "Warning", "reason": "DecodeFailed", "message": str(ERROR), "action": "Reconcile"}


@pytest.mark.parametrize("status", [{}, {"status": None}, {"status": {}}, {"status": {"conditions": None}}])
async def test_an_undecodable_object_gets_a_condition_for_its_version_and_generation(status: Any) -> None:
    (patch,) = await reported(status)
    kind, key, content, subresource = patch
    assert (kind, key, subresource) == (kind_of(Gadget), A, "status")
    assert content.keys() == {"metadata", "status"}
    assert content["metadata"] == {"resourceVersion": "7"}
    found = condition(patch)
    assert found.pop("lastTransitionTime")
    assert found == {
        "type": "Readable",
        "status": "False",
        "reason": "DecodeFailed",
        "message": str(ERROR),
        "observedGeneration": 3,
    }


async def test_other_conditions_are_kept_and_an_equal_one_is_not_written_again() -> None:
    (patch,) = await reported({"status": {"conditions": [READY]}})
    conditions = patch[2]["status"]["conditions"]
    assert [one["type"] for one in conditions] == ["Ready", "Readable"]
    assert (conditions[0]["status"], conditions[0]["reason"]) == ("True", "Up")
    assert await reported({"status": {"conditions": conditions}}) == []


async def test_the_message_of_the_condition_has_at_most_1024_characters() -> None:
    (patch,) = await reported({}, error=DecodeError("x" * 2000))
    assert condition(patch)["message"] == "x" * 1024


@pytest.mark.parametrize("refusal", [ApiError("no"), KonvergeError("no"), TypeError("no"), ValueError("no")])
async def test_an_object_whose_status_cannot_be_written_has_only_the_event(refusal: Exception) -> None:
    recorder = Recorder()
    assert await reported({}, refusal=refusal, recorder=recorder) == []
    assert await reported({"status": {"conditions": [{"type": 7}]}}, recorder=recorder) == []
    assert len(recorder.events) == 2
