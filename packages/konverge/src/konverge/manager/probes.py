"""The HTTP server of an operator for probes, metrics, and the reconcile history of a key.

    /healthz /readyz              "ok", or the checks that failed; ?verbose shows all, ?exclude=name leaves one out
    /healthz/<name>               one check
    /metrics                      in the format of the Accept header
    /debug/why/<controller>/<namespace>/<name>     JSON; the namespace may be left out
    /debug/why /debug/why/<controller>             the keys that have a history, by controller

Rules:

1. Only GET and HEAD are allowed. Any other path is a 404.
2. Probes are public; `AccessReviews` protects metrics and debug.
3. The number of connections is limited; when it is reached the oldest without a request is closed, so that a probe
   always gets through. A connection that sends no request is closed after ten seconds.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias
from urllib.parse import unquote

from aiohttp import web

from konverge.errors import ConfigError
from konverge.listener import ConnectionLimits, Listener
from konverge.manager.health import Health, Report
from konverge.manager.metrics_access import AccessReviews
from konverge.objects import Key

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["ProbeServer", "ServingCertificate", "Why", "split_address"]

_log = logging.getLogger("konverge.manager")

Why: TypeAlias = Callable[[str, Key | None], Any | Awaitable[Any]]
"""Called with controller and key; returns plain JSON values, or nothing when it has no history of them.

Without a key it returns the keys that have a history, by controller; for all controllers if the name is "".
"""

_SHUTDOWN_TIMEOUT: Final = 1.0
_FIRST_REQUEST: Final = 10.0
_MAX_NAMED: Final = 10
_TEXT: Final = "text/plain; charset=utf-8"


class ServingCertificate(Protocol):
    """The certificate of the server: `TlsFiles` or `SelfSignedCertificate`."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context with the certificate."""
        ...

    def refresh(self) -> None:
        """Replace the certificate in the context if it must be; called for each connection."""
        ...


def split_address(address: str) -> tuple[str | None, int]:
    """Parse "host:port", ":port" (every address of this machine) or "[v6]:port".

    Raises: ValueError with the accepted forms.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ValueError(f'the address of probes is "host:port", ":8081" or "[::1]:8081", got {address!r}')
    return host.strip("[]") or None, int(port)


class ProbeServer:
    """Serves probes and metrics on one port.

    Promises: after `start` the port is bound, or an error names it; after `stop` no socket and no task is left. An
    error of a check, a metric or `why` is a response with status 500 and a line in the log.

    The server runs on the loop that starts it, and calls the functions passed to it there.
    """

    def __init__(
        self,
        address: str,
        health: Health,
        *,
        registry: CollectorRegistry | None = None,
        why: Why | None = None,
        access: AccessReviews | None = None,
        tls: ServingCertificate | None = None,
        connections: int = 256,
    ) -> None:
        self._host, self._port = split_address(address)
        self._address = address
        self._health = health
        self._registry = registry
        self._why = why
        self._access = access
        self._tls = tls
        self._limits = ConnectionLimits(connections, _FIRST_REQUEST, total=connections)
        self._server: web.Server | None = None
        self._listener: Listener | None = None

    async def start(self) -> None:
        """Start listening.

        Raises: ConfigError when the address cannot be bound, or the certificate cannot be loaded.
        """
        context = self._tls.context() if self._tls is not None else None
        self._server = web.Server(self._handle, access_log=None, handler_cancellation=True, keepalive_timeout=75)
        try:
            self._listener = await Listener.open(
                self._accept, self._host, self._port, limits=self._limits, ssl=context, backlog=128
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"probes cannot listen on {self._address}: {reason} (choose another address)") from error
        if self._access is not None:
            await self._access.open()

    async def stop(self) -> None:
        """Stop listening. Safe to call twice."""
        listener = self._listener
        server, self._server = self._server, None
        if listener is not None:
            listener.close()
        if server is not None:
            server.pre_shutdown()  # closes connections without a request in flight at once
            await server.shutdown(_SHUTDOWN_TIMEOUT)
        if listener is not None:
            await listener.drop()
        if self._access is not None:
            await self._access.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port that the server listens on; port 0 is resolved by `start`."""
        return self._port if self._listener is None else self._listener.port

    def _accept(self) -> asyncio.BaseProtocol:
        assert self._server is not None
        if self._tls is not None:
            self._tls.refresh()
        return self._server()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return _text(405, "only GET and HEAD are allowed\n", Allow="GET, HEAD")
        parts = [unquote(part) for part in request.rel_url.raw_path.removeprefix("/").split("/")]
        assert self._listener is not None
        with self._listener.serving(request.transport):
            try:
                return await self._route(request, parts)
            except Exception:
                _log.exception("probe failed", extra={"path": request.path})
                return _text(500, "internal error, see the log\n")

    async def _route(self, request: web.BaseRequest, parts: list[str]) -> web.StreamResponse:
        match parts:
            case ["healthz" | "readyz" as which, *rest] if len(rest) < 2:
                return self._probe(request, which, rest)
            case ["metrics"] if self._registry is not None:
                return await self._reject(request) or self._metrics(request)
            case ["debug", "why", *controllers] if self._why is not None and len(controllers) < 2:
                return await self._reject(request) or await self._known(*controllers)
            case ["debug", "why", controller, *key] if self._why is not None and 0 < len(key) < 3:
                return await self._reject(request) or await self._history(controller, Key(*["", *key][-2:]))
        return _text(404, "not found\n")

    def _probe(self, request: web.BaseRequest, which: str, rest: list[str]) -> web.Response:
        run_checks = self._health.live if which == "healthz" else self._health.ready
        if rest and rest[0]:
            return _one_check(run_checks(), rest[0])
        report = run_checks(exclude=request.query.getall("exclude", []))
        return _text(200 if report.ok else 500, report.text(verbose="verbose" in request.query))

    async def _reject(self, request: web.BaseRequest) -> web.Response | None:
        """Return the response to a request that is not allowed; None for one that is."""
        if self._access is None:
            return None
        decision = await self._access.authorize(request.headers.get("Authorization", ""), request.path)
        if decision.status == 200:
            return None
        headers = {"WWW-Authenticate": "Bearer"} if decision.status == 401 else {}
        return _text(decision.status, f"{decision.message}\n", **headers)

    def _metrics(self, request: web.BaseRequest) -> web.Response:
        from prometheus_client.exposition import choose_encoder

        assert self._registry is not None
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})

    async def _history(self, controller: str, key: Key) -> web.Response:
        history = await self._call_why(controller, key)
        if history:
            return _json(history)
        known = await self._call_why(controller, None)
        if known is None:
            return await self._unknown_controller(controller)
        keys = ", ".join(key for keys in known.values() for key in keys[:_MAX_NAMED]) or "no keys"
        return _text(404, f"no reconcile history of {controller} {key} (it has that of {keys})\n")

    async def _known(self, controller: str = "") -> web.Response:
        known = await self._call_why(controller, None)
        return await self._unknown_controller(controller) if known is None else _json(known)

    async def _unknown_controller(self, controller: str) -> web.Response:
        names = ", ".join(await self._call_why("", None) or ()) or "none"
        return _text(404, f"there is no controller {controller!r} (there are: {names})\n")

    async def _call_why(self, controller: str, key: Key | None) -> Any:
        assert self._why is not None
        found = self._why(controller, key)
        return await found if inspect.isawaitable(found) else found


def _json(value: Any) -> web.Response:
    return web.Response(text=json.dumps(value, indent=2, default=str) + "\n", content_type="application/json")


def _one_check(report: Report, name: str) -> web.Response:
    for result in report.results:
        if result.name == name:
            return _text(500, f"{result.reason}\n") if result.reason else _text(200, "ok")
    return _text(404, f"there is no check named {name}\n")


def _text(status: int, text: str, **headers: str) -> web.Response:
    defaults = {"Content-Type": _TEXT, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    return web.Response(status=status, body=text.encode(), headers={**defaults, **headers})
