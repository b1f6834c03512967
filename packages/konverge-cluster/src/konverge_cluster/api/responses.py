"""Answers: what the server gives back, as the response of the wire's seam.

An answer has either its whole body or a stream of chunks. It can be read in the same process (it is a
`konverge.wire.messages.Response`) or be written to a socket by the HTTP front.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from konverge_cluster.api.bodies import JSON
from konverge_cluster.api.status_errors import StatusError

__all__ = ["Response", "error_response", "json_response", "text_response"]


class Response:
    """A response: status, headers in lower case, warnings, and a body that is there or on its way."""

    __slots__ = ("body", "headers", "status", "stream", "warnings")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        stream: AsyncGenerator[bytes, None] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers: dict[str, str] = dict(headers) if headers else {}
        self.stream = stream
        self.warnings: tuple[str, ...] = ()

    async def read(self) -> bytes:
        """The whole body; of a stream, all that comes until it ends."""
        if self.stream is None:
            return self.body
        return b"".join([chunk async for chunk in self.stream])

    def chunks(self) -> AsyncIterator[bytes]:
        """The body piece by piece."""
        return self.stream if self.stream is not None else _once(self.body)

    async def close(self) -> None:
        """End the stream; safe to call twice."""
        if self.stream is not None:
            await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


def json_response(status: int, document: Any) -> Response:
    return Response(status, msgspec.json.encode(document) + b"\n", {"content-type": JSON})


def text_response(status: int, text: str) -> Response:
    """A plain text, as Go's HTTP server writes its own errors."""
    headers = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
    return Response(status, text.encode(), headers)


def error_response(refusal: StatusError) -> Response:
    answer = json_response(refusal.code, refusal.status)
    answer.headers.update(refusal.headers)
    return answer
