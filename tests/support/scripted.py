"""A transport that answers from a script and keeps what it was asked: the server's part in tests of the client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from konverge.errors import KonvergeError
from konverge.wire import BufferedResponse, Request, Response

Answer = BufferedResponse | KonvergeError | Callable[[Request], BufferedResponse]


def ok(document: Any = None, *, warnings: tuple[str, ...] = ()) -> BufferedResponse:
    return BufferedResponse(200, json.dumps(document if document is not None else {}).encode(), warnings=warnings)


def refusal(code: int, reason: str = "", message: str = "no", **headers: str) -> BufferedResponse:
    status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
    return BufferedResponse(code, json.dumps(status).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


class ScriptedTransport:
    """Gives one answer after another; the last one is given for ever."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, KonvergeError):
            raise answer
        return answer(request) if callable(answer) else answer

    async def close(self) -> None:
        pass

    @property
    def last(self) -> Request:
        return self.requests[-1]

    def sent(self) -> Any:
        return json.loads(self.last.body)
