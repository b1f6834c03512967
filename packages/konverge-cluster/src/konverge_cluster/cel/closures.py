"""What an expression is made of when it runs: small functions that take the variables, and give a value.

An error is an exception until an operator takes it up; one that says that the budget is spent is never taken up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from konverge_cluster.cel.functions import Overload, accepts, runtime_type
from konverge_cluster.cel.standard import find, look_up
from konverge_cluster.cel.syntax import Comprehension
from konverge_cluster.cel.values import NONE, EvaluationError, Optional, no_overload

__all__ = [
    "Budget",
    "Evaluate",
    "Exhausted",
    "Loop",
    "constant",
    "decide",
    "direct",
    "dispatched",
    "has",
    "indexed",
    "quantified",
    "select_other",
    "truth",
    "variable",
    "variables",
]

Evaluate: TypeAlias = Callable[[dict[str, Any]], Any]
"""Takes the variables, and gives a value."""

_UNGUARDED: Final = frozenset(("contains", "endsWith", "matches", "startsWith"))


class Exhausted(EvaluationError):
    """The expression went through more items than one may."""


class Budget:
    """How many steps of loops may still be taken."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Exhausted("operation cancelled: actual cost limit exceeded")


Loop: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any], Budget], Any]
"""Takes what each turn sees, the variables and a budget, and gives what comes of all turns."""


def quantified(predicate: Evaluate, decisive: bool) -> Loop:
    """Make the loop of `all` and `exists`: an error in one item counts only if no other item decides."""

    def run(items: list[dict[str, Any]], scope: dict[str, Any], budget: Budget) -> bool:
        error: EvaluationError | None = None
        for turn in items:
            budget.spend()
            scope.update(turn)
            try:
                if truth(predicate(scope)) is decisive:
                    return decisive
            except Exhausted:
                raise
            except EvaluationError as raised:
                error = raised
        if error is not None:
            raise error
        return not decisive

    return run


def variables(node: Comprehension, items: Any) -> list[dict[str, Any]]:
    """Give what each turn of a loop sees: an item, or a place and an item."""
    first, second = node.variable, node.second
    if not second:
        return [{first: each} for each in items]
    pairs = items.items() if isinstance(items, dict) else enumerate(items)
    return [{first: key, second: value} for key, value in pairs]


def constant(value: Any) -> Evaluate:
    """Give the same value each time."""
    return lambda _scope: value


def variable(name: str) -> Evaluate:
    """Read a variable."""

    def evaluate(scope: dict[str, Any]) -> Any:
        try:
            return scope[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return evaluate


def truth(value: Any) -> bool:
    """Take a value for true or false; all others fit no overload."""
    if value is True or value is False:
        return bool(value)
    raise no_overload()


def decide(one: Evaluate, other: Evaluate, scope: dict[str, Any], decisive: bool) -> bool:
    """Evaluate `||` (true is decisive) or `&&` (false is): an error counts only if the other side does not decide."""
    error: EvaluationError | None = None
    for part in (one, other):
        try:
            if truth(part(scope)) is decisive:
                return decisive
        except Exhausted:
            raise
        except EvaluationError as raised:
            error = error or raised
    if error is not None:
        raise error
    return not decisive


def has(value: Any, name: str) -> bool:
    """Tell whether a field is there."""
    if isinstance(value, Optional):
        return value.has_value and has(value.value, name)
    if isinstance(value, list):
        return find(value, name).has_value
    return isinstance(value, dict) and name in value


def select_other(value: Any, name: str) -> Any:
    """Read a field of what is no map: an optional, or something without fields."""
    if isinstance(value, Optional):
        return find(value.value, name) if value.has_value else NONE
    return look_up(value, name)


def direct(call: Callable[..., Any], parts: list[Evaluate]) -> Evaluate:
    """Call one overload. A value that is not of the type that was declared (a null) fits no overload."""

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


def indexed(container: Evaluate, key: Evaluate) -> Evaluate:
    """Read what a list or map, or an optional one, has at a place."""

    def evaluate(scope: dict[str, Any]) -> Any:
        value, at = container(scope), key(scope)
        if isinstance(value, Optional):
            return Optional(look_up(value.value, at)) if value.has_value else NONE
        return look_up(value, at)

    return evaluate


def dispatched(function: str, overloads: list[Overload], parts: list[Evaluate]) -> Evaluate:
    """Call the first overload that takes the values as they turn out to be."""

    def evaluate(scope: dict[str, Any]) -> Any:
        values = [part(scope) for part in parts]
        for overload in overloads:
            if all(map(accepts, overload.params, values)):
                return overload.call(*values)
        raise _unfit(function, values)

    return evaluate


def _unfit(function: str, values: list[Any]) -> EvaluationError:
    """No overload takes these values. The server names the function and their types where its overloads are guarded."""
    if function == "size":
        return EvaluationError("no such overload: size")
    if function in _UNGUARDED or not function[0].isalpha():
        return no_overload()
    return EvaluationError(f"no such overload: {function}({', '.join(map(_type_name, values))})")


def _type_name(value: Any) -> str:
    found = runtime_type(value)
    return "null_type" if found.kind == "null" else str(found)
