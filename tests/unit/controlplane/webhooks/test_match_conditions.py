"""Match conditions: how their outcomes decide, whatever language they are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from embeddedplane import Plane

from konverge.controlplane.api.admission import AdmissionRequest
from konverge.controlplane.api.refusals import Refusal
from konverge.controlplane.webhooks.conditions import Condition, condition_problems, holds
from konverge.controlplane.webhooks.configurations import Webhook


def compile_word(expression: str) -> Condition:
    """A language of three words: yes, no, and broken, which fails when it is asked."""

    def condition(_variables: Mapping[str, Any]) -> bool:
        if expression == "broken":
            raise ValueError("expression 'broken' resulted in error: no such key")
        return expression == "yes"

    if expression not in ("yes", "no", "broken"):
        raise ValueError(f"undeclared reference to '{expression}'")
    return condition


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
    strategy = Plane().server.cluster.registry.find("", "v1", "configmaps")
    assert strategy is not None
    return AdmissionRequest(strategy, "CREATE", "default", "web", {"metadata": {}})


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [(["yes", "yes"], True), (["yes", "no"], False), (["broken", "no"], False), (["no", "broken"], False)],
)
def test_all_must_hold_and_one_that_is_false_decides(expressions: list[str], expected: bool) -> None:
    assert holds(webhook(*expressions), compile_word, {}, request()) is expected


def test_one_that_fails_forbids_the_write() -> None:
    with pytest.raises(Refusal) as caught:
        holds(webhook("yes", "broken"), compile_word, {}, request())

    assert caught.value.code == 403
    text = "expression 'broken' resulted in error: no such key"
    assert str(caught.value) == f'configmaps "web" is forbidden: {text}'


def test_one_that_fails_skips_a_webhook_whose_failures_are_ignored() -> None:
    assert holds(webhook("yes", "broken", policy="Ignore"), compile_word, {}, request()) is False


def test_expressions_are_checked_when_the_configuration_is_written() -> None:
    conditions = [{"name": "a", "expression": "yes"}, {"name": "b", "expression": "maybe"}]

    found = list(condition_problems(conditions, "webhooks[0].matchConditions", compile_word))

    assert [str(each) for each in found] == [
        'webhooks[0].matchConditions[1].expression: Invalid value: "maybe": compilation failed: '
        "undeclared reference to 'maybe'"
    ]


def test_there_are_at_most_64() -> None:
    conditions = [{"name": f"c{index}", "expression": "yes"} for index in range(65)]

    found = list(condition_problems(conditions, "matchConditions", compile_word))

    assert [str(each) for each in found] == ["matchConditions: Too many: 65: must have at most 64 items"]
