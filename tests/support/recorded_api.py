"""Recorded responses of a real server.

`RecordingApi` forwards requests to a real server and records the responses. `RecordedApi` returns them for the same
requests in the same order. The order matters only among equal requests, so tests may be deselected. `make golden`
records again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from two_servers import Api, ApiResponse, masked

__all__ = ["RecordedApi", "RecordingApi", "is_recording"]

Answers = dict[str, list[Any]]

_DATA = Path(__file__).parents[1] / "data"


def is_recording() -> bool:
    """Report whether the responses of the real server are to be recorded."""
    return bool(os.environ.get("KONVERGE_RECORD"))


def _file(name: str) -> Path:
    return _DATA / f"{name}.json.gz"


def _key(method: str, path: str, headers: dict[str, str], body: bytes) -> str:
    """Return the key of a request; uids, versions and times are ignored."""
    kinds = [headers.get("accept", ""), headers.get("content-type", "")]
    try:
        content = json.dumps(masked(json.loads(body)), sort_keys=True) if body else ""
    except ValueError:
        content = body.decode()
    return hashlib.sha256("\n".join([method, path, *kinds, content]).encode()).hexdigest()[:12]


def _record_of(reply: ApiResponse) -> list[Any]:
    try:
        return [reply.status, list(reply.warnings), masked(reply.json())]
    except ValueError:
        return [reply.status, list(reply.warnings), None, reply.body.decode()]


class RecordingApi(Api):
    """A server whose responses are recorded."""

    name = "real"

    def __init__(self, api: Api, recording: str) -> None:
        super().__init__()
        self._api = api
        self._recording = recording
        self._answers: Answers = defaultdict(list)
        self._last: dict[str, Any] | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Record only the last response to each request inside the block, since the number of polls is random."""
        last: dict[str, Any] = {}
        self._last = last
        yield
        self._last = None
        for key, record in last.items():
            self._answers[key].append(record)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ApiResponse:
        reply = self._api.send(method, path, headers, body)
        key, record = _key(method, path, headers, body), _record_of(reply)
        if self._last is None:
            self._answers[key].append(record)
        else:
            self._last[key] = record
        return reply

    def save(self) -> None:
        """Write the responses to their file."""
        text = json.dumps(self._answers, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        _file(self._recording).write_bytes(gzip.compress(text, mtime=0))


class RecordedApi(Api):
    """The server of a recording. The last response to a request is returned for every further one."""

    name = "recorded"

    def __init__(self, recording: str) -> None:
        super().__init__()
        self._answers: Answers = json.loads(gzip.decompress(_file(recording).read_bytes()))

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ApiResponse:
        answers = self._answers.get(_key(method, path, headers, body))
        assert answers, f"never recorded: {method} {path} {body.decode()[:200]}: run `make golden`"
        status, warnings, content, *text = answers[0] if len(answers) == 1 else answers.pop(0)
        raw = text[0].encode() if text else json.dumps(content).encode()
        return ApiResponse(status, {}, tuple(warnings), raw)
