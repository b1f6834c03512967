"""Quantities: encoded unchanged, parsed exactly, printed as the server does."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from konverge.objects.quantities import Quantity

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {
    suffix: Fraction(10) ** power
    for suffix, power in zip(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], range(-9, 19, 3), strict=True)
}

# What a 1.36 server prints for each text.
PRINTED = {
    "0": "0", "-0": "0", "00": "0", "0Mi": "0", "0.000": "0", "0e3": "0", "0m": "0",
    "1": "1", "1000m": "1", "1500m": "1500m", "0.5": "500m", "1.5": "1500m", "-0.5": "-500m", ".5": "500m", "1.": "1.",
    "1.50": "1500m", "1.500": "1.500", "0.500": "500m", "+5": "+5", "0100": "0100", "100000": "100k", "1.G": "1.G",
    "1000": "1k", "1001": "1001", "1000k": "1M", "1234567890": "1234567890", "12345678900": "12345678900",
    "1n": "1n", "0.9n": "1n", "-0.1n": "-1n", "1.0000000001": "1000000001n", "1000u": "1m", "0.000001": "1u",
    "1Ki": "1Ki", "1024Ki": "1Mi", "1024Mi": "1Gi", "1.5Gi": "1536Mi", "0.5Ki": "512", "0.5Gi": "512Mi",
    "1.1Ki": "1126400m",
    "8Mi": "8Mi", "+8Mi": "8Mi", "+7Mi": "+7Mi", "0.1Ki": "102400m", "0.0001Ki": "102400u", "1000Ki": "1000Ki",
    "7Ei": "7Ei", "8Ei": "9223372036854775807", "-8Ei": "-9223372036854775807", "8192Pi": "9223372036854775807",
    "1e3": "1e3", "1E3": "1E3", "1e4": "10e3", "1.5e3": "1500", "1000e0": "1e3", "1E+6": "1E+6",
    "1e-10": "1e-9", "12e-10": "2e-9",
    "9223372036854775807": "9223372036854775807", "9223372036854775808": "9223372036854775808",
    "18446744073709551616": "18446744073709551616", "999E": "999E", "1000e18": "1e21",
}  # fmt: skip


def digits(least: int, most: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=least, max_size=most)


numbers = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["", "+", "-"]), digits(1, 22)),
    st.builds("{}{}.{}".format, st.sampled_from(["", "+", "-"]), digits(1, 22), digits(0, 14)),
    st.builds("{}.{}".format, st.sampled_from(["", "+", "-"]), digits(1, 14)),
)
powers = st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-15, 25))
texts = st.builds("{}{}".format, numbers, st.one_of(st.sampled_from([*DECIMAL, *BINARY]), powers))
quantities = texts.map(Quantity)
nano_values = st.integers(-(10**30), 10**30).map(lambda nanos: Fraction(nanos, 10**9))


def worth(text: str) -> Fraction:
    """Work out the value of a text the slow way, as an oracle for the fast one."""
    suffix = text.lstrip("+-.0123456789")
    number = text[: len(text) - len(suffix)]
    if suffix in BINARY:
        cap = 2**63 - 1
        return max(min(nano_rounded(Fraction(number.rstrip(".")) * BINARY[suffix]), Fraction(cap)), Fraction(-cap))
    unit = DECIMAL[suffix] if suffix in DECIMAL else Fraction(10) ** int(suffix[1:])
    return nano_rounded(Fraction(number.rstrip(".")) * unit)


def nano_rounded(value: Fraction) -> Fraction:
    nanos = abs(value) * 10**9
    away = Fraction(-(-nanos.numerator // nanos.denominator), 10**9)
    return away if value > 0 else -away


@pytest.mark.parametrize(("text", "printed"), PRINTED.items())
def test_it_is_printed_as_the_server_prints_it(text: str, printed: str) -> None:
    assert Quantity(text).canonical() == printed


@given(st.builds("{}{}".format, numbers, st.sampled_from([*DECIMAL, *BINARY])))
def test_the_value_is_exact_but_for_nano_and_cap(text: str) -> None:
    assert Fraction(Quantity(text).value) == worth(text)


@given(numbers, st.integers(-15, 25))
def test_an_exponent_is_exact_too(number: str, power: int) -> None:
    exact = Fraction(number.rstrip(".")) * Fraction(10) ** power

    assert Fraction(Quantity(f"{number}e{power}").value) == nano_rounded(exact)


@given(quantities)
def test_the_canonical_form_has_the_same_value(quantity: Quantity) -> None:
    assert Quantity(quantity.canonical()) == quantity


@given(quantities)
def test_the_canonical_form_is_its_own_canonical_form(quantity: Quantity) -> None:
    assert Quantity(quantity.canonical()).canonical() == quantity.canonical()


@given(quantities, quantities)
def test_sums_and_differences_are_exact(left: Quantity, right: Quantity) -> None:
    assert Fraction((left + right).value) == Fraction(left.value) + Fraction(right.value)
    assert Fraction((left - right).value) == Fraction(left.value) - Fraction(right.value)
    assert left + right - right == left


@given(quantities, st.integers(-(10**12), 10**12))
def test_products_with_whole_numbers_are_exact(quantity: Quantity, factor: int) -> None:
    assert Fraction((quantity * factor).value) == Fraction(quantity.value) * factor
    assert factor * quantity == quantity * factor


@given(quantities, quantities)
def test_computed_quantities_are_read_back_equal(left: Quantity, right: Quantity) -> None:
    assert Quantity(str(left + right)) == left + right
    assert Quantity(str(-left)) == -left
    assert Quantity(str(left * 1024)) == left * 1024


@given(quantities, quantities)
def test_order_and_equality_are_those_of_the_value(left: Quantity, right: Quantity) -> None:
    assert (left < right) == (left.value < right.value) == (right > left)
    assert (left <= right) == (left.value <= right.value) == (right >= left)
    assert (left == right) == (left.value == right.value)


@given(nano_values)
def test_equal_values_hash_alike_whatever_they_are_written_as(value: Fraction) -> None:
    decimal, binary = Quantity.of(value), Quantity.of(value, binary=True)

    assert decimal == binary == value
    assert hash(decimal) == hash(binary) == hash(value)
    assert Quantity(str(decimal)) == Quantity(str(binary)) == value


def test_different_texts_of_one_value_are_equal() -> None:
    assert len({Quantity("1"), Quantity("1000m"), Quantity("1e0"), Quantity("1.0"), Quantity.of(1)}) == 1
    assert Quantity("1Gi") == Quantity("1024Mi") == 2**30
    assert Quantity("1") != "1"


def test_a_sum_keeps_the_suffixes_of_the_left_side() -> None:
    assert str(Quantity("1Gi") + Quantity("1G")) == str(Quantity.of(2**30 + 10**9, binary=True))
    assert str(Quantity("512Mi") + Quantity("512Mi")) == "1Gi"
    assert str(Quantity("0") + Quantity("1Gi")) == "1Gi"
    assert str(Quantity("1Gi") + Quantity("100m")) == "1073741824100m"
    assert str(sum([Quantity("100m"), Quantity("400m"), Quantity("1")])) == "1500m"


def test_a_sum_beyond_the_binary_cap_is_printed_without_loss() -> None:
    assert str(Quantity("7Ei") * 2) == str(14 * 2**60)


def test_whole_and_milli_round_away_from_zero() -> None:
    assert Quantity("1.5Gi").whole() == 1536 * 2**20
    assert Quantity("100m").whole() == 1
    assert Quantity("-100m").whole() == -1
    assert Quantity("1.5").milli() == 1500
    assert Quantity("1u").milli() == 1


@pytest.mark.parametrize(
    "text",
    ["", " ", "+", ".", "m", "Gi", "e5", "1 Gi", "1gi", "1KB", "1mm", "1e", "1E+", "1ee3", "0x10", "1_000", "٣", "--1",
     "1.2.3", "NaN", "Infinity", "1e1000000001", "1e99999999999999999999", "9" * 1001, "0" * 50_000 + "x", "1Ki\n"],
)  # fmt: skip
def test_an_invalid_quantity_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|exponent"):
        Quantity(text)


def test_a_float_is_refused_since_it_is_not_exact() -> None:
    with pytest.raises(TypeError, match=r"Quantity\('0.5'\)"):
        Quantity(0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not exact"):
        Quantity.of(0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _ = Quantity("1") < 0.5  # type: ignore[operator]
    with pytest.raises(TypeError):
        Quantity("1") * 0.5  # type: ignore[operator]


def test_a_value_finer_than_nano_is_not_rounded_silently() -> None:
    with pytest.raises(ValueError, match="round it first"):
        Quantity.of(Fraction(1, 3))
    with pytest.raises(ValueError, match="round it first"):
        Quantity.of(Decimal("1e-10"))


def test_a_huge_exponent_costs_neither_time_nor_memory() -> None:
    huge = Quantity("3e999999999")

    assert huge.canonical() == "3e999999999"
    assert huge > Quantity("1e999999998")
    assert hash(huge) == hash(Quantity("30e999999998"))
    with pytest.raises(OverflowError, match="differ too much"):
        huge + Quantity("1")


class Box(msgspec.Struct):
    amounts: dict[str, Quantity]


def read_value(type_: type[Any], wire: object) -> Any:
    return type_.from_wire(wire)


def write_value(value: Any) -> Any:
    return value.to_wire()


@given(st.one_of(texts, st.text(max_size=10), st.integers(-(2**63), 2**63 - 1)))
def test_a_decoded_text_is_encoded_unchanged(wire: str | int) -> None:
    data = json.dumps({"amounts": {"cpu": wire}}, ensure_ascii=False, separators=(",", ":")).encode()
    assume(msgspec.json.encode(json.loads(data)) == data)

    box = msgspec.json.decode(data, type=Box, dec_hook=read_value)

    assert msgspec.json.encode(box, enc_hook=write_value) == data


def test_numbers_are_quantities_too() -> None:
    box = msgspec.json.decode(b'{"amounts":{"a":1,"b":0.5,"c":1e22," d":" 5 "}}', type=Box, dec_hook=read_value)

    assert [quantity.canonical() for quantity in box.amounts.values()] == ["1", "500m", "10e21", "5"]


@pytest.mark.parametrize("wire", ["true", "[]", "{}", "null"])
def test_another_type_on_the_wire_is_refused_with_its_path(wire: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"at `\$.amounts\[...\]`"):
        msgspec.json.decode(f'{{"amounts":{{"cpu":{wire}}}}}', type=Box, dec_hook=read_value)


def test_an_invalid_text_is_encoded_unchanged_and_raises_when_its_value_is_used() -> None:
    odd = Quantity.from_wire("a lot")

    assert odd.to_wire() == "a lot"
    assert odd == Quantity.from_wire("a lot")
    assert odd != Quantity("1")
    assert hash(odd) == hash(Quantity.from_wire("a lot"))
    with pytest.raises(ValueError, match="'a lot' is not a quantity"):
        _ = odd.value


@given(texts)
@settings(max_examples=50)
def test_copies_are_equal(text: str) -> None:
    quantity = Quantity.from_wire(text)

    for again in (copy.copy(quantity), copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert again == quantity
        assert again.to_wire() == text
