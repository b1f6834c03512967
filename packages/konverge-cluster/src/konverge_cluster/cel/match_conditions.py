"""Match conditions of webhook configurations: compiled and validated as the real server does.

Their variables are `object`, `oldObject` and `request`. The real server has one more variable, `authorizer`; an
expression that uses it is rejected when the configuration is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from konverge.objects.names import label_key_errors
from konverge_cluster.api.field_errors import FieldError, duplicate, invalid, required, too_many

if TYPE_CHECKING:
    from konverge_cluster.cel.environments import Program

__all__ = ["compile_condition", "condition_errors"]

MAX_CONDITIONS: Final = 64


@lru_cache(maxsize=1024)
def compile_condition(expression: str) -> Program:
    """Compile an expression.

    Raises: CompileError; ValueError when its result is not a bool.
    """
    # A cluster whose webhooks have no conditions does not need the CEL engine.
    from konverge_cluster.cel.environments import Environment
    from konverge_cluster.cel.request_variables import request_type
    from konverge_cluster.cel.types import BOOL, DYN

    program = Environment({"object": DYN, "oldObject": DYN, "request": request_type()}).compile(expression)
    if program.result != BOOL:
        raise ValueError(f"must evaluate to bool but got {program.result}")
    return program


def condition_errors(conditions: list[dict[str, Any]], path: str) -> Iterator[FieldError]:
    """Return the errors of the match conditions of a webhook."""
    if len(conditions) > MAX_CONDITIONS:
        yield too_many(path, len(conditions), MAX_CONDITIONS)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        yield from _expression_errors(condition.get("expression", "").strip(), f"{at}.expression")
        name = condition.get("name", "")
        if not name:
            yield required(f"{at}.name")
        yield from (invalid(f"{at}.name", name, error) for error in (label_key_errors(name) if name else ()))
        if name and name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)


def _expression_errors(expression: str, path: str) -> Iterator[FieldError]:
    if not expression:
        yield required(path)
        return
    from konverge_cluster.cel.environments import CompileError

    try:
        compile_condition(expression)
    except CompileError as error:
        yield invalid(path, expression, f"compilation failed: {error}")
    except ValueError as error:
        yield invalid(path, expression, str(error))
