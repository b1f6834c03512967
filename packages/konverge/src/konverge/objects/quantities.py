"""Resource quantities: "500m", "1.5Gi", "1e3".

The wire form is a string, and most quantities are decoded and encoded without being used. So a decoded `Quantity` keeps
its text and parses it on first use. Rules:

1. Values are exact decimals, never floats. An inexact result raises; nothing is rounded silently.
2. A text is parsed and printed as the server does it, including its oddities: a value finer than nano is rounded away
   from zero, a binary amount is capped at 2**63 - 1, "1.50" becomes "1500m" but "1.500" is unchanged.
3. There are three differences, where the server changes the value silently: decimal amounts of 1000E and more are
   printed with an exponent ("1e21"; a 1.36 server prints "1", later ones print it too); an exponent beyond a thousand
   million and a text without digits ("Gi", 0 for the server) raise ValueError.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal, Inexact, InvalidOperation, Overflow
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

__all__ = ["Quantity", "QuantityText"]

Number: TypeAlias = int | Decimal | Fraction

if TYPE_CHECKING:
    QuantityText: TypeAlias = str
else:
    # A server always sends a string. A manifest may contain `cpu: 1`, which is accepted.
    QuantityText = str | int | float
"""A quantity in the built-in kinds: a string. `Quantity(text)` is for calculations."""

_DECIMAL: Final = "decimal"
_BINARY: Final = "binary"
_EXPONENT: Final = "exponent"

_DECIMAL_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_POWERS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {power: suffix for suffix, power in _DECIMAL_POWERS.items()}
_BINARY_SUFFIXES: Final = ("", *_BINARY_POWERS)

# Possessive, so that a long text without a match costs no more than one with a match.
_PATTERN: Final = re.compile(r"([+-]?+)(0*+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)", re.ASCII)
_EXPONENT_SUFFIX: Final = re.compile(r"[eE]([+-]?[0-9]{1,18})", re.ASCII)

_MAX: Final = Decimal(2**63 - 1)
_ZERO: Final = Decimal(0)
_NANO: Final = Decimal("1e-9")
_MIN_SCALE: Final = -9
_MAX_EXPONENT: Final = 1_000_000_000
_MAX_DIGITS: Final = 1000
# Up to here the server parses a text into an integer; only then may it print the text unchanged.
_MACHINE_DIGITS: Final = 18
_MACHINE_BINARY_DIGITS: Final = 14

_TO_NANO: Final = Context(prec=10_000, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_UP, traps=[InvalidOperation])
_EXACT: Final = Context(prec=10_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])

_blank = object.__new__


class _Amount(NamedTuple):
    """A parsed text: the value, the family of suffixes, and the text if the server prints it unchanged."""

    value: Decimal
    family: str
    text: str | None = None


class Quantity:
    """An exact amount with a suffix, such as "500m", "1536Mi" or "1e3".

    Promises:

    - a decoded quantity is encoded with the same text; `canonical` is the text that the server prints;
    - equality, order and hash are those of the value: `Quantity("1000m") == Quantity("1") == 1`;
    - arithmetic is exact, and its result has the family of suffixes of the left side (of the right if left is 0);
    - `Quantity(q.canonical()) == q`, and `canonical` of a canonical text is that text.

    Measured with msgspec 0.22 on a `dict[str, Quantity]`: an entry is decoded in 0.28 us and encoded in 0.15 us, a
    plain str in 0.05 and 0.02 us, and a Pod has about eight. A subclass of str costs the same, since msgspec passes
    that to the hook too, and it could not be equal by value and a str at the same time.
    """

    __slots__ = ("_amount", "_wire")
    _wire: str | int | float | None
    _amount: _Amount | None

    def __init__(self, text: str | int) -> None:
        """Parse the text (or integer).

        Raises: ValueError when it is not a quantity; TypeError for a float, which is not exact.
        """
        if isinstance(text, bool) or not isinstance(text, (str, int)):
            raise TypeError(
                f"expected str or int, got {type(text).__name__} (write Quantity('0.5'), or Quantity.of(...))"
            )
        self._wire = text
        self._amount = _parse(str(text))

    @classmethod
    def of(cls, value: Number, *, binary: bool = False) -> Quantity:
        """Return the quantity of this value, printed with Ki, Mi, Gi ... if `binary`.

        Raises: ValueError when the value is finer than nano.
        """
        return cls._from_amount(_Amount(_nano_exact(value), _BINARY if binary else _DECIMAL))

    @classmethod
    def from_wire(cls, wire: object) -> Quantity:
        """Return the quantity of a decoded JSON string or number, without parsing it.

        Raises: TypeError for any other type.
        """
        if type(wire) is not str and type(wire) is not int and type(wire) is not float:
            raise TypeError(f"expected a quantity as str or number, got {type(wire).__name__}")
        quantity: Quantity = _blank(cls)
        quantity._wire = wire
        quantity._amount = None
        return quantity

    @classmethod
    def _from_amount(cls, amount: _Amount) -> Quantity:
        quantity: Quantity = _blank(cls)
        quantity._wire = None
        quantity._amount = amount
        return quantity

    def to_wire(self) -> str | int | float:
        """Return the decoded value unchanged; for a computed quantity, its canonical text."""
        if self._wire is None:
            self._wire = self.canonical()
        return self._wire

    @property
    def value(self) -> Decimal:
        """The exact value.

        Raises: ValueError when the decoded text is not a quantity.
        """
        return self._read_amount().value

    def canonical(self) -> str:
        """Return the text that the server prints for this quantity."""
        amount = self._read_amount()
        return _print(amount) if amount.text is None else amount.text

    def whole(self) -> int:
        """Return the value in whole units, rounded away from zero: bytes of memory, pods, cores."""
        return int(self.value.to_integral_value(ROUND_UP))

    def milli(self) -> int:
        """Return the value in thousandths, rounded away from zero: millicores."""
        return int(self.value.scaleb(3, _EXACT).to_integral_value(ROUND_UP))

    def _read_amount(self) -> _Amount:
        if self._amount is None:
            self._amount = _parse(str(self._wire).strip(" \t\r\n"))
        return self._amount

    def _identity(self) -> Decimal | str:
        # A comparison of two objects must not fail because one has an invalid text.
        try:
            return self.value
        except ValueError:
            return str(self._wire)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity):
            return self._identity() == other._identity()
        if isinstance(other, (int, Decimal, Fraction)):
            return self._identity() == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __lt__(self, other: Quantity | Number) -> bool:
        return self.value < value if (value := _value_of(other)) is not None else NotImplemented

    def __le__(self, other: Quantity | Number) -> bool:
        return self.value <= value if (value := _value_of(other)) is not None else NotImplemented

    def __gt__(self, other: Quantity | Number) -> bool:
        return self.value > value if (value := _value_of(other)) is not None else NotImplemented

    def __ge__(self, other: Quantity | Number) -> bool:
        return self.value >= value if (value := _value_of(other)) is not None else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.value)

    def __add__(self, other: Quantity | Number) -> Quantity:
        right = _amount_of(other)
        return NotImplemented if right is None else _sum(self._read_amount(), right)

    def __radd__(self, other: Number) -> Quantity:
        left = _amount_of(other)
        return NotImplemented if left is None else _sum(left, self._read_amount())

    def __sub__(self, other: Quantity | Number) -> Quantity:
        right = _amount_of(other)
        return NotImplemented if right is None else _sum(self._read_amount(), _negated(right))

    def __rsub__(self, other: Number) -> Quantity:
        left = _amount_of(other)
        return NotImplemented if left is None else _sum(left, _negated(self._read_amount()))

    def __neg__(self) -> Quantity:
        return Quantity._from_amount(_negated(self._read_amount()))

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        value, family, _ = self._read_amount()
        return Quantity._from_amount(_Amount(_EXACT.multiply(value, Decimal(factor)), family))

    __rmul__ = __mul__

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    def __str__(self) -> str:
        return str(self.to_wire())

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


class _Parts(NamedTuple):
    """The parts of a text: leading zeros are not part of `whole`."""

    text: str
    sign: str
    whole: str
    fraction: str

    def value(self, exponent: int) -> Decimal:
        return Decimal(f"{self.sign}{self.whole}.{self.fraction or 0}e{exponent}")


def _parse(text: str) -> _Amount:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise _invalid(text)
    sign, zeros, whole, fraction, suffix = match.groups(default="")
    if not (zeros or whole or fraction):
        raise _invalid(text)
    if len(whole) + len(fraction) > _MAX_DIGITS:
        raise ValueError(f"a quantity has at most {_MAX_DIGITS} digits, got {text[:20]!r}...")
    parts = _Parts(text, sign, whole, fraction)
    if suffix in _DECIMAL_POWERS:
        return _parse_decimal(parts, _DECIMAL_POWERS[suffix], _DECIMAL)
    if suffix in _BINARY_POWERS:
        return _parse_binary(parts, _BINARY_POWERS[suffix])
    return _parse_decimal(parts, _parse_exponent(text, suffix), _EXPONENT)


def _parse_exponent(text: str, suffix: str) -> int:
    match = _EXPONENT_SUFFIX.fullmatch(suffix)
    if match is None:
        raise _invalid(text)
    exponent = int(match[1])
    if abs(exponent) > _MAX_EXPONENT:
        raise ValueError(f"the exponent of {text!r} is beyond {_MAX_EXPONENT}: it would overflow on the server")
    return exponent


def _parse_decimal(parts: _Parts, exponent: int, family: str) -> _Amount:
    scale = exponent - len(parts.fraction)
    value = parts.value(exponent)
    if scale < _MIN_SCALE:
        return _Amount(value.quantize(_NANO, context=_TO_NANO) if value else _ZERO, family)
    digits = parts.whole + parts.fraction
    unchanged = parts.whole != "" and len(digits) <= _MACHINE_DIGITS and scale % 3 == 0 and not digits.endswith("000")
    return _Amount(value, family, parts.text if unchanged else None)


def _parse_binary(parts: _Parts, power: int) -> _Amount:
    value = _EXACT.multiply(parts.value(0), Decimal(1 << power))
    # The server's estimate of what fits into an integer: each 2**10 takes three of the digits.
    if not parts.fraction and len(parts.whole or "0") <= _MACHINE_BINARY_DIGITS - power * 3 // 10:
        odd = int(parts.whole or "0") % 8 != 0
        return _Amount(value, _BINARY, parts.text if odd else None)
    if value and len(parts.fraction) > -_MIN_SCALE:
        value = value.quantize(_NANO, context=_TO_NANO)
    if abs(value) > _MAX:
        value = _MAX.copy_sign(value)
    return _Amount(value, _DECIMAL if 0 < abs(value) < 1 else _BINARY)


def _invalid(text: str) -> ValueError:
    excerpt = text if len(text) <= 40 else text[:40] + "..."
    return ValueError(f"{excerpt!r} is not a quantity (write a number and a suffix, such as '500m', '1.5Gi' or '1e3')")


def _print(amount: _Amount) -> str:
    value, family, _ = amount
    if not value:
        return "0"
    if family == _BINARY and 1024 <= value.copy_abs() <= _MAX and value == value.to_integral_value():
        return _print_binary(int(value))
    # A binary amount that is small, fractional or beyond the server's cap is exact in the decimal family.
    return _print_decimal(value, family)


def _print_binary(value: int) -> str:
    step = 0
    while value % 1024 == 0:
        value //= 1024
        step += 1
    return f"{value}{_BINARY_SUFFIXES[step]}"


def _print_decimal(value: Decimal, family: str) -> str:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    significant = text.rstrip("0")
    exponent += len(text) - len(significant)
    padding = exponent % 3
    exponent -= padding
    suffix = f"e{exponent}" if exponent else ""
    if family != _EXPONENT:
        suffix = _DECIMAL_SUFFIXES.get(exponent, suffix)
    return f"{'-' if sign else ''}{significant}{'0' * padding}{suffix}"


def _nano_exact(value: Number) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, Fraction)):
        raise TypeError(f"expected int, Decimal or Fraction, got {type(value).__name__} (a float is not exact)")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError(f"{value} is not a finite number")
    nanos = Fraction(value) * 10**9
    if nanos.denominator != 1:
        raise ValueError(f"{value} is finer than nano (round it first)")
    return Decimal(nanos.numerator).scaleb(_MIN_SCALE, _EXACT)


def _value_of(other: object) -> Number | None:
    if isinstance(other, Quantity):
        return other.value
    return other if isinstance(other, (int, Decimal, Fraction)) else None


def _amount_of(other: object) -> _Amount | None:
    if isinstance(other, Quantity):
        return other._read_amount()
    return _Amount(_nano_exact(other), _DECIMAL) if isinstance(other, (int, Decimal, Fraction)) else None


def _sum(left: _Amount, right: _Amount) -> Quantity:
    try:
        value = _EXACT.add(left.value, right.value)
    except Inexact as error:
        raise OverflowError("the sum of the quantities is not exact: their magnitudes differ too much") from error
    return Quantity._from_amount(_Amount(value, left.family if left.value else right.family))


def _negated(amount: _Amount) -> _Amount:
    return _Amount(amount.value.copy_negate(), amount.family)
