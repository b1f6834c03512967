"""Estimate of the maximum cost of an expression, in the units of the real server.

The server rejects a rule whose estimate is too high, so the estimate has to equal the server's. The cost of a function
depends on the sizes of its arguments, and those on the bounds in the schema (`maxItems`, `maxLength`). A value that
comes from a variable has a path (`self`, a field, `@items`, ...), under which its bound is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from konverge_cluster.cel.call_costs import Argument, call_cost
from konverge_cluster.cel.checker import Checked
from konverge_cluster.cel.estimates import MAX_UINT64, ONE, UNKNOWN, ZERO, Estimate, fixed
from konverge_cluster.cel.macros import ACCUMULATOR
from konverge_cluster.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    qualified_name,
)
from konverge_cluster.cel.types import Type, unwrap_optional

__all__ = ["Sizes", "estimate"]

_LIST, _MAP, _MESSAGE = fixed(10), fixed(30), fixed(40)
_SCALARS = ("bool", "double", "duration", "int", "timestamp", "uint")


class Sizes(Protocol):
    """The sizes of the values of variables."""

    def max_size_at(self, path: tuple[str, ...]) -> int | None:
        """Return the maximum size of the value under a path; None if it is unknown."""
        ...


def estimate(node: Node, checked: Checked, sizes: Sizes) -> int:
    """Return the maximum cost of an expression."""
    return _Estimator(checked, sizes).cost(node).maximum


@dataclass(slots=True)
class _Entry:
    """Sizes of the keys (or indices) and values of a container."""

    is_list: bool
    key: Estimate
    value: Estimate


@dataclass(slots=True)
class _Local:
    path: tuple[str, ...]
    size: Estimate | None
    entry: _Entry | None


class _Estimator:
    def __init__(self, checked: Checked, sizes: Sizes) -> None:
        self._checked = checked
        self._sizes = sizes
        self._paths: dict[Node, tuple[str, ...]] = {}
        self._known: dict[Node, Estimate] = {}
        self._entries: dict[Node, _Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Estimate:
        if node in self._checked.constants:
            self._paths[node] = (qualified_name(node),)
            return ONE
        if isinstance(node, Literal):
            return ZERO
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[node] = local.path if local is not None else (node.name,)
            return ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._bind(node) if node.accumulator != ACCUMULATOR else self._loop(node)
        return _MESSAGE

    # Origin and size of a value.

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(node, ())

    def _type(self, node: Node) -> Type:
        return self._checked.types[node]

    def _size(self, node: Node) -> Estimate | None:
        known = self._known.get(node)
        if known is not None:
            return known
        size = _literal_size(node)
        if size is not None:
            return size
        maximum = self._sizes.max_size_at(self._path(node))
        if maximum is not None:
            self._known[node] = Estimate(0, maximum)
            return self._known[node]
        if _is_scalar(self._type(node)):
            return ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    def _size_or_unknown(self, node: Node) -> Estimate:
        return self._size(node) or UNKNOWN

    def _entry(self, node: Node) -> _Entry | None:
        found = self._entries.get(node)
        if found is None and isinstance(node, Ident):
            local = self._local(node.name)
            found = local.entry if local is not None else None
        return found

    def _argument(self, node: Node) -> Argument:
        path = self._path(node)
        shown = () if path and path[0] == ACCUMULATOR else path
        return Argument(node, self._type(node), self._size(node), shown)

    # Nodes.

    def _select(self, node: Select) -> Estimate:
        total = self.cost(node.operand)
        if node.test:
            return total
        if self._type(node.operand).kind in ("map", "struct", "param"):
            total = total.plus(ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return total

    def _call(self, node: Call) -> Estimate:
        if node.function == "dyn" and node.target is None:
            total = ONE.plus(self.cost(node.args[0]))
            self._copy(node, node.args[0])
            return total
        costs = [self.cost(each) for each in node.args]
        overloads = self._checked.overloads.get(node)
        if not overloads:
            return self._optional_select(costs)
        target = node.target if node not in self._checked.qualified else None
        before = self.cost(target) if target is not None else ZERO
        name = _full_name(node, qualified=node in self._checked.qualified)
        cost, size = Estimate(MAX_UINT64, 0), None
        for overload in overloads:
            found, returned = self._overload(node, name, overload.id, target, costs)
            cost = cost.union(found)
            if returned is not None:
                size = returned if size is None else size.union(returned)
            size = self._indexed(node, overload.id, size) or size
            size = size if size is not None else self._size(node)
        if size is not None:
            self._known[node] = size
        return before.plus(cost)

    def _optional_select(self, costs: list[Estimate]) -> Estimate:
        # The server estimates `a.?b` as a call that costs one.
        return ONE.plus(costs[0]).plus(costs[1])

    def _indexed(self, node: Call, overload: str, size: Estimate | None) -> Estimate | None:
        step = {"index_list": "@items", "index_map": "@values"}.get(overload)
        if step is None:
            return size
        entry = self._entry(node.args[0])
        self._paths[node] = (*self._path(node.args[0]), step)
        return entry.value if entry is not None else None

    def _overload(
        self, node: Call, name: str, overload: str, target: Node | None, costs: list[Estimate]
    ) -> tuple[Estimate, Estimate | None]:
        """Return cost and result size of one overload of a function."""
        args = [self._argument(each) for each in node.args]
        total = ZERO
        for each in costs:
            total = total.plus(each)
        if overload in ("logical_and", "logical_or"):
            return Estimate(costs[0].minimum, total.maximum), None
        if overload == "conditional":
            return self._conditional(node, costs)
        if overload in ("add_string", "add_bytes", "add_list"):
            return self._concatenation(node, overload, total)
        where = self._argument(target) if target is not None else None
        cost, size = call_cost(name, overload, where, args, self._sizes)
        return cost.plus(total), size

    def _conditional(self, node: Call, costs: list[Estimate]) -> tuple[Estimate, Estimate]:
        size = self._size_or_unknown(node.args[1]).union(self._size_or_unknown(node.args[2]))
        entry = _joined(self._entry(node.args[1]), self._entry(node.args[2]))
        if entry is not None:
            self._entries[node] = entry
        return costs[0].plus(costs[1].union(costs[2])), size

    def _concatenation(self, node: Call, overload: str, total: Estimate) -> tuple[Estimate, Estimate]:
        one, other = node.args
        size = self._size_or_unknown(one).plus(self._size_or_unknown(other))
        entry = _joined(self._entry(one), self._entry(other))
        if entry is not None:
            self._entries[node] = entry
        return (ONE if overload == "add_list" else size.scaled(0.1)).plus(total), size

    def _list(self, node: ListNode) -> Estimate:
        total, items = ZERO, Estimate(0 if not node.elements else MAX_UINT64, 0)
        for each in node.elements:
            total = total.plus(self.cost(each))
            items = items.union(self._size_or_unknown(each))
        self._entries[node] = _Entry(True, ONE, items)
        return total.plus(_LIST)

    def _map(self, node: MapNode) -> Estimate:
        start = Estimate(0 if not node.entries else MAX_UINT64, 0)
        total, keys, values = ZERO, start, start
        for key, value, _ in node.entries:
            total = total.plus(self.cost(key)).plus(self.cost(value))
            keys = keys.union(self._size_or_unknown(key))
            values = values.union(self._size_or_unknown(value))
        self._entries[node] = _Entry(False, keys, values)
        return total.plus(_MAP)

    def _copy(self, node: Node, source: Node) -> None:
        size, entry = self._size(source), self._entry(source)
        if size is not None:
            self._known[node] = size
        if entry is not None:
            self._entries[node] = entry

    # Comprehensions.

    def _push(self, name: str, path: tuple[str, ...], size: Estimate | None, entry: _Entry | None = None) -> None:
        self._locals.setdefault(name, []).append(_Local(path, size, entry))

    def _bind(self, node: Comprehension) -> Estimate:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accumulator, self._path(node.init), self._size(node.init), self._entry(node.init))
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._copy(node, node.result)
        return total

    def _loop(self, node: Comprehension) -> Estimate:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accumulator, self._path(node.init), self._size(node.init), self._entry(node.init))
        self._push_variables(node)
        each = self.cost(node.condition).plus(self.cost(node.step))
        self._locals[node.variable].pop()
        if node.second:
            self._locals[node.second].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._size_or_unknown(node.range)
        self._record_result(node, count)
        return total.plus(count.times(each))

    def _push_variables(self, node: Comprehension) -> None:
        entry, path = self._entry(node.range), self._path(node.range)
        is_list = entry.is_list if entry is not None else self._type(node.range).kind == "list"
        key = entry.key if entry is not None else None
        value = entry.value if entry is not None else None
        if node.second:
            self._push(node.variable, (*path, "@indices" if is_list else "@keys"), key)
            self._push(node.second, (*path, "@items" if is_list else "@values"), value)
        elif is_list:
            self._push(node.variable, (*path, "@items"), value)
        else:
            self._push(node.variable, (*path, "@keys"), key)

    def _record_result(self, node: Comprehension, count: Estimate) -> None:
        if isinstance(node.init, Literal):
            size = self._size(node.init)
            if size is not None:
                self._known[node] = size
        elif isinstance(node.init, (ListNode, MapNode)):
            self._known[node] = count
            entry = self._entry(node.step)
            if entry is not None:
                self._entries[node] = entry


def _full_name(node: Call, *, qualified: bool) -> str:
    if not qualified:
        return node.function
    assert node.target is not None
    return f"{qualified_name(node.target)}.{node.function}"


def _joined(one: _Entry | None, other: _Entry | None) -> _Entry | None:
    if one is None or other is None:
        return None
    return _Entry(one.is_list, one.key.union(other.key), one.value.union(other.value))


def _literal_size(node: Node) -> Estimate | None:
    if isinstance(node, Literal):
        value: Any = node.value
        return fixed(len(value)) if isinstance(value, (str, bytes)) else ONE
    if isinstance(node, ListNode):
        return fixed(len(node.elements))
    return fixed(len(node.entries)) if isinstance(node, MapNode) else None


def _is_scalar(kind: Type) -> bool:
    inner, is_optional = unwrap_optional(kind)
    return _is_scalar(inner) if is_optional else kind.kind in _SCALARS
