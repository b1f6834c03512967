"""A real server that is not there: what it answered once, played back.

`Recorder` passes requests on to a real server and notes the answers; `Recorded` gives them again, to the same requests
in the same order. The order counts only among equal requests, so tests may be left out. `make golden` records anew.
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

from two_servers import Api, Reply, masked

__all__ = ["Recorded", "Recorder", "is_recording"]

Answers = dict[str, list[Any]]

_DATA = Path(__file__).parents[1] / "data"


def is_recording() -> bool:
    """Whether the answers of the real server shall be kept."""
    return bool(os.environ.get("KONVERGE_RECORD"))


def _file(name: str) -> Path:
    return _DATA / f"{name}.json.gz"


def _key(method: str, path: str, headers: dict[str, str], body: bytes) -> str:
    """What tells a request from others; uids, versions and times in it do not."""
    kinds = [headers.get("accept", ""), headers.get("content-type", "")]
    try:
        content = json.dumps(masked(json.loads(body)), sort_keys=True) if body else ""
    except ValueError:
        content = body.decode()
    return hashlib.sha256("\n".join([method, path, *kinds, content]).encode()).hexdigest()[:12]


def _told(reply: Reply) -> list[Any]:
    try:
        return [reply.status, list(reply.warnings), masked(reply.json())]
    except ValueError:
        return [reply.status, list(reply.warnings), None, reply.body.decode()]


class Recorder(Api):
    """A server whose answers are noted."""

    name = "real"

    def __init__(self, api: Api, recording: str) -> None:
        super().__init__()
        self._api = api
        self._recording = recording
        self._answers: Answers = defaultdict(list)
        self._last: dict[str, Any] | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While somebody waits, only the last answer to each question counts: how often it is asked is chance."""
        last: dict[str, Any] = {}
        self._last = last
        yield
        self._last = None
        for key, told in last.items():
            self._answers[key].append(told)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        reply = self._api.send(method, path, headers, body)
        key, told = _key(method, path, headers, body), _told(reply)
        if self._last is None:
            self._answers[key].append(told)
        else:
            self._last[key] = told
        return reply

    def keep(self) -> None:
        """Write the answers to their file."""
        text = json.dumps(self._answers, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        _file(self._recording).write_bytes(gzip.compress(text, mtime=0))


class Recorded(Api):
    """The server of a recording. The last answer to a request is given from then on."""

    name = "recorded"

    def __init__(self, recording: str) -> None:
        super().__init__()
        self._answers: Answers = json.loads(gzip.decompress(_file(recording).read_bytes()))

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        answers = self._answers.get(_key(method, path, headers, body))
        assert answers, f"never recorded: {method} {path} {body.decode()[:200]}: run `make golden`"
        status, warnings, content, *text = answers[0] if len(answers) == 1 else answers.pop(0)
        raw = text[0].encode() if text else json.dumps(content).encode()
        return Reply(status, {}, tuple(warnings), raw)
