"""Durations: encoded unchanged, parsed and printed as Go does."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.durations import Duration

lengths = st.integers(-(2**63), 2**63 - 1)

# What Go prints for each text.
PRINTED = {
    "0": "0s", "-0": "0s", "0s": "0s", "1ns": "1ns", "1us": "1µs", "1µs": "1µs", "1\u03bcs": "1µs", "1100ns": "1.1µs",
    "100ms": "100ms", "1.5s": "1.5s", "1500ms": "1.5s", "60s": "1m0s", "90m": "1h30m0s", "1h": "1h0m0s",
    "1h2m3.5s": "1h2m3.5s", "-1m": "-1m0s", "+5s": "5s", ".5s": "500ms", "1.s": "1s", "0.1h": "6m0s", "1m1m": "2m0s",
    "1.0000000001s": "1s", "0.3333333333333333333h": "20m0s", "2562047h47m16.854775807s": "2562047h47m16.854775807s",
    "-9223372036854775808ns": "-2562047h47m16.854775808s", "0.9223372036854775807h": "55m20.413933267s",
}  # fmt: skip


@pytest.mark.parametrize(("text", "printed"), PRINTED.items())
def test_it_is_printed_as_go_prints_it(text: str, printed: str) -> None:
    assert Duration(text).canonical() == printed


@given(lengths)
def test_every_length_is_read_back_from_its_text(nanoseconds: int) -> None:
    text = Duration.of(nanoseconds=nanoseconds).canonical()

    # A fraction of nine digits is the most that Go prints, and so many are exact.
    assert Duration(text).nanoseconds == nanoseconds
    assert Duration(text).canonical() == text


@given(lengths, lengths)
def test_order_equality_and_hash_are_those_of_the_length(left: int, right: int) -> None:
    one, other = Duration.of(nanoseconds=left), Duration.of(nanoseconds=right)

    assert (one < other) == (left < right) == (other > one)
    assert (one <= other) == (left <= right) == (other >= one)
    assert (one == other) == (left == right)
    assert hash(one) == hash(Duration(str(one)))


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_a_timedelta_comes_back(span: timedelta) -> None:
    assert Duration.of(span).to_timedelta() == span


def test_a_timedelta_is_cut_towards_zero() -> None:
    assert Duration.of(nanoseconds=1999).to_timedelta() == timedelta(microseconds=1)
    assert Duration.of(nanoseconds=-1999).to_timedelta() == timedelta(microseconds=-1)


def test_seconds_are_for_timeouts() -> None:
    assert Duration("1m30.5s").seconds == 90.5


def test_a_decoded_text_is_encoded_unchanged() -> None:
    assert Duration.from_wire("60m").to_wire() == "60m"
    assert Duration.from_wire("60m") == Duration("1h")
    assert str(Duration.from_wire("60m")) == "60m"
    assert Duration.of(timedelta(hours=1)).to_wire() == "1h0m0s"


def test_an_invalid_text_is_encoded_unchanged_and_raises_when_its_length_is_used() -> None:
    odd = Duration.from_wire("soon")

    assert odd.to_wire() == "soon"
    assert odd == Duration.from_wire("soon")
    assert odd != Duration("1s")
    with pytest.raises(ValueError, match="'soon' is not a duration"):
        _ = odd.nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "+", "-", "3", "s", ".s", "1", "1d", "1 s", "1s ", "--1s", "1h-1m", "1e3s", "9223372036854775808ns",
     "2562048h", "-9223372036854775809ns", "1S", "9" * 5000 + "s", "٣s"],
)  # fmt: skip
def test_an_invalid_duration_raises(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Duration(text)


def test_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a duration as str, got int"):
        Duration.from_wire(5)
    with pytest.raises(TypeError, match=r"Duration\('90s'\)"):
        Duration(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _ = Duration("1s") < 5  # type: ignore[operator]


def test_a_length_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        Duration.of(nanoseconds=2**63)


def test_copies_are_equal() -> None:
    duration = Duration.from_wire("90m")

    for again in (copy.copy(duration), copy.deepcopy(duration), pickle.loads(pickle.dumps(duration))):
        assert again == duration
        assert again.to_wire() == "90m"
