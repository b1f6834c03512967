"""The Widget operator as a separate process: started, frozen, killed, and checked from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

import widget_operator
from konverge.certificates import Authority
from konverge.testing import ControlPlane
from konverge.testing.fault_proxy import FaultProxy
from konverge.testing.servers import free_port

__all__ = [
    "AuditedRequest",
    "OperatorProcess",
    "RotatingProxy",
    "audit",
    "audited_writes",
    "kubeconfig_of",
    "operator_process",
    "swap",
]

_IGNORED = ("events", "leases", "selfsubjectaccessreviews")


@dataclass(frozen=True)
class AuditedRequest:
    """One request in the audit log of the API server."""

    user: str
    received: float
    verb: str
    resource: str
    name: str
    code: int
    uri: str

    @property
    def lists(self) -> bool:
        """Whether a whole collection is requested, as a list or as the start of a watch."""
        return self.verb == "list" or "sendInitialEvents" in self.uri


def audit(plane: ControlPlane, namespace: str) -> list[AuditedRequest]:
    """Return the requests of a namespace, in order of arrival."""
    found = []
    for line in plane.audit_log.read_text().splitlines():
        if f'"namespace":"{namespace}"' not in line or not line.endswith("}"):
            continue
        event = json.loads(line)
        reference = event.get("objectRef", {})
        found.append(
            AuditedRequest(
                user=event["user"]["username"],
                received=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
                verb=event["verb"],
                resource=reference.get("resource", ""),
                name=reference.get("name", ""),
                code=event.get("responseStatus", {}).get("code", 0),
                uri=event["requestURI"],
            )
        )
    return sorted(found, key=lambda one: one.received)


def audited_writes(plane: ControlPlane, namespace: str, *users: str) -> list[AuditedRequest]:
    """Return the writes of these users, without leases and events."""
    return [
        one
        for one in audit(plane, namespace)
        if one.user in users and one.verb not in ("get", "list", "watch") and one.resource not in _IGNORED
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
        """Return the lines of the ledger: a verb, a key, a uid, and a time."""
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        return [(word, key, uid, float(at)) for word, key, uid, at in map(str.split, lines)]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> int:
        """Wait until the process has ended; return the exit code."""
        return await asyncio.to_thread(self._process.wait)

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))


def kubeconfig_of(path: Path, server: str, *, ca: Path, **user: str) -> Path:
    """Write a kubeconfig that names files; `user` has the credentials, with underscores for hyphens."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "test", "user": {name.replace("_", "-"): value for name, value in user.items()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "default"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def swap(directory: Path, **files: bytes) -> None:
    """Replace files atomically as a kubelet does: a new directory, and a link that points to it.

    The files are then found in `directory/..data`; underscores in their names are dots.
    """
    fresh = directory / f"..{time.time_ns()}"
    fresh.mkdir(parents=True)
    for name, content in files.items():
        (fresh / name.replace("_", ".")).write_bytes(content)
    link = directory / "..fresh"
    link.symlink_to(fresh.name)
    link.replace(directory / "..data")


class RotatingProxy(FaultProxy):
    """A proxy whose certificate authority can be replaced."""

    @property
    def ca(self) -> bytes:
        """The CA certificate that clients have to trust."""
        return self._authority.certificate

    def make_authority(self) -> bytes:
        """Create the next authority; return its CA certificate."""
        self._authority = Authority("konverge-fault-proxy-ca")
        return self.ca

    async def restart(self) -> None:
        """Close every connection, and listen again with a certificate of the current authority."""
        await self.stop_listening()
        await self.start_listening()


@contextmanager
def operator_process(
    kubeconfig: Path, directory: Path, *, namespace: str, identity: str = "", name: str = "operator", lease: int = 6
) -> Iterator[OperatorProcess]:
    """Run an operator process while the block runs. With an identity it takes part in leader election."""
    port = free_port()
    ledger, log = directory / "ledger", directory / f"{name}.log"
    command = [sys.executable, str(widget_operator.__file__), f"--kubeconfig={kubeconfig}", f"--ledger={ledger}"]
    command += [f"--probes=127.0.0.1:{port}", f"--namespace={namespace}"]
    command += [f"--leader-elect={identity}", f"--lease={lease}"] if identity else []
    with log.open("ab") as out:
        # A pipe: when this run is killed it closes, and the operator ends.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)
        try:
            yield OperatorProcess(process, log, ledger, port)
        finally:
            process.kill()
            process.communicate()
