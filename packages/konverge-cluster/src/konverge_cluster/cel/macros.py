"""Macros: calls that the parser expands into a comprehension, a presence test or a binding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from konverge_cluster.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select

__all__ = ["ACCUMULATOR", "MacroError", "expand_global", "expand_member"]

ACCUMULATOR: Final = "@result"


class MacroError(ValueError):
    """A macro has an invalid argument."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


def expand_global(call: Call) -> Node:
    """Expand `has(...)`; return other calls unchanged.

    Raises: MacroError.
    """
    if call.function != "has" or len(call.args) != 1:
        return call
    [field] = call.args
    if not isinstance(field, Select) or field.test:
        raise MacroError(field.at, "invalid argument to has() macro")
    return Select(call.at, field.operand, field.field, test=True)


def expand_member(call: Call) -> Node:
    """Expand a macro with a receiver; return other calls unchanged.

    Raises: MacroError.
    """
    expand = _MACROS.get((call.function, len(call.args)))
    return expand(call) if expand is not None else call


def _accumulated(at: int) -> Ident:
    return Ident(at, ACCUMULATOR)


def _name(node: Node, text: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.at, text)
    if node.name in (ACCUMULATOR, "__result__"):
        raise MacroError(node.at, f"iteration variable overwrites accumulator variable: {node.name}")
    return node.name


def _names(call: Call, count: int) -> tuple[str, str]:
    if count == 1:
        return _name(call.args[0]), ""
    names = [_name(node) for node in call.args[:2]]
    if names[0] == names[1]:
        raise MacroError(call.args[1].at, f"duplicate variable name: {names[0]}")
    return names[0], names[1]


def _loop(call: Call, count: int, init: Node, condition: Node, step: Node, result: Node | None = None) -> Node:
    assert call.target is not None
    first, second = _names(call, count)
    shown = result or _accumulated(call.at)
    return Comprehension(call.at, first, second, call.target, ACCUMULATOR, init, condition, step, shown)


def _quantifier(operator: str) -> Callable[[Call], Node]:
    """Return the expansion of `all`, which stops at the first false, or `exists`, which stops at the first true."""
    is_all = operator == "_&&_"

    def expand(call: Call) -> Node:
        at = call.at
        going_on: Node = _accumulated(at) if is_all else Call(at, "!_", [_accumulated(at)])
        condition = Call(at, "@not_strictly_false", [going_on])
        step = Call(at, operator, [_accumulated(at), call.args[-1]])
        return _loop(call, len(call.args) - 1, Literal(at, is_all), condition, step)

    return expand


def _exists_one(call: Call) -> Node:
    at = call.at
    more = Call(at, "_+_", [_accumulated(at), Literal(at, 1)])
    step = Call(at, "_?_:_", [call.args[-1], more, _accumulated(at)])
    result = Call(at, "_==_", [_accumulated(at), Literal(at, 1)])
    return _loop(call, len(call.args) - 1, Literal(at, 0), Literal(at, True), step, result)


def _filtered(call: Call, step: Node, condition: Node | None) -> Node:
    if condition is None:
        return step
    return Call(call.at, "_?_:_", [condition, step, _accumulated(call.at)])


def _to_list(variables: int) -> Callable[[Call], Node]:
    """Return the expansion of `map` and `transformList`: a list of results, for the items that pass the filter."""

    def expand(call: Call) -> Node:
        at = call.at
        step: Node = Call(at, "_+_", [_accumulated(at), ListNode(at, [call.args[-1]])])
        condition = call.args[variables] if len(call.args) > variables + 1 else None
        return _loop(call, variables, ListNode(at, []), Literal(at, True), _filtered(call, step, condition))

    return expand


def _filter(call: Call) -> Node:
    at = call.at
    name = _name(call.args[0])
    step: Node = Call(at, "_+_", [_accumulated(at), ListNode(at, [Ident(call.args[0].at, name)])])
    return _loop(call, 1, ListNode(at, []), Literal(at, True), _filtered(call, step, call.args[1]))


def _to_map(call: Call) -> Node:
    at = call.at
    key = Ident(at, _name(call.args[0]))
    step: Node = Call(at, "cel.@mapInsert", [_accumulated(at), key, call.args[-1]])
    condition = call.args[2] if len(call.args) == 4 else None
    return _loop(call, 2, MapNode(at, []), Literal(at, True), _filtered(call, step, condition))


def _to_entries(call: Call) -> Node:
    at = call.at
    step: Node = Call(at, "cel.@mapInsert", [_accumulated(at), call.args[-1]])
    condition = call.args[2] if len(call.args) == 4 else None
    return _loop(call, 2, MapNode(at, []), Literal(at, True), _filtered(call, step, condition))


def _bind(call: Call, name: str, value: Node, result: Node) -> Node:
    at = call.at
    nothing = ListNode(at, [])
    return Comprehension(at, "#unused", "", nothing, name, value, Literal(at, False), Ident(at, name), result)


def _optional_map(*, flat: bool) -> Callable[[Call], Node]:
    """Return the expansion of `optMap` and `optFlatMap`: the result for the value, if there is one."""

    def expand(call: Call) -> Node:
        assert call.target is not None
        at = call.at
        name = _name(call.args[0], "argument must be a simple name")
        value = Call(at, "value", [], call.target)
        bound = _bind(call, name, value, call.args[1])
        some = bound if flat else Call(at, "optional.of", [bound])
        has = Call(at, "hasValue", [], call.target)
        return Call(at, "_?_:_", [has, some, Call(at, "optional.none", [])])

    return expand


def _sort_by(call: Call) -> Node:
    assert call.target is not None
    at = call.at
    variable = "@__sortBy_input__"
    held = Ident(at, variable)
    keys = _to_list(1)(Call(at, "map", call.args, held))
    return _bind(call, variable, call.target, Call(at, "@sortByAssociatedKeys", [keys], held))


_MACROS: Final[dict[tuple[str, int], Callable[[Call], Node]]] = {
    ("all", 2): _quantifier("_&&_"),
    ("all", 3): _quantifier("_&&_"),
    ("exists", 2): _quantifier("_||_"),
    ("exists", 3): _quantifier("_||_"),
    ("exists_one", 2): _exists_one,
    ("existsOne", 2): _exists_one,
    ("exists_one", 3): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _to_list(1),
    ("map", 3): _to_list(1),
    ("filter", 2): _filter,
    ("transformList", 3): _to_list(2),
    ("transformList", 4): _to_list(2),
    ("transformMap", 3): _to_map,
    ("transformMap", 4): _to_map,
    ("transformMapEntry", 3): _to_entries,
    ("transformMapEntry", 4): _to_entries,
    ("optMap", 2): _optional_map(flat=False),
    ("optFlatMap", 2): _optional_map(flat=True),
    ("sortBy", 2): _sort_by,
}
