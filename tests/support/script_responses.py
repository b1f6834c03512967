"""Responses to the steps of a script, reduced to the parts that must be equal on every server."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from scripts import Step
from two_servers import Api, ApiResponse, masked

__all__ = ["content", "send_step"]

_PLACE = re.compile(r"\{(ns|cm|dep)\}")
_AGE = re.compile("[0-9]s")
_COUNTS = re.compile(r"(current: |in record \(|precondition \(|resourceVersion\W{3,6})[0-9]+")


def send_step(api: Api, step: Step) -> Any:
    """Send a step; return the parts of the response that must be equal on both servers."""
    places = {"ns": api.namespace, "cm": api.at("configmaps"), "dep": api.at("deployments", group="apps")}
    path = _PLACE.sub(lambda found: places[found[1]], step.path)
    if step.method == "UNTIL":
        return _patiently(api, path)
    body = step.body
    if isinstance(body, dict) and "{ns}" in json.dumps(body):
        body = json.loads(json.dumps(body).replace("{ns}", api.namespace))
    reply = api.request(step.method, path, body, **step.headers)
    return [reply.status, list(reply.warnings), reply.headers.get("content-type"), content(reply)]


def _patiently(api: Api, path: str) -> int:
    for _ in range(200):
        status = api.request("GET", path).status
        if status == 200:
            break
        time.sleep(0.05)
    return status


def content(reply: ApiResponse) -> Any:
    """Return the body without the parts that may differ; plain text is returned unchanged."""
    try:
        value = reply.json()
    except ValueError:
        value = reply.body.decode()
    return _plain(masked(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # The number of equal causes depends on how often the real server repeats a validation.
        causes = {"causes": _once(value["causes"])} if isinstance(value.get("causes"), list) else {}
        return {name: _plain(each) for name, each in (value | causes).items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, str):
        return value
    return "<age>" if _AGE.fullmatch(value) else _COUNTS.sub(r"\1N", value)


def _once(causes: list[Any]) -> list[Any]:
    return [each for index, each in enumerate(causes) if each not in causes[:index]]
