"""Match conditions: expressions that decide, last of all, whether a webhook is called.

The language of the expressions is not this package's business: a `Compile` turns a text into a `Condition`. Without
one, a configuration that has conditions is refused when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from konverge.controlplane.api import refusals
from konverge.controlplane.api.admission import AdmissionRequest
from konverge.controlplane.api.problems import FieldProblem, duplicate, invalid, required, too_many
from konverge.controlplane.webhooks.configurations import Webhook
from konverge.objects.names import label_key_errors

__all__ = ["Compile", "Condition", "condition_problems", "holds"]

MOST: Final = 64

_NO_ENGINE: Final = "this server has no CEL engine (leave matchConditions out, or decide inside the webhook)"

Condition = Callable[[Mapping[str, Any]], bool]
"""Takes the variables `object`, `oldObject` and `request`; raises ValueError with the evaluator's text."""

Compile = Callable[[str], Condition]
"""Turns an expression into a condition; raises ValueError with the compiler's text."""


def holds(webhook: Webhook, compile_: Compile | None, variables: Mapping[str, Any], request: AdmissionRequest) -> bool:
    """Whether all conditions of a webhook hold; one that is false decides, also beside one that fails.

    Raises: Refusal 403 when one fails and the webhook's failures are not ignored.
    """
    faults: list[str] = []
    for _, expression in webhook.conditions:
        try:
            if not _evaluate(compile_, expression, variables):
                return False
        except ValueError as fault:
            faults.append(str(fault))
    if not faults:
        return True
    if webhook.ignores_failure:
        return False
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]"
    kind = request.strategy.info.kind
    raise refusals.forbidden(kind.group, kind.plural, request.name, listed)


def _evaluate(compile_: Compile | None, expression: str, variables: Mapping[str, Any]) -> bool:
    if compile_ is None:
        raise ValueError(f"expression {expression!r} cannot be evaluated: {_NO_ENGINE}")
    return compile_(expression)(variables)


def condition_problems(conditions: list[dict[str, Any]], path: str, compile_: Compile | None) -> Iterator[FieldProblem]:
    """Say what is wrong with the conditions of a webhook."""
    if len(conditions) > MOST:
        yield too_many(path, len(conditions), MOST)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        yield from _expression_problems(condition.get("expression", "").strip(), f"{at}.expression", compile_)
        name = condition.get("name", "")
        if not name:
            yield required(f"{at}.name")
        yield from (invalid(f"{at}.name", name, error) for error in (label_key_errors(name) if name else ()))
        if name and name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)


def _expression_problems(expression: str, path: str, compile_: Compile | None) -> Iterator[FieldProblem]:
    if not expression:
        yield required(path)
    elif compile_ is None:
        yield invalid(path, expression, _NO_ENGINE)
    else:
        try:
            compile_(expression)
        except ValueError as fault:
            yield invalid(path, expression, f"compilation failed: {fault}")
