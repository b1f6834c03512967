"""Cron schedules: the times of every form, summer time included, and the errors of the real parser."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.cron_schedules import ScheduleError, find_zone, parse_schedule


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(schedule: str, start: str, count: int = 3) -> list[str]:
    """Return the first times after the start, in UTC."""
    parsed, time, found = parse_schedule(schedule), utc(start), []
    for _ in range(count):
        following = parsed.next(time)
        if following is None:
            break
        time = following
        found.append(time.strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", ["2026-02-27 10:31", "2026-02-27 10:32", "2026-02-27 10:33"]),
        ("@hourly", ["2026-02-27 11:00", "2026-02-27 12:00", "2026-02-27 13:00"]),
        ("@daily", ["2026-02-28 00:00", "2026-03-01 00:00", "2026-03-02 00:00"]),
        ("@weekly", ["2026-03-01 00:00", "2026-03-08 00:00", "2026-03-15 00:00"]),
        ("@monthly", ["2026-03-01 00:00", "2026-04-01 00:00", "2026-05-01 00:00"]),
        ("@yearly", ["2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"]),
        ("*/20 9-10 * * *", ["2026-02-27 10:40", "2026-02-28 09:00", "2026-02-28 09:20"]),
        ("10/25 0 * * *", ["2026-02-28 00:10", "2026-02-28 00:35", "2026-03-01 00:10"]),
        ("0 12 29 2 *", ["2028-02-29 12:00", "2032-02-29 12:00", "2036-02-29 12:00"]),
        ("0 0 * * mon-wed,FRI", ["2026-03-02 00:00", "2026-03-03 00:00", "2026-03-04 00:00"]),
        ("0 0 ? mar,Dec ?", ["2026-03-01 00:00", "2026-03-02 00:00", "2026-03-03 00:00"]),
        ("0 0 31 2 *", []),
        (", 0 1 1 *", []),
        ("@every 90m", ["2026-02-27 12:00", "2026-02-27 13:30", "2026-02-27 15:00"]),
    ],
)
def test_the_times_of_a_schedule(schedule: str, expected: list[str]) -> None:
    assert times(schedule, "2026-02-27 10:30") == expected


def test_one_of_two_restricted_days_is_enough() -> None:
    assert times("0 0 13 * fri", "2026-02-27 10:30") == ["2026-03-06 00:00", "2026-03-13 00:00", "2026-03-20 00:00"]
    assert times("0 0 */2 * fri", "2026-02-27 10:30", 2) == ["2026-03-01 00:00", "2026-03-03 00:00"]
    assert times("0 0 * * fri", "2026-02-27 10:30", 2) == ["2026-03-06 00:00", "2026-03-13 00:00"]


def test_seconds_do_not_hide_a_time() -> None:
    daily = parse_schedule("30 2 * * *")
    assert daily.next(utc("2026-02-27 02:29:59.900")) == utc("2026-02-27 02:30")
    assert daily.next(utc("2026-02-27 02:30:00")) == utc("2026-02-28 02:30")


def test_a_change_to_summer_time_skips_a_time_and_one_to_winter_time_repeats_it() -> None:
    zone = "TZ=Europe/Berlin"
    assert times(f"{zone} 30 2 * * *", "2026-03-27 12:00", 2) == ["2026-03-28 01:30", "2026-03-30 00:30"]
    assert times(f"{zone} 30 2 25 10 *", "2026-10-24 12:00", 2) == ["2026-10-25 00:30", "2026-10-25 01:30"]
    # There is no midnight on this day in Sao Paulo.
    assert times("CRON_TZ=America/Sao_Paulo 0 0 * * *", "2018-11-03 12:00", 1) == ["2018-11-05 02:00"]
    assert times("TZ=America/Sao_Paulo 0 1 4 11 *", "2018-11-03 12:00", 1) == ["2018-11-04 03:00"]


FIELDS = [
    st.sampled_from(["*", "0", "*/15", "7,43", "5-50/9", "30"]),
    st.sampled_from(["*", "0", "2", "1-3", "*/6", "23"]),
    st.sampled_from(["*", "1", "29-31", "*/7", "15"]),
    st.sampled_from(["*", "3", "oct", "2-4", "*/5"]),
    st.sampled_from(["*", "sun", "1-5", "*/3"]),
]


@given(
    st.tuples(*FIELDS).map(" ".join),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),
)
@settings(max_examples=150, deadline=None)
def test_the_next_time_is_the_first_minute_that_matches(schedule: str, zone: str, start: datetime) -> None:
    parsed = parse_schedule(schedule, find_zone(zone))
    begin = start.replace(tzinfo=UTC)
    following = parsed.next(begin)
    end = min(following or begin + timedelta(days=40), begin + timedelta(days=40))
    minute = begin.replace(second=0, microsecond=0) + timedelta(minutes=1)
    first = None
    while minute <= end and first is None:
        first = minute if _matches(schedule, minute.astimezone(ZoneInfo(zone))) else None
        minute += timedelta(minutes=1)
    assert first == (following if following is not None and following <= end else None)


def _matches(schedule: str, local: datetime) -> bool:
    """Report whether a wall-clock time matches, field by field, without any arithmetic of times."""
    minute, hour, day, month, weekday = schedule.split()
    days = _selected(day, 1, 31), _selected(weekday, 0, 6)
    is_day, is_weekday = local.day in days[0], local.isoweekday() % 7 in days[1]
    free = day == "*" or weekday == "*"
    return (
        local.minute in _selected(minute, 0, 59)
        and local.hour in _selected(hour, 0, 23)
        and local.month in _selected(month, 1, 12)
        and ((is_day and is_weekday) if free else (is_day or is_weekday))
    )


@cache
def _selected(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.replace("oct", "10").replace("sun", "0").split(","):
        bounds, _, step = part.partition("/")
        first, _, last = bounds.partition("-")
        start = low if first == "*" else int(first)
        end = high if first == "*" else int(last or first)
        found |= set(range(start, end + 1, int(step or 1)))
    return found


@given(st.tuples(*FIELDS).map(" ".join), st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)))
@settings(max_examples=50, deadline=None)
def test_times_increase(schedule: str, start: datetime) -> None:
    parsed, found = parse_schedule(schedule), [start.replace(tzinfo=UTC)]
    for _ in range(5):
        following = parsed.next(found[-1])
        if following is None:
            break
        found.append(following)
    assert all(earlier < later for earlier, later in pairwise(found))


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every 5x", 'failed to parse duration @every 5x: time: unknown unit "x" in duration "5x"'),
        ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_an_invalid_schedule_has_the_error_of_the_real_parser(schedule: str, error: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        parse_schedule(schedule)
    assert str(raised.value) == error
