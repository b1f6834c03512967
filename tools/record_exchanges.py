"""Record the exchanges in tests/data/golden: send the requests to a real API server and write its responses.

    python tools/record_exchanges.py [name ...]

Each recording uses its own control plane, so that none depends on another.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from both_servers import RealServer
from golden import RECORDINGS, WEBHOOKS, Send, golden_webhooks, read_recording, replay, write_recording
from konverge.testing import ControlPlane


def sender(server: RealServer) -> Send:
    """Return a function that sends a request to the server."""

    def send(
        method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], tuple[str, ...], bytes]:
        response = server.request(method, path, body or None, headers=headers)
        return response.status, response.headers, response.warnings, response.body

    return send


def record(name: str) -> int:
    """Record one file; return the number of requests."""
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as directory:
        server = RealServer(plane)
        hooks = golden_webhooks(Path(directory)) if name == WEBHOOKS else None
        played = replay(read_recording(name), sender(server), timeout=10, hooks=hooks)
        lines = [{"request": line["request"], "answer": answer} for line, answer in played]
        server.close()
        if hooks is not None:
            hooks.close()
    write_recording(name, lines)
    return len(lines)


def main(names: list[str]) -> None:
    for name in names or sorted(path.stem for path in RECORDINGS.glob("*.jsonl")):
        sys.stdout.write(f"{name}: {record(name)} responses of a real server\n")


if __name__ == "__main__":
    main(sys.argv[1:])
