"""A transport with scripted responses that records requests, for tests of the client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from konverge.errors import KonvergeError
from konverge.wire import BufferedResponse, Request, Response

ScriptedResponse = BufferedResponse | KonvergeError | Callable[[Request], BufferedResponse]


def ok(document: Any = None, *, warnings: tuple[str, ...] = ()) -> BufferedResponse:
    return BufferedResponse(200, json.dumps(document if document is not None else {}).encode(), warnings=warnings)


def refusal(code: int, reason: str = "", message: str = "no", **headers: str) -> BufferedResponse:
    status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
    return BufferedResponse(code, json.dumps(status).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


class ScriptedTransport:
    """Returns one response after another; the last one is repeated."""

    def __init__(self, *responses: ScriptedResponse) -> None:
        self._responses = list(responses)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        response = self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]
        if isinstance(response, KonvergeError):
            raise response
        return response(request) if callable(response) else response

    async def close(self) -> None:
        pass

    @property
    def last(self) -> Request:
        return self.requests[-1]

    def sent(self) -> Any:
        return json.loads(self.last.body)
