"""A webhook server for tests: HTTPS on loopback, in a thread; what it answers depends on the path it is asked at."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from konverge.listener import Listener
from konverge.testing.certificates import Authority
from konverge.testing.leak_check import LeakCheckLoop, assert_all_closed

Review = dict[str, Any]
Answer = Callable[[Review], web.StreamResponse]

JSON = "application/json"


def review(uid: str, **top: Any) -> dict[str, Any]:
    """A review that answers; `response` is added to what identifies it."""
    response = {"uid": uid, **top.pop("response", {})}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response, **top}


def patch_of(operations: object) -> dict[str, Any]:
    """The part of a response that changes the object."""
    text = operations if isinstance(operations, bytes) else json.dumps(operations).encode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(text).decode()}


@dataclass
class HookServer:
    """Serves `responses` by path: a dict is the `response` of a review, a web.Response factory the whole answer.

    Every review is kept in `seen`, with path, query and headers, in the order in which they came.
    """

    directory: Path
    responses: dict[str, dict[str, Any] | Answer] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str], Review]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authority = Authority(self.directory, "hooks")
        self._pair = self.authority.sign("hooks", file="hooks", hosts=["127.0.0.1", "hooks.test.svc"])
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._loop, self._over = self._ready.result(60)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.ca.cert.read_bytes()).decode()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=LeakCheckLoop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pair.cert, self._pair.key)
        server, over = web.Server(self._answer), asyncio.Event()
        listener = await Listener.open(server, "127.0.0.1", 0, ssl=context)
        self.port = listener.port
        self._ready.set_result((asyncio.get_running_loop(), over))
        await over.wait()
        listener.close()
        await server.shutdown(timeout=0.1)
        await listener.drop()
        await assert_all_closed()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append((request.path_qs, headers, asked))
        answer = self.responses.get(request.path)
        if request.path == "/slow":
            await asyncio.Event().wait()
        if request.path == "/cut" and request.transport is not None:
            request.transport.abort()
        if callable(answer):
            return answer(asked)
        if answer is None:
            return web.Response(status=404, text="no such hook")
        return web.json_response(review(asked["request"]["uid"], response=answer))
