"""The promises of `WorkQueue` against a model that checks every key at each step, on virtual time.

Workers wait in `get` and are cancelled at random. The keys they get, and when, are replayed on the model: at that
moment the key must be one of the best, and no ready key may have waited while a worker was idle. Times are fractions of
two, so that they are exact.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from konverge.errors import QueueClosed
from konverge.queue import Backoff, Priority, RateLimit, WorkQueue
from konverge.testing.virtual_time import VirtualTimeLoop

KEYS = ["a", "b", "c"]
RAISE_AFTER = 8.0
BACKOFF = Backoff(base_delay=4.0, factor=2.0, max_delay=16.0, jitter=0.0)

keys = st.sampled_from(KEYS)
delays = st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 20.0])
priorities = st.sampled_from(Priority)


@dataclass
class Add:
    """A requested run, from a time on."""

    due: float
    priority: Priority
    reset_backoff: bool = False


@dataclass
class ModelKey:
    """The state of a key; `ready_at` is when it is ready, or since when."""

    ready_at: float | None = None
    priority: Priority = Priority.LOW
    running: bool = False
    started: float = 0.0
    adds: list[Add] = field(default_factory=list)
    failures: int = 0
    window: float | None = None
    early: bool = False

    def forget(self) -> None:
        self.failures, self.window, self.early = 0, None, False

    def schedule(self, add_: Add, now: float) -> None:
        due = add_.due
        if self.window is not None and self.early:
            due = max(due, self.window)
        if self.ready_at is None:
            self.ready_at, self.priority = max(due, now), add_.priority
        else:
            is_ready = self.ready_at <= now
            self.ready_at = self.ready_at if is_ready else min(self.ready_at, max(due, now))
            self.priority = max(self.priority, add_.priority)


class Model:
    """The queue as its docstring specifies it."""

    def __init__(self, rate: RateLimit | None) -> None:
        self.keys = {key: ModelKey() for key in KEYS}
        self.rate = rate
        self.started_keys: list[float] = []
        self.retries = 0

    def add(self, key: str, add_: Add, now: float) -> None:
        state = self.keys[key]
        if add_.reset_backoff:
            state.forget()
        if state.running:
            state.adds.append(add_)
        else:
            state.schedule(add_, now)

    def best(self, now: float) -> set[str]:
        """Return the keys of which one must be returned now."""
        ready = {key: state for key, state in self.keys.items() if state.ready_at is not None and state.ready_at <= now}
        if not ready or self.tokens(now) < 1:
            return set()
        first = min(self.rank(state, now) for state in ready.values())
        return {key for key, state in ready.items() if self.rank(state, now) == first}

    def rank(self, state: ModelKey, now: float) -> tuple[int, float]:
        assert state.ready_at is not None
        level = min(Priority.HIGH, state.priority + (now - state.ready_at) // RAISE_AFTER)
        return -int(level), state.ready_at

    def tokens(self, now: float) -> float:
        if self.rate is None:
            return 1
        tokens, last = float(self.rate.burst), 0.0
        for at in self.started_keys:
            tokens = min(self.rate.burst, tokens + (at - last) * self.rate.per_second) - 1
            last = at
        return min(self.rate.burst, tokens + (now - last) * self.rate.per_second)

    def take(self, key: str, now: float) -> None:
        state = self.keys[key]
        assert not state.running
        self.started_keys.append(now)
        state.ready_at, state.running, state.started = None, True, now
        if state.window is not None and now < state.window:
            state.early = True
        else:
            state.window = None

    def retry(self, key: str, now: float) -> float:
        state = self.keys[key]
        self.retries += 1
        if any(add_.reset_backoff for add_ in state.adds):
            return max(0.0, min(add_.due for add_ in state.adds) - now)
        if state.window is None:
            state.failures += 1
            state.window = now + min(BACKOFF.max_delay, BACKOFF.base_delay * BACKOFF.factor ** (state.failures - 1))
            state.early = False
        return max(0.0, state.window - now)

    def done(self, key: str, now: float) -> None:
        state = self.keys[key]
        adds, ran_at = state.adds, state.priority
        state.running, state.adds = False, []
        if state.window is not None:
            adds = [*adds, Add(state.window, ran_at)]
        if adds:
            due, priority = min(add_.due for add_ in adds), max(add_.priority for add_ in adds)
            state.schedule(Add(due, priority), now)


class QueueHarness:
    """A queue with its workers and the model, and every operation on them."""

    def __init__(self, rate: RateLimit | None, permanent: int) -> None:
        """Start some permanent workers; workers added later take one key each."""
        self.loop = VirtualTimeLoop()
        self.getters: list[asyncio.Task[None]] = []
        self.started_keys: list[tuple[float, str]] = []
        self.waits: list[float] = []
        self.model = Model(rate)
        self.queue: WorkQueue[str] = WorkQueue(backoff=BACKOFF, rate=rate, raise_priority_after=RAISE_AFTER)
        self.getters += [self.loop.create_task(self.work(forever=True)) for _ in range(permanent)]

    @property
    def now(self) -> float:
        return self.loop.time()

    # Operations

    def add(self, key: str, after: float, priority: Priority, reset_backoff: bool) -> None:
        async def act() -> None:
            self.queue.add(key, after=after, priority=priority, reset_backoff=reset_backoff)

        self.loop.run_until_complete(act())
        self.model.add(key, Add(self.now + after, priority, reset_backoff), self.now)
        self.settle()

    def time_passes(self, amount: float) -> None:
        start, end = self.now, self.now + amount
        self.loop.run_until_complete(asyncio.sleep(amount))
        self.settle(from_=start, to=end)

    def a_worker_comes(self) -> None:
        if self.idle() > 2:
            return
        self.getters.append(self.loop.create_task(self.work()))
        self.settle()

    def a_worker_is_cancelled_as_a_key_comes(self, key: str, choice: int) -> None:
        idle = [getter for getter in self.getters if not getter.done()]
        if not idle:
            return

        async def act() -> None:
            self.queue.add(key)
            idle[choice % len(idle)].cancel()

        self.loop.run_until_complete(act())
        self.model.add(key, Add(self.now, Priority.NORMAL), self.now)
        self.settle()

    def a_run_ends(self, choice: int, result: str) -> None:
        running = [key for key in KEYS if self.model.keys[key].running]
        if not running:
            return
        key = running[choice % len(running)]

        async def act() -> float:
            delay = self.queue.retry(key) if result == "failed" else 0.0
            if result in ("succeeded", "requeue"):
                self.queue.forget(key)
            if result == "requeue":
                self.queue.add(key, after=2.0)
            self.queue.done(key)
            return delay

        delay = self.loop.run_until_complete(act())
        if result == "failed":
            assert delay == self.model.retry(key, self.now)
        if result in ("succeeded", "requeue"):
            self.model.keys[key].forget()
        if result == "requeue":
            self.model.add(key, Add(self.now + 2.0, Priority.NORMAL), self.now)
        self.model.done(key, self.now)
        self.settle()

    def a_key_is_forgotten(self, key: str) -> None:
        self.queue.forget(key)
        self.model.keys[key].forget()

    # Checks

    def the_stats_are_right(self) -> None:
        async def ask() -> None:
            stats, states = self.queue.stats(), self.model.keys.values()
            ready_at = [state.ready_at for state in states if state.ready_at is not None]
            running = [self.now - state.started for state in states if state.running]
            assert stats.ready == sum(at <= self.now for at in ready_at)
            assert stats.delayed == sum(at > self.now for at in ready_at)
            assert stats.in_flight == len(running)
            assert stats.longest_running == max(running, default=0.0)
            assert stats.oldest_wait == max(0.0, *(self.now - at for at in ready_at), 0.0)
            assert stats.gets == len(self.model.started_keys) == len(self.waits)
            assert stats.retries == self.model.retries

        self.loop.run_until_complete(ask())

    def every_key_is_as_in_the_model(self) -> None:
        for key, state in self.model.keys.items():
            assert self.queue.failures(key) == state.failures
            assert self.queue.is_in_flight(key) == state.running

    def settle(self, *, from_: float | None = None, to: float | None = None) -> None:
        """Let the workers get keys, and replay that on the model."""
        from_ = self.now if from_ is None else from_
        to = self.now if to is None else to

        async def rest() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rest())
        started_keys, self.started_keys = self.started_keys, []
        for at, key in started_keys:
            assert not self.a_ready_key_was_delayed(from_, at)
            assert key in self.model.best(at)
            before = self.model.keys[key].ready_at
            self.model.take(key, at)
            assert self.waits[len(self.model.started_keys) - 1] == at - (before or 0.0)
            from_ = at
        if self.idle():
            assert not self.model.best(to)
            assert not self.a_ready_key_was_delayed(from_, to)

    def a_ready_key_was_delayed(self, from_: float, to: float) -> bool:
        """Report whether a key could have been returned before `to`; steps are as fine as the times used."""
        steps = int((to - from_) * 4)
        return any(self.model.best(from_ + step / 4) for step in range(steps))

    def idle(self) -> int:
        return sum(not getter.done() for getter in self.getters)

    async def work(self, *, forever: bool = False) -> None:
        while True:
            key = await self.queue.get()
            self.waits.append(self.queue.wait_time(key))
            self.started_keys.append((self.now, key))
            if not forever:
                break

    def finish(self) -> None:
        self.loop.run_until_complete(self.end())
        self.loop.close()

    async def end(self) -> None:
        """Close the queue: idle workers stop, and the queue is idle when the last run ends."""
        waiting = [getter for getter in self.getters if not getter.done()]
        self.queue.close()
        for getter in waiting:
            with pytest.raises(QueueClosed):
                await getter
        idle = asyncio.ensure_future(self.queue.wait_until_idle())
        await asyncio.sleep(1)
        running = [key for key, state in self.model.keys.items() if state.running]
        assert idle.done() == (not running)
        for key in running:
            self.queue.done(key)
        await idle


RATES = [None, RateLimit(2, 2), RateLimit(0.5, 1)]
RESULTS = ["failed", "failed", "failed", "succeeded", "requeue", "unknown"]
PAUSES = [0.25, 1.0, 2.0, 5.0, 30.0]


class QueueMachine(RuleBasedStateMachine):
    harness: QueueHarness | None = None

    @initialize(rate=st.sampled_from(RATES), permanent=st.integers(0, 2))
    def begin(self, rate: RateLimit | None, permanent: int) -> None:
        self.harness = QueueHarness(rate, permanent)

    @rule(key=keys, after=delays, priority=priorities, reset_backoff=st.sampled_from([False, False, False, True]))
    def add(self, key: str, after: float, priority: Priority, reset_backoff: bool) -> None:
        assert self.harness
        self.harness.add(key, after, priority, reset_backoff)

    @rule(amount=st.sampled_from(PAUSES))
    def time_passes(self, amount: float) -> None:
        assert self.harness
        self.harness.time_passes(amount)

    @rule()
    def a_worker_comes(self) -> None:
        assert self.harness
        self.harness.a_worker_comes()

    @rule(key=keys, choice=st.integers(0, 2))
    def a_worker_is_cancelled_as_a_key_comes(self, key: str, choice: int) -> None:
        assert self.harness
        self.harness.a_worker_is_cancelled_as_a_key_comes(key, choice)

    @rule(choice=st.integers(0, 2), result=st.sampled_from(RESULTS))
    def a_run_ends(self, choice: int, result: str) -> None:
        assert self.harness
        self.harness.a_run_ends(choice, result)

    @rule(key=keys)
    def a_key_is_forgotten(self, key: str) -> None:
        assert self.harness
        self.harness.a_key_is_forgotten(key)

    @rule()
    def the_stats_are_right(self) -> None:
        assert self.harness
        self.harness.the_stats_are_right()

    @invariant()
    def every_key_is_as_in_the_model(self) -> None:
        if self.harness:
            self.harness.every_key_is_as_in_the_model()

    def teardown(self) -> None:
        if self.harness:
            self.harness.finish()


def one_step(harness: QueueHarness, random: Random) -> None:
    """Do a random operation; runs end more often than anything else, so that failures come in rows."""
    key = random.choice(KEYS)
    match random.choice("aaaattteeeewwcfs"):
        case "a":
            after = random.choice([0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 20.0])
            harness.add(key, after, random.choice(list(Priority)), random.random() < 0.1)
        case "t":
            harness.time_passes(random.choice(PAUSES))
        case "e":
            harness.a_run_ends(random.randrange(3), random.choice(RESULTS))
        case "w":
            harness.a_worker_comes()
        case "c":
            harness.a_worker_is_cancelled_as_a_key_comes(key, random.randrange(3))
        case "f" if random.random() < 0.2:
            harness.a_key_is_forgotten(key)
        case _:
            harness.the_stats_are_right()
    harness.every_key_is_as_in_the_model()


@pytest.mark.parametrize("seed", range(12))
def test_a_long_random_scenario_agrees_with_the_model(seed: int) -> None:
    random = Random(seed)
    harness = QueueHarness(RATES[seed % 3], permanent=seed % 4 % 3)
    for _ in range(400):
        one_step(harness, random)
    harness.finish()


TestQueueMachine = pytest.mark.filterwarnings("default")(QueueMachine.TestCase)
TestQueueMachine.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, phases=[Phase.explicit, Phase.generate, Phase.shrink]
)
