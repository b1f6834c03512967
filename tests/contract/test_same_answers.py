"""The embedded server answers as the real one does, word for word: status, warnings, body."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scripts import SCRIPTS, Step
from twoservers import Api, Reply, masked

_COUNTS = re.compile(r"(current: |in record \(|precondition \(|resourceVersion: \")[0-9]+")


@pytest.mark.parametrize("name", SCRIPTS)
def test_both_servers_give_the_same_answers(both: tuple[Api, Api], name: str) -> None:
    embedded, real = both

    for number, step in enumerate(SCRIPTS[name]):
        ours, theirs = (answer(api, step) for api in (embedded, real))

        assert ours == theirs, f"step {number}: {step.method} {step.path} {str(step.body)[:200]}"


def answer(api: Api, step: Step) -> Any:
    """What a server says to a step, as far as both must say the same."""
    places = {"ns": api.namespace, "cm": api.at("configmaps"), "dep": api.at("deployments", group="apps")}
    path = re.sub(r"\{(ns|cm|dep)\}", lambda found: places[found[1]], step.path)
    reply = api.ask(step.method, path, step.body, **step.headers)
    return reply.status, reply.warnings, reply.headers.get("content-type"), content(reply)


def content(reply: Reply) -> Any:
    """The body with what may differ taken out; a text that is no JSON as it is."""
    try:
        value = reply.json()
    except ValueError:
        value = reply.body.decode()
    return _plain(masked(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # How often the server lists the same cause depends on how often its validation looks.
        causes = {"causes": _once(value["causes"])} if isinstance(value.get("causes"), list) else {}
        return {name: _plain(each) for name, each in (value | causes).items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _COUNTS.sub(r"\1N", value) if isinstance(value, str) else value


def _once(causes: list[Any]) -> list[Any]:
    return [each for index, each in enumerate(causes) if each not in causes[:index]]
