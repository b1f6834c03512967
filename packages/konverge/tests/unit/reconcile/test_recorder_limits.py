"""Token buckets and series of events, without a server."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from konverge.objects import MicroTime, Unstructured
from konverge.reconcile.event_limits import EventLimits, EventRateLimiter, Share, TokenBucket
from konverge.reconcile.event_schedule import SeriesSchedule
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


def test_a_bucket_regains_one_token_each_interval_up_to_its_burst() -> None:
    bucket = TokenBucket(2, 10.0, 100.0)
    assert bucket.left(100.0) == 2
    assert bucket.is_full(100.0)
    bucket.take(100.0)
    assert (bucket.left(100.0), bucket.left(105.0), bucket.left(110.0), bucket.left(500.0)) == (1.0, 1.5, 2.0, 2.0)
    assert (bucket.is_full(109.9), bucket.is_full(110.0)) == (False, True)
    bucket.take(100.0)
    assert (bucket.wait(100.0), bucket.wait(107.5), bucket.wait(110.0)) == (10.0, 2.5, 0.0)
    assert bucket.wait(109.9999) == 0.001, "the shortest wait"
    assert bucket.wait(110.0, Share.NORMAL) == 5.0, "half a token is reserved"
    assert bucket.wait(110.0, Share.COUNT) == 10.0, "one token is reserved"


def test_the_wait_is_the_longer_of_the_object_and_of_all() -> None:
    limits = EventLimits(object_burst=1, object_interval=30.0, total_burst=2, total_interval=3.0)
    limiter = EventRateLimiter(limits, 0.0)
    assert limiter.take("a", 0.0, Share.WARNING) == 0.0
    assert limiter.take("a", 0.0, Share.WARNING) == 30.0
    assert limiter.take("b", 0.0, Share.WARNING) == 0.0
    assert limiter.take("c", 0.0, Share.WARNING) == 3.0
    assert len(limiter) == 2
    assert limiter.take("c", 3.0, Share.WARNING) == 0.0
    assert limiter.take("d", 30.0, Share.WARNING) == 0.0, "two tokens of all are back"
    assert len(limiter) == 2, "those of a and b are full again, and dropped"


def test_a_series_expires_exactly_after_the_window() -> None:
    events, evicted = correlator()
    series = events.create(event(), 100.0)
    assert events.expiry(series) == 460.0
    assert not events.is_expired(series, 459.9)
    assert events.is_expired(series, 460.0)
    assert events.count(event(), 459.0) is series
    assert events.count(event(), 459.0 + 360.0) is None
    assert evicted == [series]


def test_the_least_recently_recorded_series_is_evicted_for_one_more() -> None:
    events, evicted = correlator(series=2)
    first, second = events.create(event(name="a"), 0.0), events.create(event(name="b"), 1.0)
    assert events.count(event(name="a"), 2.0) is first
    assert evicted == []
    events.create(event(name="c"), 3.0)
    assert evicted == [second]
    assert (second.dropped, first.dropped, len(events)) == (True, False, 2)


def test_a_series_counts_and_knows_its_last_time() -> None:
    events, _ = correlator()
    series = events.create(event(), 0.0)
    assert (series.count, series.pending, series.last_recorded) == (1, 1, 0.0)
    later = event()
    events.count(later, 5.0)
    assert (series.count, series.last_recorded, series.last) == (2, 5.0, later.time)
    series.written = 2
    assert series.pending == 0


def test_similar_events_agree_in_everything_but_the_version_and_the_message() -> None:
    def group(**change: object) -> object:
        values = {"api_version": "v1", "kind": "Pod", "namespace": "shop", "name": "a", "uid": "1", **change}
        regarding = Reference(**values)  # type: ignore[arg-type]
        return RecordedEvent("widgets", regarding, regarding, "Warning", "Failed", "Make", "x", MicroTime.now()).group

    assert group() == group(resource_version="7")
    for name in ("api_version", "kind", "namespace", "name", "uid", "field_path"):
        assert group() != group(**{name: "other"})
    one = event()
    for name in ("controller", "type", "reason", "action"):
        assert replace(one, **{name: "Other"}).group != one.group
    assert replace(one, related=one.regarding).group != one.group
    assert replace(one, note="other").group == one.group


def test_a_reference_has_the_identity_of_its_object() -> None:
    metadata = {"name": "a", "namespace": "shop", "uid": "1", "resourceVersion": "7"}
    obj = Unstructured({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    assert Reference.of(obj, field_path="spec") == Reference(
        api_version="apps/v1", kind="Deployment", namespace="shop", name="a", uid="1", resource_version="7",
        field_path="spec",
    )  # fmt: skip
    assert Reference.of(obj).field_path == ""


# The schedule


def series(name: str = "a") -> Series:
    return Series(event(name=name), "note", 0.0)


async def test_series_are_due_in_the_order_of_their_times() -> None:
    schedule, first, second = SeriesSchedule(), series(), series()
    schedule.add(second, 20.0)
    schedule.add(first, 10.0)
    schedule.add(first, 30.0)  # later: the earlier time counts
    assert schedule.pop(9.9) is None
    assert schedule.pop(10.0) is first
    assert schedule.pop(19.9) is None
    schedule.add(second, 15.0)
    assert schedule.pop(15.0) is second
    assert schedule.pop(1000.0) is None, "each series once"
    schedule.add(second, 50.0)
    second.dropped = True
    assert schedule.pop(1000.0) is None
    schedule.add(first, 60.0)
    schedule.clear()
    assert schedule.pop(1000.0) is None


async def test_a_wait_ends_when_a_series_is_due_or_added_or_at_a_notification() -> None:
    schedule, clock = SeriesSchedule(), asyncio.get_running_loop().time
    schedule.add(series(), 10.0)
    await schedule.wait()  # for the addition
    await schedule.wait()
    assert clock() == 10.0
    task = asyncio.create_task(schedule.wait())
    schedule.clear()
    await asyncio.sleep(5)
    schedule.notify()
    await task
    assert clock() == 15.0
    task = asyncio.create_task(schedule.wait())
    await asyncio.sleep(5)
    assert not task.done()
    schedule.add(series(), 100.0)
    await task
    assert clock() == 20.0


def test_events_whose_only_series_has_expired_begin_again() -> None:
    events, evicted = correlator(messages=1)
    old = events.create(event("a"), 0.0)
    new = events.create(event("b"), 361.0)
    assert (evicted, new.text) == ([old], "b")
    assert events.count(event("b"), 362.0) is new
