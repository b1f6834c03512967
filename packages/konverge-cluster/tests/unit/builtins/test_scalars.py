"""Scalar values of the Go structs: times, quantities, base64, integers."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster.builtins.scalars import int_reader, read_bytes, special_reader
from konverge_cluster.builtins.timestamps import read_micro_time, read_time
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError


@given(st.datetimes(min_value=datetime(1000, 1, 2), max_value=datetime(9998, 1, 1)), st.integers(-720, 720))
def test_a_time_in_any_zone_is_converted_to_utc(time: datetime, minutes: int) -> None:
    zoned = time.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert datetime.fromisoformat(read_micro_time(zoned.isoformat(timespec="microseconds"))) == zoned
    assert datetime.fromisoformat(read_time(zoned.isoformat())) == zoned.astimezone(UTC).replace(microsecond=0)


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_an_invalid_time_is_rejected_with_the_text_of_go(text: str, message: str) -> None:
    with pytest.raises(UnmarshalError) as caught:
        read_time(text)

    assert caught.value.text == message


def test_a_micro_time_has_six_decimals() -> None:
    with pytest.raises(UnmarshalError, match="cannot parse"):
        read_micro_time("2026-01-01T00:00:00Z")
    assert read_micro_time("2026-01-01T00:00:00.000000Z") == "2026-01-01T00:00:00.000000Z"


@given(st.binary())
def test_base64_is_returned_without_line_breaks(content: bytes) -> None:
    text = base64.b64encode(content).decode()

    assert read_bytes(text) == text
    assert read_bytes("\n".join(text)) == text


@pytest.mark.parametrize(
    ("text", "byte"),
    [("A", 0), ("AAAA=", 4), ("AA=A", 2), ("AA!A", 2), ("AAAAA", 4), ("AA=", 3), ("=AAA", 0), ("é", 0)],
)
def test_invalid_base64_is_rejected_at_the_offset_of_go(text: str, byte: int) -> None:
    with pytest.raises(UnmarshalError) as caught:
        read_bytes(text)

    assert caught.value.text == f"illegal base64 data at input byte {byte}"


@pytest.mark.parametrize(
    ("value", "canonical"), [("1000m", "1"), ("1024Mi", "1Gi"), (2, "2"), (0.5, "500m"), (" 1 ", "1"), ("1e3", "1e3")]
)
def test_quantities_are_canonical(value: object, canonical: str) -> None:
    assert special_reader("resource.Quantity")(value) == canonical


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("x", "quantities must match"),
        (True, "quantities must match"),
        ({}, "quantities must match"),
        ("1Zi", "quantit"),
    ],
)
def test_an_invalid_quantity_is_rejected(value: object, message: str) -> None:
    with pytest.raises(UnmarshalError, match=message):
        special_reader("resource.Quantity")(value)


@given(st.integers())
def test_integers_must_fit_their_go_type(number: int) -> None:
    read = int_reader(32, "int32")

    if -(2**31) <= number < 2**31:
        assert read(number) == number
    else:
        with pytest.raises(UnmarshalError):
            read(number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0999-12-31T23:00:00-01:00", "1000-01-01T00:00:00Z"),
        ("0042-01-01T00:00:00+01:00", "0041-12-31T23:00:00Z"),
        ("0007-01-01T00:00:00.5Z", "0007-01-01T00:00:00Z"),
    ],
)
def test_a_year_has_four_digits(text: str, expected: str) -> None:
    assert read_time(text) == expected
    assert read_micro_time(text.replace(".5", "").replace(":00:00", ":00:00.000000", 1)).startswith(expected[:-1])


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00.5Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:00:00-02:00"])
def test_a_year_that_python_cannot_represent_is_rejected(text: str) -> None:
    with pytest.raises(UnmarshalError, match="out of range"):
        read_time(text)
