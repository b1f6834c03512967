"""The promises of `WorkQueue` against a model that looks at every key each time, on virtual time.

Workers wait in `get` and are cancelled at random. What they are handed, and when, is replayed on the model: at that
moment the key must be one of the best, and no key may have been left waiting while a worker was idle. Times are
fractions of two, so that they are exact.
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
AGING = 8.0
BACKOFF = Backoff(base_delay=4.0, factor=2.0, max_delay=16.0, jitter=0.0)

keys = st.sampled_from(KEYS)
delays = st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 20.0])
priorities = st.sampled_from(Priority)


@dataclass
class Wish:
    """Somebody wants a run, from a time on."""

    due: float
    priority: Priority
    reset_backoff: bool = False


@dataclass
class ModelKey:
    """All that is known of a key; `waits` is when it is due, or since when it is in line."""

    waits: float | None = None
    priority: Priority = Priority.LOW
    running: bool = False
    started: float = 0.0
    wishes: list[Wish] = field(default_factory=list)
    failures: int = 0
    window: float | None = None
    early: bool = False

    def forget(self) -> None:
        self.failures, self.window, self.early = 0, None, False

    def want(self, wish: Wish, now: float) -> None:
        due = wish.due
        if self.window is not None and self.early:
            due = max(due, self.window)
        if self.waits is None:
            self.waits, self.priority = max(due, now), wish.priority
        else:
            in_line = self.waits <= now
            self.waits = self.waits if in_line else min(self.waits, max(due, now))
            self.priority = max(self.priority, wish.priority)


class Model:
    """The queue as its docstring tells it."""

    def __init__(self, rate: RateLimit | None) -> None:
        self.keys = {key: ModelKey() for key in KEYS}
        self.rate = rate
        self.handed: list[float] = []
        self.retries = 0

    def add(self, key: str, wish: Wish, now: float) -> None:
        state = self.keys[key]
        if wish.reset_backoff:
            state.forget()
        if state.running:
            state.wishes.append(wish)
        else:
            state.want(wish, now)

    def best(self, now: float) -> set[str]:
        """Give the keys of which one is to be handed out now."""
        ready = {key: state for key, state in self.keys.items() if state.waits is not None and state.waits <= now}
        if not ready or self.tokens(now) < 1:
            return set()
        first = min(self.rank(state, now) for state in ready.values())
        return {key for key, state in ready.items() if self.rank(state, now) == first}

    def rank(self, state: ModelKey, now: float) -> tuple[int, float]:
        assert state.waits is not None
        level = min(Priority.HIGH, state.priority + (now - state.waits) // AGING)
        return -int(level), state.waits

    def tokens(self, now: float) -> float:
        if self.rate is None:
            return 1
        tokens, last = float(self.rate.burst), 0.0
        for at in self.handed:
            tokens = min(self.rate.burst, tokens + (at - last) * self.rate.per_second) - 1
            last = at
        return min(self.rate.burst, tokens + (now - last) * self.rate.per_second)

    def take(self, key: str, now: float) -> None:
        state = self.keys[key]
        assert not state.running
        self.handed.append(now)
        state.waits, state.running, state.started = None, True, now
        if state.window is not None and now < state.window:
            state.early = True
        else:
            state.window = None

    def retry(self, key: str, now: float) -> float:
        state = self.keys[key]
        self.retries += 1
        if any(wish.reset_backoff for wish in state.wishes):
            return max(0.0, min(wish.due for wish in state.wishes) - now)
        if state.window is None:
            state.failures += 1
            state.window = now + min(BACKOFF.most, BACKOFF.first * BACKOFF.factor ** (state.failures - 1))
            state.early = False
        return max(0.0, state.window - now)

    def done(self, key: str, now: float) -> None:
        state = self.keys[key]
        wishes, ran_at = state.wishes, state.priority
        state.running, state.wishes = False, []
        if state.window is not None:
            wishes = [*wishes, Wish(state.window, ran_at)]
        if wishes:
            due, priority = min(wish.due for wish in wishes), max(wish.priority for wish in wishes)
            state.want(Wish(due, priority), now)


class Play:
    """A queue with its workers and the model, and all that may happen to them."""

    def __init__(self, rate: RateLimit | None, keen: int) -> None:
        """Start with some workers that go on for ever; those that come later take one key each."""
        self.loop = VirtualTimeLoop()
        self.getters: list[asyncio.Task[None]] = []
        self.handed: list[tuple[float, str]] = []
        self.waits: list[float] = []
        self.model = Model(rate)
        self.queue: WorkQueue[str] = WorkQueue(backoff=BACKOFF, rate=rate, raise_priority_after=AGING, observe=self.waits.append)
        self.getters += [self.loop.create_task(self.work(again=True)) for _ in range(keen)]

    @property
    def now(self) -> float:
        return self.loop.time()

    # What happens

    def add(self, key: str, after: float, priority: Priority, reset_backoff: bool) -> None:
        async def act() -> None:
            self.queue.add(key, after=after, priority=priority, reset_backoff=reset_backoff)

        self.loop.run_until_complete(act())
        self.model.add(key, Wish(self.now + after, priority, reset_backoff), self.now)
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
        self.model.add(key, Wish(self.now, Priority.NORMAL), self.now)
        self.settle()

    def a_run_ends(self, choice: int, verdict: str) -> None:
        running = [key for key in KEYS if self.model.keys[key].running]
        if not running:
            return
        key = running[choice % len(running)]

        async def act() -> float:
            delay = self.queue.retry(key) if verdict == "failed" else 0.0
            if verdict in ("succeeded", "again"):
                self.queue.forget(key)
            if verdict == "again":
                self.queue.add(key, after=2.0)
            self.queue.done(key)
            return delay

        delay = self.loop.run_until_complete(act())
        if verdict == "failed":
            assert delay == self.model.retry(key, self.now)
        if verdict in ("succeeded", "again"):
            self.model.keys[key].forget()
        if verdict == "again":
            self.model.add(key, Wish(self.now + 2.0, Priority.NORMAL), self.now)
        self.model.done(key, self.now)
        self.settle()

    def a_key_is_forgotten(self, key: str) -> None:
        self.queue.forget(key)
        self.model.keys[key].forget()

    # What must be true

    def the_stats_are_right(self) -> None:
        async def ask() -> None:
            stats, states = self.queue.stats(), self.model.keys.values()
            waits = [state.waits for state in states if state.waits is not None]
            running = [self.now - state.started for state in states if state.running]
            assert stats.ready == sum(at <= self.now for at in waits)
            assert stats.delayed == sum(at > self.now for at in waits)
            assert stats.in_flight == len(running)
            assert stats.longest_running == max(running, default=0.0)
            assert stats.oldest_wait == max(0.0, *(self.now - at for at in waits), 0.0)
            assert stats.gets == len(self.model.handed) == len(self.waits)
            assert stats.retries == self.model.retries

        self.loop.run_until_complete(ask())

    def every_key_is_as_in_the_model(self) -> None:
        for key, state in self.model.keys.items():
            assert self.queue.failures(key) == state.failures
            assert self.queue.is_in_flight(key) == state.running

    def settle(self, *, from_: float | None = None, to: float | None = None) -> None:
        """Let the workers take what they can, and replay it on the model."""
        from_ = self.now if from_ is None else from_
        to = self.now if to is None else to

        async def rest() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rest())
        handed, self.handed = self.handed, []
        for at, key in handed:
            assert not self.somebody_is_kept_waiting(from_, at)
            assert key in self.model.best(at)
            before = self.model.keys[key].waits
            self.model.take(key, at)
            assert self.waits[len(self.model.handed) - 1] == at - (before or 0.0)
            from_ = at
        if self.idle():
            assert not self.model.best(to)
            assert not self.somebody_is_kept_waiting(from_, to)

    def somebody_is_kept_waiting(self, from_: float, to: float) -> bool:
        """Tell whether a key could have been handed out before `to`; steps are as fine as the times used."""
        steps = int((to - from_) * 4)
        return any(self.model.best(from_ + step / 4) for step in range(steps))

    def idle(self) -> int:
        return sum(not getter.done() for getter in self.getters)

    async def work(self, *, again: bool = False) -> None:
        while True:
            key = await self.queue.get()
            self.handed.append((self.now, key))
            if not again:
                break

    def finish(self) -> None:
        self.loop.run_until_complete(self.end())
        self.loop.close()

    async def end(self) -> None:
        """Close: idle workers are told, and the queue is drained when the last run ends."""
        waiting = [getter for getter in self.getters if not getter.done()]
        self.queue.close()
        for getter in waiting:
            with pytest.raises(QueueClosed):
                await getter
        drained = asyncio.ensure_future(self.queue.wait_until_idle())
        await asyncio.sleep(1)
        running = [key for key, state in self.model.keys.items() if state.running]
        assert drained.done() == (not running)
        for key in running:
            self.queue.done(key)
        await drained


RATES = [None, RateLimit(2, 2), RateLimit(0.5, 1)]
VERDICTS = ["failed", "failed", "failed", "succeeded", "again", "unknown"]
PAUSES = [0.25, 1.0, 2.0, 5.0, 30.0]


class QueueMachine(RuleBasedStateMachine):
    play: Play | None = None

    @initialize(rate=st.sampled_from(RATES), keen=st.integers(0, 2))
    def begin(self, rate: RateLimit | None, keen: int) -> None:
        self.play = Play(rate, keen)

    @rule(key=keys, after=delays, priority=priorities, reset_backoff=st.sampled_from([False, False, False, True]))
    def add(self, key: str, after: float, priority: Priority, reset_backoff: bool) -> None:
        assert self.play
        self.play.add(key, after, priority, reset_backoff)

    @rule(amount=st.sampled_from(PAUSES))
    def time_passes(self, amount: float) -> None:
        assert self.play
        self.play.time_passes(amount)

    @rule()
    def a_worker_comes(self) -> None:
        assert self.play
        self.play.a_worker_comes()

    @rule(key=keys, choice=st.integers(0, 2))
    def a_worker_is_cancelled_as_a_key_comes(self, key: str, choice: int) -> None:
        assert self.play
        self.play.a_worker_is_cancelled_as_a_key_comes(key, choice)

    @rule(choice=st.integers(0, 2), verdict=st.sampled_from(VERDICTS))
    def a_run_ends(self, choice: int, verdict: str) -> None:
        assert self.play
        self.play.a_run_ends(choice, verdict)

    @rule(key=keys)
    def a_key_is_forgotten(self, key: str) -> None:
        assert self.play
        self.play.a_key_is_forgotten(key)

    @rule()
    def the_stats_are_right(self) -> None:
        assert self.play
        self.play.the_stats_are_right()

    @invariant()
    def every_key_is_as_in_the_model(self) -> None:
        if self.play:
            self.play.every_key_is_as_in_the_model()

    def teardown(self) -> None:
        if self.play:
            self.play.finish()


def one_step(play: Play, random: Random) -> None:
    """Let something happen; runs end more often than anything else, so that failures come in rows."""
    key = random.choice(KEYS)
    match random.choice("aaaattteeeewwcfs"):
        case "a":
            after = random.choice([0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 20.0])
            play.add(key, after, random.choice(list(Priority)), random.random() < 0.1)
        case "t":
            play.time_passes(random.choice(PAUSES))
        case "e":
            play.a_run_ends(random.randrange(3), random.choice(VERDICTS))
        case "w":
            play.a_worker_comes()
        case "c":
            play.a_worker_is_cancelled_as_a_key_comes(key, random.randrange(3))
        case "f" if random.random() < 0.2:
            play.a_key_is_forgotten(key)
        case _:
            play.the_stats_are_right()
    play.every_key_is_as_in_the_model()


@pytest.mark.parametrize("seed", range(12))
def test_a_long_random_play_agrees_with_the_model(seed: int) -> None:
    random = Random(seed)
    play = Play(RATES[seed % 3], keen=seed % 4 % 3)
    for _ in range(400):
        one_step(play, random)
    play.finish()


TestQueueMachine = pytest.mark.filterwarnings("default")(QueueMachine.TestCase)
TestQueueMachine.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, phases=[Phase.explicit, Phase.generate, Phase.shrink]
)
