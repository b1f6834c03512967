"""Match conditions: CEL expressions that decide, after all other rules, whether a webhook is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.cel.match_conditions import compile_condition
from konverge_cluster.webhooks.configurations import Webhook

__all__ = ["match_conditions_hold"]


def match_conditions_hold(webhook: Webhook, variables: Mapping[str, Any], request: AdmissionRequest) -> bool:
    """Report whether all match conditions of a webhook are true; a false one decides even if another one fails.

    Raises: StatusError 403 when one fails, none is false, and the failure policy is Fail.
    """
    from konverge_cluster.cel.values import EvaluationError

    faults: list[str] = []
    for _, expression in webhook.conditions:
        try:
            if not compile_condition(expression.strip()).evaluate(variables):
                return False
        except EvaluationError as error:
            faults.append(f"expression '{expression}' resulted in error: {error}")
    if not faults:
        return True
    if webhook.ignores_failure:
        return False
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]"
    kind = request.strategy.info.kind
    raise status_errors.forbidden(kind.group, kind.plural, request.name, listed)
