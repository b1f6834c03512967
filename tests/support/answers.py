"""What a server says to a step of a script, as far as every server must say the same."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from scripts import Step
from two_servers import Api, Reply, masked

__all__ = ["answer", "content"]

_PLACE = re.compile(r"\{(ns|cm|dep)\}")
_AGE = re.compile("[0-9]s")
_COUNTS = re.compile(r"(current: |in record \(|precondition \(|resourceVersion\W{3,6})[0-9]+")


def answer(api: Api, step: Step) -> Any:
    """What a server says to a step, as far as both must say the same."""
    places = {"ns": api.namespace, "cm": api.at("configmaps"), "dep": api.at("deployments", group="apps")}
    path = _PLACE.sub(lambda found: places[found[1]], step.path)
    if step.method == "UNTIL":
        return _patiently(api, path)
    body = step.body
    if isinstance(body, dict) and "{ns}" in json.dumps(body):
        body = json.loads(json.dumps(body).replace("{ns}", api.namespace))
    reply = api.ask(step.method, path, body, **step.headers)
    return [reply.status, list(reply.warnings), reply.headers.get("content-type"), content(reply)]


def _patiently(api: Api, path: str) -> int:
    for _ in range(200):
        status = api.ask("GET", path).status
        if status == 200:
            break
        time.sleep(0.05)
    return status


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
