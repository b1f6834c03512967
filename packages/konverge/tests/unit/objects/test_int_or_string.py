"""Fields with a number or a string."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.int_or_string import is_percent, percent_errors, scaled


def test_a_number_is_taken_as_it_is() -> None:
    assert scaled(3, 10, round_up=True) == 3


def test_a_percentage_is_rounded_as_asked() -> None:
    assert scaled("25%", 10, round_up=True) == 3
    assert scaled("25%", 10, round_up=False) == 2


@given(st.integers(0, 10**6), st.integers(0, 10**25))
def test_a_share_is_exact_for_every_total(percent: int, total: int) -> None:
    share = Fraction(percent * total, 100)

    assert scaled(f"{percent}%", total, round_up=True) == ceil(share)
    assert scaled(f"{percent}%", total, round_up=False) == floor(share)


@pytest.mark.parametrize("value", ["", "%", "25", "25 %", "a%", "2.5%", "25%%", "٢٥%"])
def test_a_text_that_is_no_percentage_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="write 3 or '25%'"):
        scaled(value, 10, round_up=True)
    assert not is_percent(value)


def test_the_server_takes_no_sign_in_a_percentage() -> None:
    assert percent_errors("-5%") == [
        "a valid percent string must be a numeric string followed by an ending '%' "
        "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
    ]
    assert not is_percent("-5%")


def test_a_plain_percentage_is_one() -> None:
    assert is_percent("25%")
    assert not is_percent(25)
