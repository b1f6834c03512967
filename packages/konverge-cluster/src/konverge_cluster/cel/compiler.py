"""Compiles a checked tree into closures: each evaluates one node with the given variables.

`&&`, `||`, the macros `all` and `exists`, and `?:` only fail if an error decides the result: `true || 1/0 == 1` is
true. An error is an exception until such an operator absorbs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from konverge_cluster.cel.checker import Checked
from konverge_cluster.cel.closures import (
    Budget,
    BudgetExceeded,
    Evaluate,
    Loop,
    all_or_exists,
    and_or,
    call_overload,
    constant,
    dispatch,
    has,
    index_value,
    select_other,
    truth,
    variable,
    variables,
)
from konverge_cluster.cel.functions import go_name, runtime_type
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
    Struct,
)
from konverge_cluster.cel.values import NONE, EvaluationError, Optional, no_overload

__all__ = ["Budget", "BudgetExceeded", "Evaluate", "compile_node"]

_BUDGET: Final = "#budget"
_CONVERSIONS: Final = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"))


def compile_node(node: Node, checked: Checked) -> Evaluate:
    """Return the function that evaluates an expression. The variables have a `Budget` under the name `#budget`.

    Raises: EvaluationError when a constant cannot be converted to the required type.
    """
    return _Compiler(checked).compile(node)


class _Compiler:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._known: set[Node] = set()

    def compile(self, node: Node) -> Evaluate:
        if node in self._checked.constants:
            return constant(self._checked.constants[node])
        if isinstance(node, Literal):
            self._known.add(node)
            return constant(node.value)
        if isinstance(node, Ident):
            return variable(node.name)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        assert not isinstance(node, Struct)
        return self._comprehension(node)

    # Fields.

    def _field_name(self, operand: Node, name: str) -> str:
        """Return the name of a field in objects: keywords of the language are escaped there."""
        kind = self._checked.types.get(operand)
        fields = kind.fields if kind is not None and kind.kind == "struct" else None
        escaped = f"__{name}__"
        return escaped if fields is not None and name not in fields and escaped in fields else name

    def _select(self, node: Select) -> Evaluate:
        operand = self.compile(node.operand)
        name = self._field_name(node.operand, node.field)
        if node.test:
            return lambda scope: has(operand(scope), name)

        def evaluate(scope: dict[str, Any]) -> Any:
            value = operand(scope)
            if type(value) is dict:
                try:
                    return value[name]
                except KeyError:
                    raise EvaluationError(f"no such key: {name}") from None
            return select_other(value, name)

        return evaluate

    # Calls.

    def _call(self, node: Call) -> Evaluate:
        special = _SPECIAL.get(node.function)
        if special is not None and node.target is None:
            return special(self, node)
        qualified = node in self._checked.qualified
        operands = node.args if node.target is None or qualified else [node.target, *node.args]
        if node.function == "orValue":
            return self._or_value(operands)
        if node.function == "type" and node.target is None:
            inner = self.compile(node.args[0])
            return lambda scope: runtime_type(inner(scope))
        parts = [self.compile(each) for each in operands]
        overloads = self._checked.overloads[node]
        alone = len(overloads) == 1 and not self._is_open(operands)
        if node.function == "_[_]" and not alone:
            return index_value(*parts)
        evaluate = call_overload(overloads[0].call, parts) if alone else dispatch(node.function, overloads, parts)
        if node.function not in _CONVERSIONS or node.target is not None or operands[0] not in self._known:
            return evaluate
        # The server converts constants at compile time, and reports those that cannot be converted.
        self._known.add(node)
        return constant(evaluate({}))

    def _is_open(self, operands: list[Node]) -> bool:
        """Report whether a value may have a type at run time that the overload does not accept."""
        return any(self._checked.types[each].kind == "dyn" for each in operands)

    def _or_value(self, operands: list[Node]) -> Evaluate:
        maybe, other = map(self.compile, operands)

        def evaluate(scope: dict[str, Any]) -> Any:
            value = maybe(scope)
            if not isinstance(value, Optional):
                raise no_overload()
            return value.value if value.has_value else other(scope)

        return evaluate

    def _logic(self, node: Call) -> Evaluate:
        one, other = map(self.compile, node.args)
        stop_value = node.function == "_||_"

        def evaluate(scope: dict[str, Any]) -> bool:
            return and_or(one, other, scope, stop_value)

        return evaluate

    def conditional(self, node: Call) -> Evaluate:
        condition, yes, no = map(self.compile, node.args)

        def evaluate(scope: dict[str, Any]) -> Any:
            return yes(scope) if truth(condition(scope)) else no(scope)

        return evaluate

    def optional_select(self, node: Call) -> Evaluate:
        operand = self.compile(node.args[0])
        field = node.args[1]
        assert isinstance(field, Literal)
        name = self._field_name(node.args[0], field.value)

        def evaluate(scope: dict[str, Any]) -> Optional:
            value = operand(scope)
            if isinstance(value, Optional):
                if not value.has_value:
                    return NONE
                value = value.value
            if not isinstance(value, dict):
                raise no_overload()
            return Optional(value[name]) if name in value else NONE

        return evaluate

    # Lists and maps.

    def _list(self, node: ListNode) -> Evaluate:
        parts = [(self.compile(each), index in node.optional) for index, each in enumerate(node.elements)]
        if not node.optional:
            plain = [part for part, _ in parts]
            if all(each in self._known for each in node.elements):
                self._known.add(node)
            return lambda scope: [part(scope) for part in plain]

        def evaluate(scope: dict[str, Any]) -> list[Any]:
            found = []
            for part, optional in parts:
                value = part(scope)
                if not optional:
                    found.append(value)
                elif value.has_value:
                    found.append(value.value)
            return found

        return evaluate

    def _map(self, node: MapNode) -> Evaluate:
        entries = [(self.compile(key), self.compile(value), optional) for key, value, optional in node.entries]
        if all(key in self._known and value in self._known and not optional for key, value, optional in node.entries):
            self._known.add(node)

        def evaluate(scope: dict[str, Any]) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key_of, value_of, optional in entries:
                key, value = key_of(scope), value_of(scope)
                if optional:
                    if not value.has_value:
                        continue
                    value = value.value
                found[key] = value
            return found

        return evaluate

    # Comprehensions.

    def _comprehension(self, node: Comprehension) -> Evaluate:
        if node.accumulator != ACCUMULATOR:
            return self._bind(node)
        loop = self._quantifier(node.step) or self._plain_loop(node)
        over = self.compile(node.range)

        def evaluate(scope: dict[str, Any]) -> Any:
            items = over(scope)
            if not isinstance(items, (list, dict)):
                raise EvaluationError(f"got 'types.{go_name(items)}', expected iterable type")
            inner = dict(scope)
            return loop(variables(node, items), inner, scope[_BUDGET])

        return evaluate

    def _bind(self, node: Comprehension) -> Evaluate:
        value, result = self.compile(node.init), self.compile(node.result)
        name = node.accumulator
        return lambda scope: result({**scope, name: value(scope)})

    def _quantifier(self, step: Node) -> Loop | None:
        if not isinstance(step, Call) or step.function not in ("_&&_", "_||_"):
            return None
        return all_or_exists(self.compile(step.args[1]), step.function == "_||_")

    def _plain_loop(self, node: Comprehension) -> Loop:
        init, step, result = self.compile(node.init), self.compile(node.step), self.compile(node.result)

        def run(items: list[dict[str, Any]], scope: dict[str, Any], budget: Budget) -> Any:
            scope[ACCUMULATOR] = init(scope)
            for turn in items:
                budget.consume()
                scope.update(turn)
                scope[ACCUMULATOR] = step(scope)
            return result(scope)

        return run


_SPECIAL: Final[Mapping[str, Callable[[_Compiler, Call], Evaluate]]] = {
    "_&&_": _Compiler._logic,
    "_||_": _Compiler._logic,
    "_?_:_": _Compiler.conditional,
    "_?._": _Compiler.optional_select,
}
