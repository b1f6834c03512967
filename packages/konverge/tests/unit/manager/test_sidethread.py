"""The side thread, the heartbeat of the main loop, and an election that goes on while the main loop is blocked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import pytest

from konverge.client import Client, InProcessTransport
from konverge.k8s.coordination.v1 import Lease
from konverge.manager.elector import Election
from konverge.manager.guard import Guard
from konverge.manager.heartbeat import Heartbeat, LoopWatch
from konverge.manager.leadership import Leadership
from konverge.manager.lease_thread import LeaseThread
from konverge_cluster.embedded_server import EmbeddedServer

real_time = pytest.mark.real_time(limit=60)


def ident() -> int:
    return threading.get_ident()


async def which_thread() -> int:
    return ident()


# The thread


@real_time
async def test_a_call_runs_on_another_thread_and_gives_its_result() -> None:
    async with LeaseThread() as side:
        assert await side.call(which_thread) != ident()


@real_time
async def test_an_error_over_there_is_raised_here() -> None:
    async def fail() -> None:
        raise LookupError("over there")

    async with LeaseThread() as side:
        with pytest.raises(LookupError, match="over there"):
            await side.call(fail)
        assert await side.call(which_thread), "and the thread goes on"


@real_time
async def test_a_cancelled_call_has_ended_when_the_cancellation_is_through() -> None:
    begun, ended = asyncio.Event(), threading.Event()
    here = asyncio.get_running_loop()

    async def last_long() -> None:
        here.call_soon_threadsafe(begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            ended.set()

    async with LeaseThread() as side:
        task = asyncio.create_task(side.call(last_long))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()


@real_time
async def test_leaving_ends_what_still_runs_and_the_thread() -> None:
    ended = threading.Event()

    async def last_long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    before = threading.active_count()
    async with LeaseThread() as side:
        task = asyncio.create_task(side.call(last_long))
        await side.call(which_thread)
    with pytest.raises(RuntimeError, match="ended before this call"):
        await task
    assert ended.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "konverge-side"]
    assert threading.active_count() <= before + 1  # the thread that waited for the end belongs to the loop


@real_time
async def test_a_thread_that_does_not_run_says_so() -> None:
    side = LeaseThread()
    with pytest.raises(RuntimeError, match="not running"):
        await side.call(which_thread)
    async with side:
        pass
    with pytest.raises(RuntimeError, match="not running"):
        await side.call(which_thread)


@real_time
async def test_many_calls_from_many_tasks_all_end() -> None:
    async def answer(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async with LeaseThread() as side:
        found = await asyncio.gather(*(side.call(lambda n=n: answer(n)) for n in range(200)))  # type: ignore[misc]
    assert found == list(range(200))


# The heartbeat


Reasons = list[str]


class Pulse(Heartbeat):
    """A heartbeat that is as old as the test says, at a line that it says."""

    old = 0.0

    def age(self) -> float:
        return self.old


def test_a_blocked_loop_is_warned_of_once_and_then_given_up_once(caplog: pytest.LogCaptureFixture) -> None:
    pulse, reasons = Pulse(), Reasons()
    watch = LoopWatch(pulse, blocking=lambda: "WebApp shop/web", give_up=reasons.append)
    for age in (0, 1, 6, 10, 30, 59, 61, 62, 90):
        pulse.old = age
        watch.look()

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert len(reasons) == 1
    assert reasons[0].startswith("the main loop is blocked for 61 s by WebApp shop/web, at ")
    assert watch.slow()
    assert watch.blocked()


def test_a_loop_that_turns_again_is_watched_anew() -> None:
    pulse, reasons = Pulse(), Reasons()
    watch = LoopWatch(pulse, blocking=lambda: "", give_up=reasons.append)
    for age in (61, 0, 61):
        pulse.old = age
        watch.look()

    assert len(reasons) == 2
    pulse.old = 0
    assert not watch.slow()


def test_thirty_seconds_of_blocking_are_told_but_cost_no_lease() -> None:
    pulse, reasons = Pulse(), Reasons()
    watch = LoopWatch(pulse, blocking=lambda: "x", give_up=reasons.append)
    pulse.old = 30
    watch.look()

    assert watch.slow()
    assert not watch.blocked()
    assert not reasons


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at most give_up_after"):
        LoopWatch(Heartbeat(), blocking=str, give_up=print, slow_after=10, give_up_after=5)


async def test_a_process_that_was_frozen_as_a_whole_is_not_taken_for_blocked() -> None:
    loop = asyncio.get_running_loop()
    frozen_for = [0.0]

    def clock() -> float:
        return loop.time() + frozen_for[0]

    pulse, reasons = Heartbeat(clock), Reasons()
    watch = LoopWatch(pulse, blocking=lambda: "x", give_up=reasons.append, clock=clock)
    async with background(watch, pulse):
        await asyncio.sleep(10)
        frozen_for[0] = 3600.0
        assert pulse.age() > 3000
        await asyncio.sleep(10)
    assert not reasons


@asynccontextmanager
async def background(watch: LoopWatch, pulse: Heartbeat) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(watch.run()), asyncio.create_task(pulse.beat())]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@real_time
async def test_the_line_that_blocks_is_named_while_it_blocks() -> None:
    seen: list[str] = []
    noticed = threading.Event()
    pulse = Heartbeat()

    def handler_that_blocks() -> None:
        assert noticed.wait(30)

    def give_up(why: str) -> None:
        seen.append(why)
        noticed.set()

    watch = LoopWatch(pulse, blocking=lambda: "WebApp shop/web", give_up=give_up, slow_after=0.6, give_up_after=0.8)
    async with LeaseThread() as side:
        beating = asyncio.create_task(pulse.beat())
        watching = asyncio.create_task(side.call(watch.run))
        await side.call(which_thread)
        await asyncio.sleep(0)
        handler_that_blocks()
        for task in (beating, watching):
            task.cancel()
        await asyncio.wait([beating, watching])

    assert "by WebApp shop/web" in seen[0]
    assert "test_sidethread.py" in seen[0]
    assert "in handler_that_blocks" in seen[0]
    assert pulse.age() == 0


# The election seen from the main loop


class Told:
    """What the main loop was told, and by which thread."""

    def __init__(self) -> None:
        self.news: list[tuple[str, int]] = []
        self.heard = asyncio.Event()

    def started(self) -> None:
        self.note("started")

    async def stopped(self, why: str) -> None:
        await asyncio.sleep(0)
        self.note(why)

    def note(self, what: str) -> None:
        self.news.append((what, ident()))
        self.heard.set()

    async def next(self, count: int) -> str:
        while len(self.news) < count:
            self.heard.clear()
            await self.heard.wait()
        return self.news[count - 1][0]


def quick(name: str = "operator") -> Election:
    return Election(name, "default", lease=20, renew_deadline=15, retry=0.2, margin=1)


@real_time
async def test_an_election_in_the_side_thread_tells_the_main_loop() -> None:
    server, told = EmbeddedServer(seed=1), Told()

    def connect() -> Client:
        return Client(InProcessTransport(server.handle))

    async with LeaseThread() as side:
        leadership = Leadership(quick(), connect, side=side, started=told.started, stopped=told.stopped)
        task = asyncio.create_task(leadership.run())
        await told.next(1)
        assert leadership.leading.is_set()
        assert leadership.guard() > 0
        leadership.stop()
        await task

    assert told.news == [("started", ident()), ("told to stop", ident())]
    assert not leadership.leading.is_set()
    assert leadership.guard() == 0
    assert leadership.trouble() == ""
    lease = await connect().get(Lease, "operator", namespace="default")
    assert lease.spec.holder_identity == ""


@real_time
async def test_blocking_code_on_the_main_loop_does_not_cost_the_lease() -> None:
    server, told = EmbeddedServer(seed=1), Told()
    renewed = threading.Event()
    transport = InProcessTransport(server.handle)

    async with LeaseThread() as side:
        leadership = Leadership(quick(), lambda: Client(transport), side=side, started=told.started)
        task = asyncio.create_task(leadership.run())
        await told.next(1)
        begin = leadership.stats()
        assert begin is not None

        async def wait_for_renewals() -> None:
            while True:
                stats = leadership.stats()
                assert stats is not None
                if stats.renewals >= begin.renewals + 4:
                    renewed.set()
                    return
                await asyncio.sleep(0.05)

        waiting = asyncio.create_task(side.call(wait_for_renewals))
        await side.call(which_thread)
        assert renewed.wait(50), "the main loop is blocked here"
        assert leadership.guard() > 0
        await waiting
        leadership.stop()
        await task
    assert [what for what, _ in told.news] == ["started"]


@real_time
async def test_a_loop_that_is_blocked_too_long_loses_the_guard_at_once_and_hears_of_it_later() -> None:
    server, told = EmbeddedServer(seed=1), Told()
    given_up = threading.Event()
    transport = InProcessTransport(server.handle)

    async with LeaseThread() as side:
        leadership = Leadership(
            quick(), lambda: Client(transport), side=side, started=told.started, stopped=told.stopped
        )
        task = asyncio.create_task(leadership.run())
        await told.next(1)

        async def give_up() -> None:
            leadership.give_up("the main loop is blocked")
            await asyncio.sleep(0)
            given_up.set()

        giving_up = asyncio.create_task(side.call(give_up))
        await asyncio.sleep(0)
        assert given_up.wait(50), "the main loop is blocked here"
        assert leadership.guard() == 0
        assert [what for what, _ in told.news] == ["started"]
        await giving_up
        assert await told.next(2) == "the main loop is blocked"
        assert await told.next(3) == "started", "when it turns again it competes again"
        leadership.stop()
        await task


async def test_an_election_can_run_on_the_main_loop_and_virtual_time() -> None:
    server, told = EmbeddedServer(seed=1), Told()
    client = Client(InProcessTransport(server.handle))
    events: list[str] = []
    leadership = Leadership(
        Election("operator", "default"),
        lambda: nullcontext(client),
        guard=Guard(asyncio.get_running_loop().time),
        started=told.started,
        stopped=told.stopped,
        record=lambda reason, message: events.append(f"{reason}: {message.split(' ', 1)[1]}"),
    )
    task = asyncio.create_task(leadership.run())
    await asyncio.sleep(60)
    assert leadership.leading.is_set()
    leadership.stop()
    await task

    assert [what for what, _ in told.news] == ["started", "told to stop"]
    assert events == ["LeaderElection: became leader", "LeaderElection: stopped leading"]
    assert await client.get(Lease, "operator", namespace="default"), "a client that was lent is not closed"


async def test_cancelling_an_election_tells_that_it_ended_and_keeps_the_lease() -> None:
    server, told = EmbeddedServer(seed=1), Told()
    client = Client(InProcessTransport(server.handle))
    leadership = Leadership(
        Election("operator", "default", identity="a"),
        lambda: nullcontext(client),
        guard=Guard(asyncio.get_running_loop().time),
        started=told.started,
        stopped=told.stopped,
    )
    task = asyncio.create_task(leadership.run())
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert leadership.guard() == 0
    assert [what for what, _ in told.news] == ["started", "the elector ended"]
    assert (await client.get(Lease, "operator", namespace="default")).spec.holder_identity == "a"


@pytest.mark.parametrize("which", ["started", "stopped"])
async def test_an_error_of_a_callback_comes_out_of_run(which: str) -> None:
    def fail(*_: str) -> None:
        raise LookupError("in a callback")

    client = Client(InProcessTransport(EmbeddedServer(seed=1).handle))
    leadership = Leadership(
        Election("operator", "default"),
        lambda: nullcontext(client),
        guard=Guard(asyncio.get_running_loop().time),
        **{which: fail},  # type: ignore[arg-type]
    )
    task = asyncio.create_task(leadership.run())
    await asyncio.sleep(10)
    leadership.stop()

    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert caught.group_contains(LookupError, match="in a callback")
    assert leadership.guard() == 0


async def test_an_election_that_is_stopped_before_it_starts_does_not_start() -> None:
    server = EmbeddedServer(seed=1)
    client = Client(InProcessTransport(server.handle))
    leadership = Leadership(quick(), lambda: nullcontext(client), guard=Guard(asyncio.get_running_loop().time))
    assert leadership.trouble() == "the election has not started"
    leadership.stop()

    await leadership.run()

    assert not await client.list(Lease, namespace="default")
