"""What a server says to a step of a script, as far as every server must say the same."""

from __future__ import annotations

import re
from typing import Any

from scripts import Step
from twoservers import Api, Reply, masked

__all__ = ["answer", "content"]

_AGE = re.compile("[0-9]s")
_COUNTS = re.compile(r"(current: |in record \(|precondition \(|resourceVersion: \")[0-9]+")


def answer(api: Api, step: Step) -> Any:
    """What a server says to a step, as far as both must say the same."""
    places = {"ns": api.namespace, "cm": api.at("configmaps"), "dep": api.at("deployments", group="apps")}
    path = re.sub(r"\{(ns|cm|dep)\}", lambda found: places[found[1]], step.path)
    reply = api.ask(step.method, path, step.body, **step.headers)
    return [reply.status, list(reply.warnings), reply.headers.get("content-type"), content(reply)]


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
    if not isinstance(value, str):
        return value
    return "<age>" if _AGE.fullmatch(value) else _COUNTS.sub(r"\1N", value)


def _once(causes: list[Any]) -> list[Any]:
    return [each for index, each in enumerate(causes) if each not in causes[:index]]
