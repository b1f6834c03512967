"""What a call costs, function by function, as the real server prices it.

Most functions cost one. Those that go through a text cost a tenth of its length, those that go through a list one for
each item, and regular expressions the product of text and pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from konverge_cluster.cel.ranges import MOST, ONE, UNKNOWN, ZERO, Range, fixed
from konverge_cluster.cel.syntax import Literal, Node
from konverge_cluster.cel.types import Type

__all__ = ["Argument", "call_cost"]

TRAVERSAL: Final = 0.1
REGEX: Final = 0.25
_NAME_FORMAT: Final = 128
_LONGEST_FORMAT: Final = 64

Cost = tuple[Range, Range | None]


class Sizes(Protocol):
    def most_at(self, path: tuple[str, ...]) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Argument:
    """What is known about an argument: its expression, its type, its size, and where it comes from."""

    node: Node
    type: Type
    size: Range | None
    path: tuple[str, ...]


class _Call:
    """A call that is being priced."""

    def __init__(self, overload: str, target: Argument | None, args: Sequence[Argument], sizes: Sizes) -> None:
        self.overload = overload
        self.target = target
        self.args = args
        self._sizes = sizes

    def size(self, argument: Argument) -> Range:
        if argument.size is not None:
            return argument.size
        most = self._sizes.most_at(argument.path) if argument.path else None
        return Range(0, most) if most is not None else UNKNOWN

    def item(self, argument: Argument) -> tuple[Type, Range] | None:
        """Type and size of the items of a list."""
        if not argument.type.params:
            return None
        most = self._sizes.most_at((*argument.path, "@items")) if argument.path else None
        return argument.type.params[0], Range(0, most) if most is not None else UNKNOWN

    def whole(self, index: int, default: int) -> int:
        """The value of an argument that is a whole number, if it is written out."""
        value: Any = (
            getattr(self.args[index].node, "value", None) if isinstance(self.args[index].node, Literal) else None
        )
        return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def call_cost(name: str, overload: str, target: Argument | None, args: Sequence[Argument], sizes: Sizes) -> Cost:
    """The cost of a call without that of its arguments, and the size of what it gives (None when nobody asks)."""
    call = _Call(overload, target, args, sizes)
    price = _BY_OVERLOAD.get(overload) or _BY_NAME.get(name)
    found = price(call) if price is not None else None
    return found if found is not None else (ONE, None)


def _nominal(_call: _Call) -> Cost:
    return ONE, None


def _through_first(call: _Call) -> Cost:
    return call.size(call.args[0]).scaled(TRAVERSAL), None


def _through_first_twice(call: _Call) -> Cost:
    return call.size(call.args[0]).scaled(2 * TRAVERSAL), None


def _same_size(call: _Call) -> Cost | None:
    """Goes through the text that it is called on, and gives one of the same length."""
    subject = call.target or (call.args[0] if call.args else None)
    if subject is None:
        return None
    size = call.size(subject)
    return size.scaled(TRAVERSAL), size


def _each_item(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    size, item = call.size(call.target), call.item(call.target)
    if item is None:
        return size.scaled(TRAVERSAL), None
    kind, length = item
    each = ONE.plus(length.scaled(TRAVERSAL)) if kind.kind in ("string", "bytes") else ONE
    return size.times(each), None


def _replace(call: _Call) -> Cost | None:
    if call.target is None or len(call.args) < 2:
        return None
    size, old, new = call.size(call.target), call.size(call.args[0]), call.size(call.args[1])
    most_count, most_kept = _most_replaced(size, old, new)
    least_count, least_kept = _least_replaced(size, old, new)
    result = Range(least_count, most_count).times(new).plus(Range(least_kept, most_kept))
    return size.scaled(2 * TRAVERSAL), result


def _most_replaced(size: Range, old: Range, new: Range) -> tuple[int, int]:
    if old.least == 0:
        return min(size.most + 1, MOST), size.most
    if new.most <= old.least:
        return 0, size.most
    return math.ceil(size.most / old.least), 0


def _least_replaced(size: Range, old: Range, new: Range) -> tuple[int, int]:
    if old.most == 0:
        return min(size.least + 1, MOST), size.least
    if old.most <= new.least:
        return 0, size.least
    return math.ceil(size.least / old.most), 0


def _split(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = call.whole(1, size.most) if len(call.args) > 1 else size.most
    return size.scaled(2 * TRAVERSAL), Range(0, most)


def _join(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    count, item = call.size(call.target), call.item(call.target)
    size = count.times(item[1]) if item is not None else ZERO
    if call.args:
        between = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(call.size(call.args[0]).times(between))
    return size.scaled(TRAVERSAL), size


def _find(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    pattern = call.size(call.args[0]).scaled(REGEX)
    return size.plus(ONE).scaled(TRAVERSAL).times(pattern), Range(0, size.most)


def _ip(call: _Call) -> Cost:
    return (ONE, None) if call.overload == "cidr_ip" else _through_first(call)


def _contains_ip(call: _Call) -> Cost:
    base = Range(4, 16)
    cost = base.plus(base).scaled(TRAVERSAL)
    if call.overload == "cidr_contains_ip_string":
        cost = cost.plus(call.size(call.args[0]).scaled(TRAVERSAL))
    return cost, None


def _contains_cidr(call: _Call) -> Cost:
    base = Range(4, 16)
    cost = base.plus(base).scaled(TRAVERSAL).plus(base.scaled(TRAVERSAL)).plus(ONE)
    if call.overload == "cidr_contains_cidr_string":
        cost = cost.plus(call.size(call.args[0]).scaled(TRAVERSAL))
    return cost, None


def _validate(call: _Call) -> Cost:
    return call.size(call.args[0]).scaled(TRAVERSAL).scaled(_NAME_FORMAT * REGEX), None


def _equality(call: _Call) -> Cost:
    one, other = call.args
    if one.type == other.type and one.type.kind in ("opaque", "struct"):
        name = one.type.name
        if name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
            return ONE, None
        if name == "kubernetes.NamedFormat":
            return Range(1, _LONGEST_FORMAT).scaled(TRAVERSAL), None
        if name == "kubernetes.URL":
            return Range(1, other.size.most if other.size is not None else 1).scaled(TRAVERSAL), None
    return _comparison(call)


def _comparison(call: _Call) -> Cost:
    sizes = [argument.size or UNKNOWN for argument in call.args]
    smallest = min(sizes[0].most, sizes[1].most)
    return Range(1 if smallest > 0 else 0, smallest).scaled(TRAVERSAL), None


def _matches(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    text = (call.target.size or UNKNOWN).plus(ONE).scaled(TRAVERSAL)
    return text.times((call.args[0].size or UNKNOWN).scaled(REGEX)), None


def _contains(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    text, part = call.target.size or UNKNOWN, call.args[0].size or UNKNOWN
    return text.scaled(TRAVERSAL).times(part.scaled(TRAVERSAL)), None


def _to_bytes(call: _Call) -> Cost:
    size = call.args[0].size or UNKNOWN
    return size.scaled(TRAVERSAL), Range(size.least, min(size.most * 4, MOST))


def _to_string(call: _Call) -> Cost:
    size = call.args[0].size or UNKNOWN
    return size.scaled(TRAVERSAL), Range(size.least // 4, size.most)


def _quote(call: _Call) -> Cost:
    size = call.args[0].size or UNKNOWN
    return size.scaled(TRAVERSAL), Range(size.least + 2, min(size.most * 2 + 2, MOST))


def _allocating(factor: float, size: Range) -> Cost:
    return size.scaled(factor).plus(ONE).plus(fixed(10)), size


def _slice(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    end = call.whole(1, call.size(call.target).most)
    # The server counts in unsigned numbers.
    return _allocating(1, fixed((end - call.whole(0, 0)) % 2**64))


def _flatten(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    return _allocating(call.whole(0, MOST) if call.args else 1, call.size(call.target))


def _sort(factor: float) -> Callable[[_Call], Cost | None]:
    def price(call: _Call) -> Cost | None:
        subject = call.args[0] if call.args else call.target
        if subject is None:
            return None
        size = call.size(subject)
        return _allocating(factor, size.times(size))

    return price


def _sets(factor: float) -> Callable[[_Call], Cost]:
    return lambda call: (call.size(call.args[0]).times(call.size(call.args[1])).scaled(factor).plus(ONE), None)


_COMPARED: Final = ("less", "greater", "less_equals", "greater_equals")

_BY_OVERLOAD: Final[dict[str, Callable[[_Call], Cost | None]]] = {
    "equals": _equality,
    "not_equals": _comparison,
    **{f"{word}_{kind}": _comparison for word in _COMPARED for kind in ("string", "bytes")},
    "string_format": lambda call: ((call.target.size or UNKNOWN).scaled(TRAVERSAL), None) if call.target else None,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quote,
    "starts_with_string": lambda call: ((call.args[0].size or UNKNOWN).scaled(TRAVERSAL), None),
    "ends_with_string": lambda call: ((call.args[0].size or UNKNOWN).scaled(TRAVERSAL), None),
    "in_list": lambda call: (call.args[1].size or UNKNOWN, None),
    "matches_string": _matches,
    "contains_string": _contains,
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": lambda call: _allocating(1, fixed(call.whole(0, MOST))),
    "list_reverse": lambda call: _allocating(1, call.size(call.target)) if call.target else None,
    "list_distinct": _sort(2),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{
        f"list_{kind}_{name}": _sort(2 + TRAVERSAL if kind in ("string", "bytes") else 2)
        for kind in ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
        for name in ("sort", "sortByAssociatedKeys")
    },
}

_BY_NAME: Final[dict[str, Callable[[_Call], Cost | None]]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _each_item),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _through_first),
    "ip": _ip,
    "ip.isCanonical": _through_first_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}
