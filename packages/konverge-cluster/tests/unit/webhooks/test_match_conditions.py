"""Match conditions: their results decide whether a webhook is called."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.cel.match_conditions import condition_errors
from konverge_cluster.webhooks.conditions import match_conditions_hold
from konverge_cluster.webhooks.configurations import Webhook
from virtual_server import VirtualTimeServer

YES = "object.metadata.name == 'web'"
NO = "request.operation == 'DELETE'"
BROKEN = "object.spec.size == 1"
VARIABLES: dict[str, Any] = {
    "object": {"metadata": {"name": "web"}},
    "oldObject": None,
    "request": {"operation": "CREATE"},
}


def webhook(*expressions: str, policy: str = "Fail") -> Webhook:
    conditions = [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]
    return Webhook.read(
        "x",
        {
            "name": "x.hooks.test",
            "clientConfig": {"url": "https://x"},
            "matchConditions": conditions,
            "failurePolicy": policy,
            "matchPolicy": "Exact",
            "namespaceSelector": {},
            "objectSelector": {},
            "timeoutSeconds": 1,
        },
    )


def request() -> AdmissionRequest:
    strategy = VirtualTimeServer().server.cluster.registry.find("", "v1", "configmaps")
    assert strategy is not None
    return AdmissionRequest(strategy, "CREATE", "default", "web", {"metadata": {}})


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([YES, YES], True),
        ([YES, NO], False),
        ([BROKEN, NO], False),
        ([NO, BROKEN], False),
        (["oldObject == null"], True),
    ],
)
def test_all_conditions_must_be_true_and_a_false_one_decides(expressions: list[str], expected: bool) -> None:
    assert match_conditions_hold(webhook(*expressions), VARIABLES, request()) is expected


def test_a_failing_condition_rejects_the_write() -> None:
    with pytest.raises(StatusError) as caught:
        match_conditions_hold(webhook(YES, BROKEN), VARIABLES, request())

    assert caught.value.code == 403
    text = f"expression '{BROKEN}' resulted in error: no such key: spec"
    assert str(caught.value) == f'configmaps "web" is forbidden: {text}'


def test_a_failing_condition_skips_a_webhook_with_failure_policy_ignore() -> None:
    assert match_conditions_hold(webhook(YES, BROKEN, policy="Ignore"), VARIABLES, request()) is False


def test_expressions_are_checked_when_the_configuration_is_written() -> None:
    conditions = [{"name": "a", "expression": YES}, {"name": "b", "expression": "authorizer.path('/x')"}]

    found = list(condition_errors(conditions, "webhooks[0].matchConditions"))

    assert [each.path for each in found] == ["webhooks[0].matchConditions[1].expression"]
    assert "undeclared reference to 'authorizer'" in str(found[0])


def test_at_most_64_conditions_are_allowed() -> None:
    conditions = [{"name": f"c{index}", "expression": YES} for index in range(65)]

    found = list(condition_errors(conditions, "matchConditions"))

    assert [str(each) for each in found] == ["matchConditions: Too many: 65: must have at most 64 items"]
