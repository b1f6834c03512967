"""The values at the ends of the Go structs: times, amounts, base64."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster.builtins.unmarshal_errors import UnmarshalError
from konverge_cluster.builtins.scalars import int_reader, read_bytes, special_reader
from konverge_cluster.builtins.timestamps import read_micro_time, read_time


@given(st.datetimes(min_value=datetime(1000, 1, 2), max_value=datetime(9998, 1, 1)), st.integers(-720, 720))
def test_a_time_of_any_zone_is_read_as_the_same_moment(moment: datetime, minutes: int) -> None:
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert datetime.fromisoformat(read_micro_time(there.isoformat(timespec="microseconds"))) == there
    assert datetime.fromisoformat(read_time(there.isoformat())) == there.astimezone(UTC).replace(microsecond=0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2026-01-01", 'parsing time "2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2026-01-01T00:00", 'parsing time "2026-01-01T00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as ":"'),
        ("2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        ("2026-02-30T00:00:00Z", 'parsing time "2026-02-30T00:00:00Z": day out of range'),
        ("2026-02-03T25:00:00Z", 'parsing time "2026-02-03T25:00:00Z": hour out of range'),
        ("2026-02-03T01:00:00Zx", 'parsing time "2026-02-03T01:00:00Zx": extra text: "x"'),
    ],
)  # fmt: skip
def test_a_text_that_is_no_time_is_refused_in_the_words_of_go(text: str, said: str) -> None:
    with pytest.raises(UnmarshalError) as caught:
        read_time(text)

    assert caught.value.text == said


def test_a_micro_time_has_six_decimals() -> None:
    with pytest.raises(UnmarshalError, match="cannot parse"):
        read_micro_time("2026-01-01T00:00:00Z")
    assert read_micro_time("2026-01-01T00:00:00.000000Z") == "2026-01-01T00:00:00.000000Z"


@given(st.binary())
def test_bytes_come_back_as_they_were_sent(content: bytes) -> None:
    text = base64.b64encode(content).decode()

    assert read_bytes(text) == text
    assert read_bytes("\n".join(text)) == text


@pytest.mark.parametrize(
    ("text", "byte"),
    [("A", 0), ("AAAA=", 4), ("AA=A", 2), ("AA!A", 2), ("AAAAA", 4), ("AA=", 3), ("=AAA", 0), ("é", 0)],
)
def test_what_is_no_base64_is_refused_where_go_stops(text: str, byte: int) -> None:
    with pytest.raises(UnmarshalError) as caught:
        read_bytes(text)

    assert caught.value.text == f"illegal base64 data at input byte {byte}"


@pytest.mark.parametrize(
    ("sent", "printed"), [("1000m", "1"), ("1024Mi", "1Gi"), (2, "2"), (0.5, "500m"), (" 1 ", "1"), ("1e3", "1e3")]
)
def test_amounts_are_canonical(sent: object, printed: str) -> None:
    assert special_reader("resource.Quantity")(sent) == printed


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("x", "quantities must match"),
        (True, "quantities must match"),
        ({}, "quantities must match"),
        ("1Zi", "quantit"),
    ],
)
def test_what_is_no_amount_is_refused(sent: object, said: str) -> None:
    with pytest.raises(UnmarshalError, match=said):
        special_reader("resource.Quantity")(sent)


@given(st.integers())
def test_numbers_fit_into_their_bits(number: int) -> None:
    read = int_reader(32, "int32")

    if -(2**31) <= number < 2**31:
        assert read(number) == number
    else:
        with pytest.raises(UnmarshalError):
            read(number)
