"""Token buckets and series of events, without a server."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects import MicroTime
from konverge.reconcile.event_limits import EventLimits, EventRateLimiter, Share, TokenBucket
from konverge.reconcile.event_series import EventCorrelator, RecordedEvent, Reference, Series

steps = st.lists(st.floats(0, 400), min_size=1, max_size=200)


@settings(max_examples=100)
@given(st.integers(1, 30), st.floats(0.1, 100), steps)
def test_a_bucket_allows_no_more_than_it_holds_and_regains(burst: int, interval: float, pauses: list[float]) -> None:
    bucket = TokenBucket(burst, interval, 0.0)
    now, taken = 0.0, []
    for pause in pauses:
        now += pause
        while not bucket.wait(now):
            bucket.take(now)
            taken.append(now)
    for start in set(taken):
        window = [at for at in taken if start <= at <= start + 300]
        assert len(window) <= burst + 300 / interval + 1e-6


@settings(max_examples=100)
@given(st.integers(1, 30), st.floats(0.1, 100), st.sampled_from(Share))
def test_after_the_wait_there_is_a_token(burst: int, interval: float, share: Share) -> None:
    bucket = TokenBucket(burst, interval, 0.0)
    for _ in range(burst):
        bucket.take(0.0)
    wait = bucket.wait(0.0, share)
    assert wait > 0
    assert bucket.wait(wait, share) == 0


def test_a_clock_that_goes_back_adds_no_tokens() -> None:
    bucket = TokenBucket(1, 10.0, 100.0)
    bucket.take(100.0)
    assert bucket.left(50.0) == 0
    bucket.take(110.0)
    assert bucket.left(105.0) == 0


def test_less_important_events_leave_tokens_for_more_important_ones() -> None:
    bucket = TokenBucket(8, 1000.0, 0.0)
    taken = dict.fromkeys((Share.COUNT, Share.NORMAL, Share.WARNING), 0)
    for share in taken:
        while not bucket.wait(0.0, share):
            bucket.take(0.0)
            taken[share] += 1
    assert taken == {Share.COUNT: 4, Share.NORMAL: 2, Share.WARNING: 2}


def test_a_bucket_of_one_serves_everything() -> None:
    assert TokenBucket(1, 10.0, 0.0).wait(0.0, Share.COUNT) == 0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0, 60)), min_size=1, max_size=300))
def test_buckets_are_dropped_only_when_they_are_full(requests: list[tuple[int, float]]) -> None:
    limits = EventLimits(total_burst=10_000, object_burst=3, object_interval=60.0)
    limiter = EventRateLimiter(limits, 0.0)
    now, allowed = 0.0, []
    for regarding, pause in requests:
        now += pause
        if not limiter.take(regarding, now, Share.WARNING):
            allowed.append((regarding, now))
    for regarding, start in allowed:
        window = [at for other, at in allowed if other == regarding and start <= at <= start + 300]
        assert len(window) <= 3 + 5


def test_the_number_of_buckets_is_bounded_by_the_allowed_writes() -> None:
    limiter = EventRateLimiter(EventLimits(), 0.0)
    most = 0
    for number in range(20_000):
        limiter.take(number, number * 0.5, Share.WARNING)
        most = max(most, len(limiter))
    assert most <= 80 + 25 * 30 / 3 + 10


def event(note: str = "no room", name: str = "a") -> RecordedEvent:
    regarding = Reference(api_version="v1", kind="Pod", namespace="shop", name=name)
    return RecordedEvent("widgets", regarding, None, "Warning", "Failed", "Failed", note, MicroTime.now())


def correlator(**limits: int) -> tuple[EventCorrelator, list[Series]]:
    evicted: list[Series] = []

    def evict(series: Series) -> None:
        evicted.append(series)
        created.drop(series)

    created = EventCorrelator(EventLimits(**limits), evict)
    return created, evicted


def test_many_different_messages_are_combined_into_one_series() -> None:
    events, _ = correlator(messages=3)
    for number in range(100):
        if events.count(event(f"try {number}"), 0.0) is None:
            events.create(event(f"try {number}"), 0.0)
    texts = {series.text: series.count for series in events.all()}
    assert texts == {"try 0": 1, "try 1": 1, "try 2": 1, "(combined from similar events): try 3": 97}


def test_a_stored_message_is_counted_on_its_own_series_however_many_there_are() -> None:
    events, _ = correlator(messages=2)
    for note in ("a", "b", "c", "d"):
        if events.count(event(note), 0.0) is None:
            events.create(event(note), 0.0)
    found = events.count(event("a"), 1.0)
    assert found is not None
    assert found.text == "a"


def test_new_messages_have_their_own_series_again_once_there_is_room() -> None:
    events, _ = correlator(messages=2)
    for note, now in (("a", 0.0), ("b", 300.0), ("c", 300.0)):
        if events.count(event(note), now) is None:
            events.create(event(note), now)
    assert [series.text for series in events.all()] == ["a", "b", "(combined from similar events): c"]
    assert events.count(event("d"), 361.0) is None, "the series of a has expired"
    assert events.create(event("d"), 361.0).text == "d"
    found = events.count(event("e"), 362.0)
    assert found is not None
    assert found.text == "(combined from similar events): c"


def test_expired_messages_are_replaced_by_new_ones() -> None:
    events, _ = correlator(messages=2)
    events.create(event("a"), 0.0)
    events.create(event("b"), 300.0)
    assert events.count(event("c"), 361.0) is None
    assert events.create(event("c"), 361.0).text == "c"


def test_an_event_without_a_message_has_its_own_series() -> None:
    events, _ = correlator()
    events.create(event(""), 0.0)
    found = events.count(event(""), 1.0)
    assert found is not None
    assert found.text == ""


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 15), st.integers(0, 200)), max_size=100))
def test_nothing_is_counted_twice_and_nothing_lost(seen: list[tuple[str, int, int]]) -> None:
    events, evicted = correlator(messages=3, series=5)
    now = 0.0
    for name, note, pause in seen:
        now += pause
        one = event(str(note), name)
        if events.count(one, now) is None:
            events.create(one, now)
        assert len(events) <= 5
    assert sum(series.count for series in [*events.all(), *evicted]) == len(seen)
