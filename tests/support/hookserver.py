"""A webhook server for tests: HTTPS on loopback, in a thread; what it answers depends on the path it is asked at."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from konverge.testing.certificates import Authority

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
        self._pair = self.authority.issue("hooks", file="hooks", hosts=["127.0.0.1", "hooks.test.svc"])
        self._transports: set[asyncio.Transport] = set()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.ca.cert.read_bytes()).decode()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._stop(runner))
        self._loop.close()

    async def _stop(self, runner: web.ServerRunner) -> None:
        await runner.cleanup()
        # A goodbye in TLS needs an answer, and whoever was called may keep the connection for later calls.
        for transport in self._transports:
            transport.abort()
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.01)

    async def _start(self) -> web.ServerRunner:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pair.cert, self._pair.key)
        runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port: int = runner.addresses[0][1]
        return runner

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.transport is not None:
            self._transports.add(request.transport)
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
