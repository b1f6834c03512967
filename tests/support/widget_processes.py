"""The Widget operator as a process of its own: started, frozen, killed, and looked at from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import widget_operator

from konverge.testing import ControlPlane
from konverge.testing.servers import free_port

__all__ = ["Audited", "OperatorProcess", "audited_writes", "operator_process"]

_ASIDE = ("events", "leases", "selfsubjectaccessreviews")


@dataclass(frozen=True)
class Audited:
    """One request in the audit log of the API server."""

    user: str
    received: float
    verb: str
    resource: str
    name: str
    code: int


def audit(plane: ControlPlane, namespace: str) -> list[Audited]:
    """The requests of a namespace, in the order in which they came."""
    found = []
    for line in plane.audit_log.read_text().splitlines():
        if f'"namespace":"{namespace}"' not in line or not line.endswith("}"):
            continue
        event = json.loads(line)
        about = event.get("objectRef", {})
        found.append(
            Audited(
                user=event["user"]["username"],
                received=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
                verb=event["verb"],
                resource=about.get("resource", ""),
                name=about.get("name", ""),
                code=event.get("responseStatus", {}).get("code", 0),
            )
        )
    return sorted(found, key=lambda one: one.received)


def audited_writes(plane: ControlPlane, namespace: str, *users: str) -> list[Audited]:
    """The writes of these users that came through, those about leases and events aside."""
    return [
        one
        for one in audit(plane, namespace)
        if one.user in users and one.verb not in ("get", "list", "watch") and one.resource not in _ASIDE
    ]


class OperatorProcess:
    """One process of the operator, as an administrator sees it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, ledger: Path, port: int) -> None:
        self._process = process
        self._log = log
        self._ledger = ledger
        self.port = port
        self.pid = process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        return self._log.read_text()

    def ledger(self) -> list[tuple[str, str, str, float]]:
        """The lines of the ledger: a word, a key, a uid, and when."""
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        return [(word, key, uid, float(at)) for word, key, uid, at in map(str.split, lines)]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.signal(signal.SIGCONT)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> int:
        """Wait for its end; give the exit code."""
        return await asyncio.to_thread(self._process.wait)

    def memory(self) -> int:
        """Give the bytes that are resident."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))


@contextmanager
def operator_process(
    kubeconfig: Path, directory: Path, *, namespace: str = "", identity: str = "", name: str = "operator"
) -> Iterator[OperatorProcess]:
    """Start an operator; whatever becomes of it, it is gone in the end. With an identity it competes for a lease."""
    port = free_port()
    ledger, log = directory / "ledger", directory / f"{name}.log"
    command = [sys.executable, str(widget_operator.__file__), f"--kubeconfig={kubeconfig}", f"--ledger={ledger}"]
    command += [f"--probes=127.0.0.1:{port}", f"--namespace={namespace}"]
    command += [f"--leader-elect={identity}"] if identity else []
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            yield OperatorProcess(process, log, ledger, port)
        finally:
            process.kill()
            process.wait()
