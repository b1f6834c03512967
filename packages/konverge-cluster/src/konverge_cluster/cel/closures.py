"""Building blocks of compiled expressions: functions from variables to a value.

An error is an exception until an operator absorbs it; an exceeded budget is never absorbed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from konverge_cluster.cel.functions import Overload, accepts, runtime_type
from konverge_cluster.cel.standard import find, lookup
from konverge_cluster.cel.syntax import Comprehension
from konverge_cluster.cel.values import NONE, EvaluationError, Optional, no_overload

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Evaluate",
    "Loop",
    "all_or_exists",
    "and_or",
    "call_overload",
    "constant",
    "dispatch",
    "has",
    "index_value",
    "select_other",
    "truth",
    "variable",
    "variables",
]

Evaluate: TypeAlias = Callable[[dict[str, Any]], Any]
"""Evaluates an expression with the given variables."""

_UNGUARDED: Final = frozenset(("contains", "endsWith", "matches", "startsWith"))


class BudgetExceeded(EvaluationError):
    """The loops of an expression took too many steps."""


class Budget:
    """The remaining number of loop steps."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def consume(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise BudgetExceeded("operation cancelled: actual cost limit exceeded")


Loop: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any], Budget], Any]
"""Runs a loop: from the variables of each iteration, the outer variables and a budget to the result."""


def all_or_exists(predicate: Evaluate, stop_value: bool) -> Loop:
    """Return the loop of `all` and `exists`: an error in one item counts only if no other item decides."""

    def run(items: list[dict[str, Any]], scope: dict[str, Any], budget: Budget) -> bool:
        error: EvaluationError | None = None
        for turn in items:
            budget.consume()
            scope.update(turn)
            try:
                if truth(predicate(scope)) is stop_value:
                    return stop_value
            except BudgetExceeded:
                raise
            except EvaluationError as raised:
                error = raised
        if error is not None:
            raise error
        return not stop_value

    return run


def variables(node: Comprehension, items: Any) -> list[dict[str, Any]]:
    """Return the variables of each iteration: an item, or an index or key and an item."""
    first, second = node.variable, node.second
    if not second:
        return [{first: each} for each in items]
    pairs = items.items() if isinstance(items, dict) else enumerate(items)
    return [{first: key, second: value} for key, value in pairs]


def constant(value: Any) -> Evaluate:
    """Return an evaluator of a constant."""
    return lambda _scope: value


def variable(name: str) -> Evaluate:
    """Return an evaluator of a variable."""

    def evaluate(scope: dict[str, Any]) -> Any:
        try:
            return scope[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return evaluate


def truth(value: Any) -> bool:
    """Return a bool unchanged; any other value matches no overload."""
    if value is True or value is False:
        return bool(value)
    raise no_overload()


def and_or(one: Evaluate, other: Evaluate, scope: dict[str, Any], stop_value: bool) -> bool:
    """Evaluate `||` (true decides) or `&&` (false decides): an error counts only if the other side does not decide."""
    error: EvaluationError | None = None
    for part in (one, other):
        try:
            if truth(part(scope)) is stop_value:
                return stop_value
        except BudgetExceeded:
            raise
        except EvaluationError as raised:
            error = error or raised
    if error is not None:
        raise error
    return not stop_value


def has(value: Any, name: str) -> bool:
    """Report whether a field is present."""
    if isinstance(value, Optional):
        return value.has_value and has(value.value, name)
    if isinstance(value, list):
        return find(value, name).has_value
    return isinstance(value, dict) and name in value


def select_other(value: Any, name: str) -> Any:
    """Return a field of a value that is not a map: an optional, or a value without fields."""
    if isinstance(value, Optional):
        return find(value.value, name) if value.has_value else NONE
    return lookup(value, name)


def call_overload(call: Callable[..., Any], parts: list[Evaluate]) -> Evaluate:
    """Return an evaluator of one overload. A value that is not of the declared type (a null) matches no overload."""

    def one(scope: dict[str, Any]) -> Any:
        value = parts[0](scope)
        try:
            return call(value)
        except (TypeError, AttributeError):
            raise no_overload() from None

    def two(scope: dict[str, Any]) -> Any:
        first, second = parts[0](scope), parts[1](scope)
        try:
            return call(first, second)
        except (TypeError, AttributeError):
            raise no_overload() from None

    def several(scope: dict[str, Any]) -> Any:
        values = [part(scope) for part in parts]
        try:
            return call(*values)
        except (TypeError, AttributeError):
            raise no_overload() from None

    return {1: one, 2: two}.get(len(parts), several)


def index_value(container: Evaluate, key: Evaluate) -> Evaluate:
    """Return an evaluator of the item of a list or map, or of an optional one, at a key."""

    def evaluate(scope: dict[str, Any]) -> Any:
        value, at = container(scope), key(scope)
        if isinstance(value, Optional):
            return Optional(lookup(value.value, at)) if value.has_value else NONE
        return lookup(value, at)

    return evaluate


def dispatch(function: str, overloads: list[Overload], parts: list[Evaluate]) -> Evaluate:
    """Return an evaluator of the first overload that accepts the values at run time."""

    def evaluate(scope: dict[str, Any]) -> Any:
        values = [part(scope) for part in parts]
        for overload in overloads:
            if all(map(accepts, overload.params, values)):
                return overload.call(*values)
        raise _no_matching_overload(function, values)

    return evaluate


def _no_matching_overload(function: str, values: list[Any]) -> EvaluationError:
    """Return the error that no overload accepts the values, with function and types where the server has them."""
    if function == "size":
        return EvaluationError("no such overload: size")
    if function in _UNGUARDED or not function[0].isalpha():
        return no_overload()
    return EvaluationError(f"no such overload: {function}({', '.join(map(_type_name, values))})")


def _type_name(value: Any) -> str:
    found = runtime_type(value)
    return "null_type" if found.kind == "null" else str(found)
