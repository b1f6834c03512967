"""A real control plane on this machine: etcd and kube-apiserver, and kube-controller-manager on request.

    with ControlPlane() as plane:
        plane.kubectl("get", "namespaces")

This is a launcher, so it blocks and polls; the tests that use it do not.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from konverge.errors import ControlPlaneError
from konverge.testing import flags
from konverge.testing.binaries import NEEDED, find_binaries
from konverge.testing.credentials import Credentials
from konverge.testing.https import HttpResponse, is_ok, send_request
from konverge.testing.process_guard import ProcessGuard
from konverge.testing.servers import Server, free_port

__all__ = ["ControlPlane"]


class ControlPlane:
    """etcd and kube-apiserver on loopback, with TLS, RBAC, an admin, and a temporary directory.

    Promises:

    - inside `with` the API server is ready and the namespace "default" exists; with `controller_manager` the
      controllers run, and "default" has its service account;
    - after `with`, or after this process has ended for whatever reason, no process and no file of it is left;
    - a failed start is one `ControlPlaneError` that ends with the end of the log; it leaves nothing behind either.

    Without a controller manager nothing acts on objects: no service accounts, no garbage collection, deleted namespaces
    stay in Terminating, and the aggregated roles (view, edit, admin) are empty.

    `audit` writes a log of all requests. `port` is the port of the API server (0 picks a free one). `extra_flags` are
    appended to the flags of kube-apiserver, `manager_flags` to those of kube-controller-manager. `binaries` is the
    directory of the programs, found by default.
    """

    def __init__(
        self,
        *,
        controller_manager: bool = False,
        audit: bool = False,
        port: int = 0,
        extra_flags: Iterable[str] = (),
        manager_flags: Iterable[str] = (),
        binaries: Path | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self._with_manager = controller_manager
        self._with_audit = audit
        self._port = port
        self._extra_flags = tuple(extra_flags)
        self._manager_flags = tuple(manager_flags)
        self._binaries = binaries
        self._start_timeout = start_timeout
        self._undo: ExitStack | None = None

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it is ready."""
        if self._undo is not None:
            raise ControlPlaneError(
                "start control plane: it is already running (create another ControlPlane for a second one)"
            )
        needed = (*NEEDED, "kube-controller-manager") if self._with_manager else NEEDED
        self._programs = find_binaries(needed, directory=self._binaries)
        with ExitStack() as undo:
            guard = ProcessGuard()
            undo.callback(guard.close)
            self._credentials = Credentials(guard.directory)
            self._start_servers(guard, undo)
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """Stop the servers in reverse order and remove the files. Does nothing when it is not running."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo.close()

    @property
    def credentials(self) -> Credentials:
        """Every certificate, key and token, and the authorities that sign more."""
        self._check_running()
        return self._credentials

    @property
    def directory(self) -> Path:
        """The directory of its files: a log for each program, certificates, etcd's data."""
        return self.credentials.directory

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the running servers, by program."""
        self._check_running()
        return {server.name: server.pid for server in self._servers if server.pid is not None}

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.credentials.url

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.credentials.admin_kubeconfig

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that signed the API server's certificate."""
        return self.credentials.authority.ca.cert

    @property
    def admin_cert(self) -> Path:
        """The admin's client certificate."""
        return self.credentials.admin.cert

    @property
    def admin_key(self) -> Path:
        """The key of the admin's client certificate."""
        return self.credentials.admin.key

    @property
    def admin_token(self) -> str:
        """A bearer token of the admin."""
        return self.credentials.admin_token

    @property
    def audit_log(self) -> Path:
        """The audit log, a JSON event per line; a request is written to it before its response is sent."""
        if not self._with_audit:
            raise ControlPlaneError("read audit log: auditing is off (write ControlPlane(audit=True))")
        return self.directory / "audit.jsonl"

    def kubeconfig_for(self, user: str, *, groups: Iterable[str] = ()) -> Path:
        """Write a kubeconfig for that user in those groups; RBAC applies to it."""
        return self.credentials.kubeconfig_for(user, groups=groups)

    def kubectl(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:  # noqa: A002
        """Run kubectl as the admin, or as the user of `kubeconfig`, and return its output.

        Raises:
            ControlPlaneError: it failed; the message is its error output.
        """
        # Without the caches and preferences of the user who runs the tests, so that the output is always the same.
        isolation = {"KUBECACHEDIR": str(self.directory / "kubectl-cache"), "KUBERC": "off"}
        completed = subprocess.run(
            [self._programs / "kubectl", "--kubeconfig", kubeconfig or self.kubeconfig, *arguments],
            input=input or "",
            capture_output=True,
            text=True,
            env={**os.environ, **isolation},
            check=False,
        )
        if completed.returncode:
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: {completed.stderr.strip()}")
        return completed.stdout

    def request(
        self, method: str, path: str, *, body: object = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send one request as the admin, with `body` as JSON."""
        tls = self.credentials.admin_context()
        content = None if body is None else json.dumps(body).encode()
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        return send_request(self._apiserver.port, method, path, tls=tls, headers=all_headers, body=content)

    def stop_apiserver(self) -> None:
        """Kill the API server like a crash: connections break, etcd keeps the data."""
        self._check_running()
        self._apiserver.kill()

    def start_apiserver(self) -> None:
        """Restart the API server on the same port and data, and wait until it is ready."""
        self._check_running()
        self._apiserver.start(deadline=time.monotonic() + self._start_timeout)

    def compact(self) -> int:
        """Compact etcd to its newest revision, and return that revision.

        The API server still serves the older versions in its watch cache. To get a 410, restart it after the
        compaction, or run it without the watch cache of that resource (``--watch-cache-sizes=configmaps#0``).
        """
        newest = int(self.call_etcd("kv/range", {"key": base64.b64encode(b"\0").decode()})["header"]["revision"])
        self.call_etcd("kv/compaction", {"revision": str(newest), "physical": True})
        return newest

    def call_etcd(self, call: str, body: Mapping[str, object]) -> Any:
        """Call etcd's own API, such as "kv/range", and return its response; keys and values are base64."""
        tls = self.credentials.etcd_context()
        response = send_request(self._etcd.port, "POST", f"/v3/{call}", tls=tls, body=json.dumps(body).encode())
        if response.status != 200:
            raise ControlPlaneError(f"call etcd {call}: {response.body.decode(errors='replace').strip()}")
        return response.json()

    def _check_running(self) -> None:
        if self._undo is None:
            raise ControlPlaneError("use control plane: it is not running (write `with ControlPlane() as plane:`)")

    def _start_servers(self, guard: ProcessGuard, undo: ExitStack) -> None:
        deadline = time.monotonic() + self._start_timeout
        self._servers: list[Server] = []

        def start(server: Server) -> Server:
            undo.callback(server.stop)
            server.start(deadline=deadline)
            self._servers.append(server)
            return server

        self._etcd = start(self._make_etcd(guard))
        self._apiserver = start(self._make_apiserver(guard))
        self._credentials.write_admin_kubeconfig(self._apiserver.port)
        if self._with_manager:
            start(self._make_manager(guard))

    def _make_etcd(self, guard: ProcessGuard) -> Server:
        credentials = self._credentials
        tls = credentials.etcd_context()
        return Server(
            self._programs / "etcd",
            lambda port: flags.etcd_flags(credentials, client_port=port, peer_port=free_port()),
            lambda port: is_ok(port, "/health", tls=tls),
            guard=guard,
        )

    def _make_apiserver(self, guard: ProcessGuard) -> Server:
        credentials = self._credentials
        tls = credentials.admin_context()
        extra = [] if self._with_manager else flags.without_service_accounts()
        extra += flags.audit_flags(credentials.directory) if self._with_audit else []
        extra += self._extra_flags
        return Server(
            self._programs / "kube-apiserver",
            lambda port: flags.apiserver_flags(credentials, port=port, etcd_port=self._etcd.port) + extra,
            # /readyz is ok a moment before the first namespaces exist.
            lambda port: is_ok(port, "/readyz", tls=tls) and is_ok(port, "/api/v1/namespaces/default", tls=tls),
            guard=guard,
            port=self._port,
        )

    def _make_manager(self, guard: ProcessGuard) -> Server:
        credentials = self._credentials
        tls = credentials.admin_context()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        return Server(
            self._programs / "kube-controller-manager",
            lambda port: [*flags.controller_manager_flags(credentials, port=port), *self._manager_flags],
            lambda port: is_ok(port, "/healthz", tls=tls) and is_ok(self._apiserver.port, account, tls=tls),
            guard=guard,
        )
