"""Match conditions: expressions that decide, last of all, whether a webhook is called.

They see `object`, `oldObject` and `request`. The real server has one variable more, `authorizer`, which asks what
somebody may do; an expression that uses it is refused when the configuration is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from konverge.controlplane.api import refusals
from konverge.controlplane.api.admission import AdmissionRequest
from konverge.controlplane.api.problems import FieldProblem, duplicate, invalid, required, too_many
from konverge.controlplane.webhooks.configurations import Webhook
from konverge.objects.names import label_key_errors

if TYPE_CHECKING:
    from konverge.controlplane.cel.environments import Program

__all__ = ["condition_problems", "holds"]

MOST: Final = 64


def holds(webhook: Webhook, variables: Mapping[str, Any], request: AdmissionRequest) -> bool:
    """Whether all conditions of a webhook hold; one that is false decides, also beside one that fails.

    Raises: Refusal 403 when one fails and the webhook's failures are not ignored.
    """
    from konverge.controlplane.cel.values import EvaluationError

    faults: list[str] = []
    for _, expression in webhook.conditions:
        try:
            if not _compiled(expression.strip()).evaluate(variables):
                return False
        except EvaluationError as fault:
            faults.append(f"expression '{expression}' resulted in error: {fault}")
    if not faults:
        return True
    if webhook.ignores_failure:
        return False
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]"
    kind = request.strategy.info.kind
    raise refusals.forbidden(kind.group, kind.plural, request.name, listed)


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Program:
    """Compile an expression.

    Raises: CompileError; ValueError when its value is no truth value.
    """
    # A cluster whose webhooks have no conditions does not need the language.
    from konverge.controlplane.cel.environments import Environment
    from konverge.controlplane.cel.types import BOOL, DYN
    from konverge.controlplane.webhooks.variables import request_type

    program = Environment({"object": DYN, "oldObject": DYN, "request": request_type()}).compile(expression)
    if program.result != BOOL:
        raise ValueError(f"must evaluate to bool but got {program.result}")
    return program


def condition_problems(conditions: list[dict[str, Any]], path: str) -> Iterator[FieldProblem]:
    """Say what is wrong with the conditions of a webhook."""
    if len(conditions) > MOST:
        yield too_many(path, len(conditions), MOST)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        yield from _expression_problems(condition.get("expression", "").strip(), f"{at}.expression")
        name = condition.get("name", "")
        if not name:
            yield required(f"{at}.name")
        yield from (invalid(f"{at}.name", name, error) for error in (label_key_errors(name) if name else ()))
        if name and name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)


def _expression_problems(expression: str, path: str) -> Iterator[FieldProblem]:
    if not expression:
        yield required(path)
        return
    from konverge.controlplane.cel.environments import CompileError

    try:
        _compiled(expression)
    except CompileError as fault:
        yield invalid(path, expression, f"compilation failed: {fault}")
    except ValueError as fault:
        yield invalid(path, expression, str(fault))
