from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire import retry_after, warning_texts


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("9" * 400, None),
        ("nan", None),
    ],
)
def test_the_server_says_in_seconds_how_long_to_wait(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}) == seconds


def test_a_date_is_compared_with_the_servers_own_clock() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert retry_after(headers) == 30


def test_zones_of_dates_count() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 09:28:30 +0200", "date": "Wed, 21 Oct 2015 07:28:00 -0000"}
    assert retry_after(headers) == 30


def test_a_date_in_the_past_means_now() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 07:00:00 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert retry_after(headers) == 0


def test_without_the_servers_clock_a_date_says_nothing() -> None:
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}) is None
    assert retry_after({}) is None


def test_warnings_are_unquoted_in_order() -> None:
    values = (
        '299 - "unknown field \\"spec.foo\\""',
        '299 - "a, b", 299 kube "back\\\\slash" "Wed, 21 Oct 2015 07:28:00 GMT"',
    )
    assert warning_texts(values) == ('unknown field "spec.foo"', "a, b", "back\\slash")


@pytest.mark.parametrize(
    "value", ["", "299", '299 - "open', '110 - "Response is Stale"', '299 - ""', "hello", '2999 - "x"']
)
def test_what_is_no_warning_for_people_says_nothing(value: str) -> None:
    assert warning_texts([value]) == ()


@given(st.text(), st.text())
def test_no_header_raises(first: str, second: str) -> None:
    seconds = retry_after({"retry-after": first, "date": second})
    assert seconds is None or seconds >= 0
    assert all(warning_texts([first, f'299 - "{second}"']))
