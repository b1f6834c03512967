"""The lease thread, the heartbeat of the main loop, and an election that goes on while the main loop is blocked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import pytest

from konverge.client import Client, InProcessTransport
from konverge.k8s.coordination.v1 import Lease
from konverge.manager.background import background as in_background
from konverge.manager.election_runner import ElectionRunner
from konverge.manager.elector import LeaderElection
from konverge.manager.heartbeat import Heartbeat, LoopMonitor
from konverge.manager.lease_thread import LeaseThread
from konverge.manager.write_fence import WriteFence
from konverge_cluster.embedded_server import EmbeddedServer

real_time = pytest.mark.real_time(limit=60)


def ident() -> int:
    return threading.get_ident()


async def current_thread() -> int:
    return ident()


# The thread


@real_time
async def test_a_call_runs_on_another_thread_and_gives_its_result() -> None:
    async with LeaseThread() as thread:
        assert await thread.call(current_thread) != ident()


@real_time
async def test_an_error_in_the_thread_is_raised_by_the_caller() -> None:
    async def fail() -> None:
        raise LookupError("in the thread")

    async with LeaseThread() as thread:
        with pytest.raises(LookupError, match="in the thread"):
            await thread.call(fail)
        assert await thread.call(current_thread), "the thread goes on"


@real_time
async def test_a_cancelled_call_has_ended_when_the_cancellation_is_complete() -> None:
    begun, ended = asyncio.Event(), threading.Event()
    here = asyncio.get_running_loop()

    async def run_long() -> None:
        here.call_soon_threadsafe(begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            ended.set()

    async with LeaseThread() as thread:
        task = asyncio.create_task(thread.call(run_long))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()


@real_time
async def test_leaving_ends_running_calls_and_the_thread() -> None:
    ended = threading.Event()

    async def run_long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    before = threading.active_count()
    async with LeaseThread() as thread:
        task = asyncio.create_task(thread.call(run_long))
        await thread.call(current_thread)
    with pytest.raises(RuntimeError, match=r"^the lease thread ended before this call did$"):
        await task
    assert ended.is_set()
    assert not [each for each in threading.enumerate() if each.name == "konverge-lease"]
    assert threading.active_count() <= before + 1  # the thread that waited for the end belongs to the loop


@real_time
async def test_a_thread_that_does_not_run_says_so() -> None:
    thread = LeaseThread()
    with pytest.raises(
        RuntimeError, match=r"^the lease thread is not running: write `async with LeaseThread\(\) as thread:`$"
    ):
        await thread.call(current_thread)
    async with thread:
        pass
    with pytest.raises(
        RuntimeError, match=r"^the lease thread is not running: write `async with LeaseThread\(\) as thread:`$"
    ):
        await thread.call(current_thread)


@real_time
async def test_many_calls_from_many_tasks_all_end() -> None:
    async def echo(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async with LeaseThread() as thread:
        found = await asyncio.gather(*(thread.call(lambda n=n: echo(n)) for n in range(200)))  # type: ignore[misc]
    assert found == list(range(200))


# The heartbeat


Reasons = list[str]


class FixedHeartbeat(Heartbeat):
    """A heartbeat with the age that the test sets."""

    fixed_age = 0.0

    def age(self) -> float:
        return self.fixed_age


def test_a_blocked_loop_is_logged_once_and_then_steps_down_once(caplog: pytest.LogCaptureFixture) -> None:
    heartbeat, reasons = FixedHeartbeat(), Reasons()
    monitor = LoopMonitor(heartbeat, active_handlers=lambda: "WebApp shop/web", step_down=reasons.append)
    for age in (0, 1, 6, 10, 30, 59, 61, 62, 90):
        heartbeat.fixed_age = age
        monitor.check()

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "event loop blocked"),
        ("ERROR", "event loop blocked for too long, stepping down"),
    ]
    logged = [vars(record)["reason"] for record in caplog.records]
    assert logged[0].startswith("the event loop is blocked for 6 s by WebApp shop/web, at ")
    assert [logged[1]] == reasons
    assert reasons[0].startswith("the event loop is blocked for 61 s by WebApp shop/web, at ")
    assert monitor.slow_reason()
    assert monitor.not_live_reason()


@pytest.mark.parametrize(("age", "slow", "blocked"), [(4.9, False, False), (5, True, False), (60, True, True)])
def test_five_seconds_are_slow_and_sixty_are_too_long(age: float, slow: bool, blocked: bool) -> None:
    heartbeat, reasons = FixedHeartbeat(), Reasons()
    monitor = LoopMonitor(heartbeat, active_handlers=str, step_down=reasons.append)
    heartbeat.fixed_age = age
    monitor.check()
    assert (bool(monitor.slow_reason()), bool(monitor.not_live_reason()), bool(reasons)) == (slow, blocked, blocked)
    if slow:
        assert (
            monitor.slow_reason()
            == f"the event loop is blocked for {age:.0f} s by an unknown handler, at an unknown location"
        )


async def test_the_age_of_a_heartbeat_is_the_time_since_the_last_one() -> None:
    time = [100.0]
    heartbeat = Heartbeat(clock=lambda: time[0])
    assert heartbeat.age() == 0
    async with in_background(heartbeat.run()):
        await asyncio.sleep(0.1)
        time[0] = 100.4
        assert heartbeat.age() == pytest.approx(0.4)
        await asyncio.sleep(0.5)
        assert heartbeat.age() == 0
        time[0] = 50.0  # a clock that goes back
        assert heartbeat.age() == 0
    time[0] = 200.0
    assert heartbeat.age() == 0, "it does not run"


def test_a_loop_that_recovers_is_monitored_again() -> None:
    heartbeat, reasons = FixedHeartbeat(), Reasons()
    monitor = LoopMonitor(heartbeat, active_handlers=lambda: "", step_down=reasons.append)
    for age in (61, 0, 61):
        heartbeat.fixed_age = age
        monitor.check()

    assert len(reasons) == 2
    heartbeat.fixed_age = 0
    assert not monitor.slow_reason()


def test_thirty_seconds_of_blocking_are_logged_but_do_not_lose_the_lease() -> None:
    heartbeat, reasons = FixedHeartbeat(), Reasons()
    monitor = LoopMonitor(heartbeat, active_handlers=lambda: "x", step_down=reasons.append)
    heartbeat.fixed_age = 30
    monitor.check()

    assert monitor.slow_reason()
    assert not monitor.not_live_reason()
    assert not reasons


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^warn_after must be above 0 and at most step_down_after: 10 against 5$"):
        LoopMonitor(Heartbeat(), active_handlers=str, step_down=print, warn_after=10, step_down_after=5)


async def test_a_process_that_was_frozen_as_a_whole_is_not_taken_for_blocked() -> None:
    loop = asyncio.get_running_loop()
    frozen_for = [0.0]

    def clock() -> float:
        return loop.time() + frozen_for[0]

    heartbeat, reasons = Heartbeat(clock), Reasons()
    monitor = LoopMonitor(heartbeat, active_handlers=lambda: "x", step_down=reasons.append, clock=clock)
    async with background(monitor, heartbeat):
        await asyncio.sleep(10)
        frozen_for[0] = 3600.0
        assert heartbeat.age() > 3000
        await asyncio.sleep(10)
    assert not reasons


@asynccontextmanager
async def background(monitor: LoopMonitor, heartbeat: Heartbeat) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(monitor.run()), asyncio.create_task(heartbeat.run())]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@real_time
async def test_the_line_that_blocks_is_named_while_it_blocks() -> None:
    reasons: list[str] = []
    noticed = threading.Event()
    heartbeat = Heartbeat()

    def handler_that_blocks() -> None:
        assert noticed.wait(30)

    def step_down(reason: str) -> None:
        reasons.append(reason)
        noticed.set()

    monitor = LoopMonitor(
        heartbeat, active_handlers=lambda: "WebApp shop/web", step_down=step_down, warn_after=0.6, step_down_after=0.8
    )
    async with LeaseThread() as thread:
        beats = asyncio.create_task(heartbeat.run())
        checks = asyncio.create_task(thread.call(monitor.run))
        await thread.call(current_thread)
        await asyncio.sleep(0)
        handler_that_blocks()
        for task in (beats, checks):
            task.cancel()
        await asyncio.wait([beats, checks])

    assert "by WebApp shop/web" in reasons[0]
    assert "test_lease_thread.py" in reasons[0]
    assert "in handler_that_blocks" in reasons[0]
    assert heartbeat.age() == 0


# The election, from the main loop


class RecordedChanges:
    """The calls of the callbacks, and the thread of each."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.changed = asyncio.Event()

    def started(self) -> None:
        self.record("started")

    async def stopped(self, reason: str) -> None:
        await asyncio.sleep(0)
        self.record(reason)

    def record(self, change: str) -> None:
        self.calls.append((change, ident()))
        self.changed.set()

    async def next(self, count: int) -> str:
        while len(self.calls) < count:
            self.changed.clear()
            await self.changed.wait()
        return self.calls[count - 1][0]


def quick(name: str = "operator") -> LeaderElection:
    return LeaderElection(name, "default", lease_duration=20, renew_deadline=15, retry_period=0.2, margin=1)


@real_time
async def test_an_election_in_the_lease_thread_notifies_the_main_loop() -> None:
    server, changes = EmbeddedServer(seed=1), RecordedChanges()

    def connect() -> Client:
        return Client(InProcessTransport(server.handle))

    async with LeaseThread() as thread:
        runner = ElectionRunner(
            quick(), connect, thread=thread, on_started_leading=changes.started, on_stopped_leading=changes.stopped
        )
        task = asyncio.create_task(runner.run())
        await changes.next(1)
        assert runner.leading.is_set()
        assert runner.fence() > 0
        runner.stop()
        await task

    assert changes.calls == [("started", ident()), ("", ident())]
    assert not runner.leading.is_set()
    assert runner.fence() == 0
    assert runner.not_ready_reason() == ""
    lease = await connect().get(Lease, "operator", namespace="default")
    assert lease.spec.holder_identity == ""


@real_time
async def test_blocking_code_on_the_main_loop_does_not_lose_the_lease() -> None:
    server, changes = EmbeddedServer(seed=1), RecordedChanges()
    renewed = threading.Event()
    transport = InProcessTransport(server.handle)

    async with LeaseThread() as thread:
        runner = ElectionRunner(quick(), lambda: Client(transport), thread=thread, on_started_leading=changes.started)
        task = asyncio.create_task(runner.run())
        await changes.next(1)
        begin = runner.stats()
        assert begin is not None

        async def wait_for_renewals() -> None:
            while True:
                stats = runner.stats()
                assert stats is not None
                if stats.renew_count >= begin.renew_count + 4:
                    renewed.set()
                    return
                await asyncio.sleep(0.05)

        waiting = asyncio.create_task(thread.call(wait_for_renewals))
        await thread.call(current_thread)
        assert renewed.wait(50), "the main loop is blocked here"
        assert runner.fence() > 0
        await waiting
        runner.stop()
        await task
    assert [change for change, _ in changes.calls] == ["started"]


@real_time
async def test_a_loop_that_is_blocked_too_long_closes_the_fence_at_once_and_is_notified_later() -> None:
    server, changes = EmbeddedServer(seed=1), RecordedChanges()
    stepped_down = threading.Event()
    transport = InProcessTransport(server.handle)

    async with LeaseThread() as thread:
        runner = ElectionRunner(
            quick(),
            lambda: Client(transport),
            thread=thread,
            on_started_leading=changes.started,
            on_stopped_leading=changes.stopped,
        )
        task = asyncio.create_task(runner.run())
        await changes.next(1)

        async def step_down() -> None:
            runner.step_down("the event loop is blocked")
            await asyncio.sleep(0)
            stepped_down.set()

        stepping_down = asyncio.create_task(thread.call(step_down))
        await asyncio.sleep(0)
        assert stepped_down.wait(50), "the main loop is blocked here"
        assert runner.fence() == 0
        assert [change for change, _ in changes.calls] == ["started"]
        await stepping_down
        assert await changes.next(2) == "the event loop is blocked"
        assert await changes.next(3) == "started", "a loop that recovers competes again"
        runner.stop()
        await task


async def test_an_election_can_run_on_the_main_loop_in_virtual_time() -> None:
    server, changes = EmbeddedServer(seed=1), RecordedChanges()
    client = Client(InProcessTransport(server.handle))
    events: list[str] = []
    runner = ElectionRunner(
        LeaderElection("operator", "default"),
        lambda: nullcontext(client),
        fence=WriteFence(asyncio.get_running_loop().time),
        on_started_leading=changes.started,
        on_stopped_leading=changes.stopped,
        record_event=lambda reason, message: events.append(f"{reason}: {message.split(' ', 1)[1]}"),
    )
    task = asyncio.create_task(runner.run())
    await asyncio.sleep(60)
    assert runner.leading.is_set()
    runner.stop()
    await task

    assert [change for change, _ in changes.calls] == ["started", ""]
    assert events == ["LeaderElection: became leader", "LeaderElection: stopped leading"]
    assert await client.get(Lease, "operator", namespace="default"), "a client of the caller is not closed"


async def test_cancelling_an_election_reports_the_end_and_keeps_the_lease() -> None:
    server, changes = EmbeddedServer(seed=1), RecordedChanges()
    client = Client(InProcessTransport(server.handle))
    runner = ElectionRunner(
        LeaderElection("operator", "default", identity="a"),
        lambda: nullcontext(client),
        fence=WriteFence(asyncio.get_running_loop().time),
        on_started_leading=changes.started,
        on_stopped_leading=changes.stopped,
    )
    task = asyncio.create_task(runner.run())
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert runner.fence() == 0
    assert [change for change, _ in changes.calls] == ["started", "the elector ended"]
    assert (await client.get(Lease, "operator", namespace="default")).spec.holder_identity == "a"


@pytest.mark.parametrize("which", ["on_started_leading", "on_stopped_leading"])
async def test_an_error_of_a_callback_is_raised_by_run(which: str) -> None:
    def fail(*_: str) -> None:
        raise LookupError("in a callback")

    client = Client(InProcessTransport(EmbeddedServer(seed=1).handle))
    runner = ElectionRunner(
        LeaderElection("operator", "default"),
        lambda: nullcontext(client),
        fence=WriteFence(asyncio.get_running_loop().time),
        **{which: fail},  # type: ignore[arg-type]
    )
    task = asyncio.create_task(runner.run())
    await asyncio.sleep(10)
    runner.stop()

    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert caught.group_contains(LookupError, match="in a callback")
    assert runner.fence() == 0


async def test_an_election_that_is_stopped_before_it_starts_does_not_start() -> None:
    server = EmbeddedServer(seed=1)
    client = Client(InProcessTransport(server.handle))
    runner = ElectionRunner(quick(), lambda: nullcontext(client), fence=WriteFence(asyncio.get_running_loop().time))
    assert runner.not_ready_reason() == "leader election has not started"
    runner.stop()

    await runner.run()

    assert not await client.list(Lease, namespace="default")
