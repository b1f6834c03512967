"""The HTTP server of a member: probes of the kubelet, and the question of another member before it joins."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from konverge_operators.database.mariadb.member.decisions import Position

__all__ = ["PORT", "LiveState", "StatusServer", "query_member"]

PORT: Final = 8008
_FRESH: Final = 10.0
_ALIVE: Final = 120.0


class LiveState:
    """What is known of this member now, and since when."""

    def __init__(self) -> None:
        self.component = False
        self.serves = False
        self.position = Position()
        self._renewed = time.monotonic()

    def renew(self) -> None:
        """Record that the loop goes on."""
        self._renewed = time.monotonic()

    def answer(self, path: str) -> tuple[int, Any]:
        """Return the code and the content for a path."""
        age = time.monotonic() - self._renewed
        if path == "/liveness":
            return 200 if age < _ALIVE else 503, {}
        if path == "/readiness":
            return 200 if self.serves and age < _FRESH else 503, {}
        component = self.component and age < _FRESH
        return 200, {"component": component, "uuid": self.position.uuid, "seqno": self.position.seqno}


class StatusServer:
    """Serves a state at an address until it is closed."""

    def __init__(self, address: str, state: LiveState) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, content = state.answer(self.path)
                body = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Write nothing: probes come every few seconds."""

        self._server = ThreadingHTTPServer((address, PORT), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def query_member(address: str, timeout: float = 2.0) -> Position | None:
    """Return the position of a member that is in the primary component; None if it is not, or does not answer."""
    try:
        with urllib.request.urlopen(f"http://{address}:{PORT}/status", timeout=timeout) as response:
            found = json.load(response)
        return Position(str(found["uuid"]), int(found["seqno"])) if found["component"] is True else None
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
