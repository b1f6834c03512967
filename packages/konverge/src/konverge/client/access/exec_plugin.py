"""Credentials from a program: the client.authentication.k8s.io exec plugins of a kubeconfig.

The program gets the cluster in KUBERNETES_EXEC_INFO and prints an ExecCredential with a token, a certificate with its
key, or both. Rules:

1. There is one run at a time in an event loop: concurrent requests share it.
2. The credentials are used until their expirationTimestamp by the wall clock, or until the server rejects them.
3. Between two runs are at least some seconds, whatever the server and the clocks say: a run may be a login.
4. A run has a deadline and a limit for its output. When it exceeds either, it is killed with its child processes.
5. Errors never contain its output. It inherits standard error, so its messages appear beside our log.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from konverge.client.access.credentials import Identity, bearer
from konverge.client.access.locations import Location
from konverge.client.access.plugin_process import find_program, run_program
from konverge.client.access.tls import check_pair
from konverge.errors import ConfigError

__all__ = ["API_VERSIONS", "ExecPlugin", "ExecSpec"]

GROUP = "client.authentication.k8s.io/"
API_VERSIONS = (f"{GROUP}v1", f"{GROUP}v1beta1")

MIN_RUN_INTERVAL = 10.0
"""Seconds after a run without another one: it would return the same credentials."""

DEADLINE = 10.0
"""Seconds for a run; the environment variable KONVERGE_EXEC_TIMEOUT sets another number."""

INTERACTIVE_DEADLINE = 300.0
"""Seconds for a run in which a person logs in."""


@dataclass(frozen=True)
class ExecSpec:
    """How to run a plugin. Arguments and environment may contain secrets: the repr does not show them."""

    command: str
    location: Location
    api_version: str
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "Never"
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """The cluster as the plugin gets it, if `provideClusterInfo` is set."""


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class _CachedIdentity:
    identity: Identity
    expires: datetime | None
    created_at: float


def _stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ExecPlugin:
    """The credentials of a plugin, cached until they expire.

    Both methods raise ConfigError if the plugin is missing, fails, hangs, or prints no ExecCredential.
    """

    def __init__(
        self,
        spec: ExecSpec,
        *,
        environ: Mapping[str, str] | None = None,
        terminal: Callable[[], bool] = _stdin_is_terminal,
        now: Callable[[], datetime] = _utc_now,
        clock: Callable[[], float] = time.monotonic,
        deadline: float | None = None,
    ) -> None:
        self._spec = spec
        self._environ = os.environ if environ is None else environ
        self._terminal = terminal
        self._now = now
        self._clock = clock
        self._deadline = deadline
        self._cached: _CachedIdentity | None = None
        # A client on another thread has its own event loop, and a lock belongs to one loop.
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"ExecPlugin({self._spec.command!r})"

    def current(self) -> Identity | None:
        """Return the cached credentials, None if there are none or they have expired."""
        cached = self._usable()
        return cached.identity if cached is not None else None

    async def identity(self) -> Identity:
        """Return the cached credentials; run the plugin first if there are none or they have expired."""
        if (cached := self._usable()) is not None:
            return cached.identity
        # Held across the run: those who wait for the lock use its result.
        async with self._lock():
            cached = self._usable() or await self._run()
        return cached.identity

    async def renew(self, rejected: Identity) -> Identity | None:
        """Run the plugin again, unless it ran since the rejected request or just before it."""
        async with self._lock():
            cached = self._cached
            if cached is None or (cached.identity == rejected and not self._just_ran(cached)):
                cached = await self._run()
        return cached.identity if cached.identity != rejected else None

    def _lock(self) -> asyncio.Lock:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def _usable(self) -> _CachedIdentity | None:
        cached = self._cached
        if cached is None or cached.expires is None or self._now() <= cached.expires or self._just_ran(cached):
            return cached
        return None

    def _just_ran(self, cached: _CachedIdentity) -> bool:
        return self._clock() - cached.created_at < MIN_RUN_INTERVAL

    async def _run(self) -> _CachedIdentity:
        spec = self._spec
        interactive = self._interactive()
        program = find_program(spec.command, self._environ.get("PATH", ""))
        if program is None:
            hint = f": {spec.install_hint}" if spec.install_hint else ""
            raise self._error(f"the program was not found{hint}")
        info = {"kind": "ExecCredential", "apiVersion": spec.api_version, "spec": self._info(interactive)}
        try:
            output = await run_program(
                (program, *spec.args),
                environ={
                    **self._environ,
                    **spec.env,
                    "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
                },
                interactive=interactive,
                deadline=self._deadline or (INTERACTIVE_DEADLINE if interactive else DEADLINE),
            )
        except ConfigError as error:
            raise self._error(str(error)) from error.__cause__
        self._cached = self._read(output)
        return self._cached

    def _interactive(self) -> bool:
        mode = self._spec.interactive_mode
        if mode == "Never":
            return False
        terminal = self._terminal()
        if mode == "Always" and not terminal:
            raise self._error("it needs a terminal (interactiveMode: Always), and standard input is none")
        return terminal

    def _info(self, interactive: bool) -> dict[str, Any]:
        cluster = {} if self._spec.cluster is None else {"cluster": self._spec.cluster}
        return {**cluster, "interactive": interactive}

    def _read(self, output: bytes) -> _CachedIdentity:
        try:
            credential = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.ValidationError as error:
            raise self._error(f"its output is not an ExecCredential: {error}") from None
        except msgspec.DecodeError:
            raise self._error("its output is not JSON") from None
        self._check_version(credential)
        status = credential.status
        if status is None:
            raise self._error("its output has no status")
        return _CachedIdentity(self._identity(status), status.expiration_timestamp, self._clock())

    def _check_version(self, credential: _ExecCredential) -> None:
        if credential.kind != "ExecCredential":
            raise self._error("its output is not of kind ExecCredential")
        if credential.api_version != self._spec.api_version:
            # Only a known version is quoted: the output may contain anything.
            known = credential.api_version if credential.api_version in API_VERSIONS else "another apiVersion"
            raise self._error(f"expected an output of {self._spec.api_version}, got {known}")

    def _identity(self, status: _Status) -> Identity:
        certificate, key = status.client_certificate_data or "", status.client_key_data or ""
        if bool(certificate) != bool(key):
            raise self._error("its output has a certificate or a key, not both")
        if not certificate and not status.token:
            raise self._error("its output has neither a token nor a certificate")
        location = Location(self._description())
        pair = None
        if certificate:
            pair = check_pair(
                certificate.encode(),
                key.encode(),
                certificate_location=location.child("status.clientCertificateData"),
                key_location=location.child("status.clientKeyData"),
            )
        header = bearer(status.token, location.child("status.token")) if status.token else None
        return Identity(header, pair)

    def _description(self) -> str:
        return f"{self._spec.location.file}: exec plugin {self._spec.command} of {self._spec.location.field}"

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"{self._description()}: {what}")
