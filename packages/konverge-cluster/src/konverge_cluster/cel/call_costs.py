"""Cost estimates of calls, function by function, as in the real server.

Most functions cost one. Those that traverse a string cost a tenth of its length, those that traverse a list one for
each item, and regular expressions the product of string and pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from konverge_cluster.cel.estimates import MAX_UINT64, ONE, UNKNOWN, ZERO, Estimate, fixed
from konverge_cluster.cel.syntax import Literal, Node
from konverge_cluster.cel.types import Type

__all__ = ["Argument", "call_cost"]

TRAVERSAL: Final = 0.1
REGEX: Final = 0.25
_NAME_FORMAT: Final = 128
_MAX_FORMAT_LENGTH: Final = 64

Cost = tuple[Estimate, Estimate | None]


class Sizes(Protocol):
    def max_size_at(self, path: tuple[str, ...]) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument: its expression, its type, its size, and its path."""

    node: Node
    type: Type
    size: Estimate | None
    path: tuple[str, ...]


class _Call:
    """A call whose cost is estimated."""

    def __init__(self, overload: str, target: Argument | None, args: Sequence[Argument], sizes: Sizes) -> None:
        self.overload = overload
        self.target = target
        self.args = args
        self._sizes = sizes

    def size(self, argument: Argument) -> Estimate:
        if argument.size is not None:
            return argument.size
        maximum = self._sizes.max_size_at(argument.path) if argument.path else None
        return Estimate(0, maximum) if maximum is not None else UNKNOWN

    def item(self, argument: Argument) -> tuple[Type, Estimate] | None:
        """Return type and size of the items of a list."""
        if not argument.type.params:
            return None
        maximum = self._sizes.max_size_at((*argument.path, "@items")) if argument.path else None
        return argument.type.params[0], Estimate(0, maximum) if maximum is not None else UNKNOWN

    def whole(self, index: int, default: int) -> int:
        """Return the value of an integer argument if it is a literal."""
        value: Any = (
            getattr(self.args[index].node, "value", None) if isinstance(self.args[index].node, Literal) else None
        )
        return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def call_cost(name: str, overload: str, target: Argument | None, args: Sequence[Argument], sizes: Sizes) -> Cost:
    """Return the cost of a call without that of its arguments, and the size of its result (None if not needed)."""
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
    """Return the cost of a traversal of the receiver, with a result of the same size."""
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
    result = Estimate(least_count, most_count).times(new).plus(Estimate(least_kept, most_kept))
    return size.scaled(2 * TRAVERSAL), result


def _most_replaced(size: Estimate, old: Estimate, new: Estimate) -> tuple[int, int]:
    if old.minimum == 0:
        return min(size.maximum + 1, MAX_UINT64), size.maximum
    if new.maximum <= old.minimum:
        return 0, size.maximum
    return math.ceil(size.maximum / old.minimum), 0


def _least_replaced(size: Estimate, old: Estimate, new: Estimate) -> tuple[int, int]:
    if old.maximum == 0:
        return min(size.minimum + 1, MAX_UINT64), size.minimum
    if old.maximum <= new.minimum:
        return 0, size.minimum
    return math.ceil(size.minimum / old.maximum), 0


def _split(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    maximum = call.whole(1, size.maximum) if len(call.args) > 1 else size.maximum
    return size.scaled(2 * TRAVERSAL), Estimate(0, maximum)


def _join(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    count, item = call.size(call.target), call.item(call.target)
    size = count.times(item[1]) if item is not None else ZERO
    if call.args:
        between = Estimate(max(count.minimum - 1, 0), max(count.maximum - 1, 0))
        size = size.plus(call.size(call.args[0]).times(between))
    return size.scaled(TRAVERSAL), size


def _find(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    pattern = call.size(call.args[0]).scaled(REGEX)
    return size.plus(ONE).scaled(TRAVERSAL).times(pattern), Estimate(0, size.maximum)


def _ip(call: _Call) -> Cost:
    return (ONE, None) if call.overload == "cidr_ip" else _through_first(call)


def _contains_ip(call: _Call) -> Cost:
    base = Estimate(4, 16)
    cost = base.plus(base).scaled(TRAVERSAL)
    if call.overload == "cidr_contains_ip_string":
        cost = cost.plus(call.size(call.args[0]).scaled(TRAVERSAL))
    return cost, None


def _contains_cidr(call: _Call) -> Cost:
    base = Estimate(4, 16)
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
            return Estimate(1, _MAX_FORMAT_LENGTH).scaled(TRAVERSAL), None
        if name == "kubernetes.URL":
            return Estimate(1, other.size.maximum if other.size is not None else 1).scaled(TRAVERSAL), None
    return _comparison(call)


def _comparison(call: _Call) -> Cost:
    sizes = [argument.size or UNKNOWN for argument in call.args]
    smallest = min(sizes[0].maximum, sizes[1].maximum)
    return Estimate(1 if smallest > 0 else 0, smallest).scaled(TRAVERSAL), None


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
    return size.scaled(TRAVERSAL), Estimate(size.minimum, min(size.maximum * 4, MAX_UINT64))


def _to_string(call: _Call) -> Cost:
    size = call.args[0].size or UNKNOWN
    return size.scaled(TRAVERSAL), Estimate(size.minimum // 4, size.maximum)


def _quote(call: _Call) -> Cost:
    size = call.args[0].size or UNKNOWN
    return size.scaled(TRAVERSAL), Estimate(size.minimum + 2, min(size.maximum * 2 + 2, MAX_UINT64))


def _allocating(factor: float, size: Estimate) -> Cost:
    return size.scaled(factor).plus(ONE).plus(fixed(10)), size


def _slice(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    end = call.whole(1, call.size(call.target).maximum)
    # The server computes with unsigned integers.
    return _allocating(1, fixed((end - call.whole(0, 0)) % 2**64))


def _flatten(call: _Call) -> Cost | None:
    if call.target is None:
        return None
    return _allocating(call.whole(0, MAX_UINT64) if call.args else 1, call.size(call.target))


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
    "lists_range": lambda call: _allocating(1, fixed(call.whole(0, MAX_UINT64))),
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
