"""Golden recordings: requests and the responses of a real server, one JSON line for each.

A recording is both the list of requests and their responses: to record again is to send the requests again and to write
the new responses. A request may refer to earlier responses:

    path    {version:x} is the resourceVersion of the response to the request labelled x, {continue:x} its token
    edit    the body is an earlier response with changes: {"of": "get a", "operations": [a JSON patch]}
    until   the request is repeated until this text is in the response: the real server does some things asynchronously

A line of a recording of webhooks also has the reviews that the request caused. In its bodies HOOKS is replaced by the
address of the webhook server, and CA_BUNDLE by its certificate authority.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from konverge_cluster.patches import apply_json_patch
from webhook_endpoint import HookServer, patch_of, review

__all__ = [
    "RECORDINGS",
    "WEBHOOKS",
    "Exchange",
    "Send",
    "golden_webhooks",
    "read_recording",
    "replay",
    "write_recording",
]

WEBHOOKS = "admissionreviews"
"""The recording of webhooks."""

RECORDINGS = Path(__file__).parent.parent / "data" / "golden"

Exchange = dict[str, Any]
Line = dict[str, Any]
Send = Callable[[str, str, dict[str, str], bytes], tuple[int, Mapping[str, str], tuple[str, ...], bytes]]
"""Sends method, path with query, headers and body; returns status, headers, warnings and body."""

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSIONED = re.compile(r"(resource version: )\d+( \(\d+\))?|(, current: )\d+")
_GENERATED = re.compile(r"\b(gen|dry)-[a-z0-9]{5}\b")
_AGE = re.compile(r"\d+s")
_ADDRESS = re.compile(r"10\.\d+\.\d+\.\d+")
_OWN_WORDS = ("gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform")


def read_recording(name: str) -> list[Line]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]


def write_recording(name: str, lines: list[Line]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (RECORDINGS / f"{name}.jsonl").write_text(text)


def replay(
    lines: list[Line], send: Send, *, timeout: float, hooks: HookServer | None = None
) -> Iterator[tuple[Line, Exchange]]:
    """Send the requests of a recording in order; yield each line with its new response, masked.

    `timeout` is how many seconds a request with `until` is repeated. `hooks` is the webhook server of a recording of
    webhooks; the responses then include the reviews that it received.
    """
    words = {"HOOKS": hooks.address, "CA_BUNDLE": hooks.ca_bundle} if hooks is not None else {}
    heard: dict[str, Any] = {}
    for line in lines:
        request = line["request"]
        before = len(hooks.seen) if hooks is not None else 0
        answer, document = _request(_replaced(request, words), heard, send, timeout)
        heard[request["label"]] = document
        if hooks is not None:
            answer["reviews"] = [] if "until" in request else [_review(each) for each in hooks.seen[before:]]
        yield line, _replaced(answer, {value: name for name, value in words.items()})


def _replaced(value: Any, words: Mapping[str, str]) -> Any:
    text = json.dumps(value)
    for word, other in words.items():
        text = text.replace(word, other)
    return json.loads(text)


def _review(call: tuple[str, dict[str, str], dict[str, Any]]) -> Any:
    path, headers, review = call
    review = json.loads(json.dumps(review))
    review["request"]["userInfo"] = sorted(review["request"]["userInfo"]["groups"])
    kept = {name: headers.get(name) for name in ("user-agent", "accept", "content-type", "accept-encoding")}
    return {"path": path, "headers": kept, "review": _masked(review)}


def golden_webhooks(directory: Path) -> HookServer:
    """Return the webhook server for recordings of webhooks."""
    added = {"op": "add", "path": "/data/mutated", "value": "yes"}
    return HookServer(
        directory,
        {
            "/ready": {"allowed": False, "status": {"message": "ready"}},
            "/deny": {"allowed": False, "status": {"message": "nope", "code": 403, "reason": "Forbidden"}},
            "/deny2": {"allowed": False},
            "/warn": {"allowed": True, "warnings": ["careful", 'say "please"']},
            "/500": lambda _asked: web.Response(status=500, text="boom"),
            "/baduid": lambda _asked: web.json_response(review("x", response={"allowed": True})),
            "/mut": patch_of([added]),
        },
    )


def _request(request: Line, heard: dict[str, Any], send: Send, timeout: float) -> tuple[Exchange, Any]:
    headers = {"user-agent": "golden/1", "accept": request.get("accept", "application/json")}
    if request.get("type"):
        headers["content-type"] = request["type"]
    path = re.sub(r"\{(version|continue):([^}]+)\}", lambda found: _earlier(heard[found[2]], found[1]), request["path"])
    body = _body(request, heard)
    give_up = time.monotonic() + timeout
    while True:
        status, came, warnings, text = send(request["method"], path, headers, body)
        if request.get("until", "").encode() in text or time.monotonic() > give_up:
            break
    kind = came.get("content-type", "")
    document = _document(text, kind, watch="watch=" in path and status == 200)
    answer = {"status": status, "type": kind, "warnings": list(warnings), "body": _masked(document)}
    return answer, document


def _earlier(document: Any, what: str) -> str:
    metadata = document["metadata"]
    return str(metadata["resourceVersion" if what == "version" else "continue"])


def _body(request: Line, heard: dict[str, Any]) -> bytes:
    if "edit" in request:
        changed = apply_json_patch(heard[request["edit"]["of"]], request["edit"]["operations"])
        return json.dumps(changed).encode()
    return (request.get("body") or "").encode()


def _document(text: bytes, kind: str, *, watch: bool) -> Any:
    if watch:
        return [event for event in map(json.loads, text.splitlines()) if not _is_plain_bookmark(event)]
    if "json" in kind:
        return json.loads(text)
    if "yaml" in kind:
        return yaml.safe_load(text)
    return text.decode() if "protobuf" not in kind else "<protobuf>"


def _is_plain_bookmark(event: Any) -> bool:
    """Report whether a bookmark only reports progress; the number of these is random."""
    return event["type"] == "BOOKMARK" and "annotations" not in event["object"].get("metadata", {})


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _masked(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, key) for each in value]
    if key == "nodePort":
        return "<port>"
    if not isinstance(value, str):
        return value
    if (key in ("resourceVersion", "continue") and value) or key in _OWN_WORDS:
        return f"<{key}>"
    if key == "cells" and _AGE.fullmatch(value):
        return "<age>"
    if key in ("clusterIP", "clusterIPs"):
        value = _ADDRESS.sub("<address>", value)
    value = _TIME.sub("<time>", _UID.sub("<uid>", value))
    return _VERSIONED.sub(r"\1\3<version>", _GENERATED.sub(r"\1-<generated>", value))
