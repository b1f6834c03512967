"""Buckets and series as values, without a server."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects import MicroTime
from konverge.reconcile.event_limits import Allowance, EventLimits, Share, TokenBucket
from konverge.reconcile.event_series import EventBook, Reference, Said, Series

steps = st.lists(st.floats(0, 400), min_size=1, max_size=200)


@settings(max_examples=100)
@given(st.integers(1, 30), st.floats(0.1, 100), steps)
def test_a_bucket_gives_no_more_than_it_holds_and_regains(burst: int, refill: float, pauses: list[float]) -> None:
    bucket = TokenBucket(burst, refill, 0.0)
    now, taken = 0.0, []
    for pause in pauses:
        now += pause
        while not bucket.wait(now):
            bucket.take(now)
            taken.append(now)
    for start in set(taken):
        window = [moment for moment in taken if start <= moment <= start + 300]
        assert len(window) <= burst + 300 / refill + 1e-6


@settings(max_examples=100)
@given(st.integers(1, 30), st.floats(0.1, 100), st.sampled_from(Share))
def test_after_the_wait_there_is_a_token(burst: int, refill: float, share: Share) -> None:
    bucket = TokenBucket(burst, refill, 0.0)
    for _ in range(burst):
        bucket.take(0.0)
    wait = bucket.wait(0.0, share)
    assert wait > 0
    assert bucket.wait(wait, share) == 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(1, 10.0, 100.0)
    bucket.take(100.0)
    assert bucket.left(50.0) == 0
    bucket.take(110.0)
    assert bucket.left(105.0) == 0


def test_what_matters_less_leaves_the_rest_to_what_matters_more() -> None:
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
def test_buckets_are_forgotten_only_when_they_are_full(asked: list[tuple[int, float]]) -> None:
    limits = EventLimits(total_burst=10_000, object_burst=3, object_refill=60.0)
    allowance = Allowance(limits, 0.0)
    now, granted = 0.0, []
    for about, pause in asked:
        now += pause
        if not allowance.take(about, now, Share.WARNING):
            granted.append((about, now))
    for about, start in granted:
        window = [moment for other, moment in granted if other == about and start <= moment <= start + 300]
        assert len(window) <= 3 + 5


def test_the_number_of_buckets_is_bounded_by_the_writes_that_were_granted() -> None:
    allowance = Allowance(EventLimits(), 0.0)
    most = 0
    for number in range(20_000):
        allowance.take(number, number * 0.5, Share.WARNING)
        most = max(most, len(allowance))
    assert most <= 80 + 25 * 30 / 3 + 10


def said(note: str = "no room", name: str = "a") -> Said:
    about = Reference(api_version="v1", kind="Pod", namespace="shop", name=name)
    return Said("widgets", about, None, "Warning", "Failed", "Failed", note, MicroTime.now())


def book(**limits: int) -> tuple[EventBook, list[Series]]:
    forgotten: list[Series] = []

    def make_room(series: Series) -> None:
        forgotten.append(series)
        made.forget(series)

    made = EventBook(EventLimits(**limits), make_room)
    return made, forgotten


def test_ever_different_words_end_in_one_series_that_says_so() -> None:
    kept, _ = book(similar=3)
    for number in range(100):
        if kept.see(said(f"try {number}"), 0.0) is None:
            kept.open(said(f"try {number}"), 0.0)
    texts = {series.text: series.count for series in kept.all()}
    assert texts == {"try 0": 1, "try 1": 1, "try 2": 1, "(combined from similar events): try 3": 97}


def test_words_that_are_known_are_counted_on_their_own_however_many_there_are() -> None:
    kept, _ = book(similar=2)
    for note in ("a", "b", "c", "d"):
        if kept.see(said(note), 0.0) is None:
            kept.open(said(note), 0.0)
    found = kept.see(said("a"), 1.0)
    assert found is not None
    assert found.text == "a"


def test_old_words_make_room_for_new_ones() -> None:
    kept, _ = book(similar=2)
    kept.open(said("a"), 0.0)
    kept.open(said("b"), 300.0)
    assert kept.see(said("c"), 361.0) is None
    assert kept.open(said("c"), 361.0).text == "c"


def test_an_event_without_words_is_one_of_its_own() -> None:
    kept, _ = book()
    kept.open(said(""), 0.0)
    found = kept.see(said(""), 1.0)
    assert found is not None
    assert found.text == ""


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 15), st.integers(0, 200)), max_size=100))
def test_nothing_is_counted_twice_and_nothing_lost(seen: list[tuple[str, int, int]]) -> None:
    kept, forgotten = book(similar=3, series=5)
    now = 0.0
    for name, note, pause in seen:
        now += pause
        event = said(str(note), name)
        if kept.see(event, now) is None:
            kept.open(event, now)
        assert len(kept) <= 5
    assert sum(series.count for series in [*kept.all(), *forgotten]) == len(seen)
