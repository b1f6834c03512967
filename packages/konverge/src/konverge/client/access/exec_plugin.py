"""Credentials from a program: the client.authentication.k8s.io exec plugins of a kubeconfig.

The program is told about the cluster in KUBERNETES_EXEC_INFO and prints an ExecCredential with a token, a certificate
with its key, or both. Rules that hold here:

1. One run at a time in an event loop: requests that need credentials at the same moment share it.
2. What it gave is used until its expirationTimestamp by the wall clock, or until the server rejects it.
3. Two runs lie some seconds apart, whatever the server and the clocks say: a plugin may cost a login.
4. A run has a deadline and a limit for its output. When either is passed, it is killed with all it started.
5. Its output appears in no error. Its standard error is ours: what it has to say goes where our log goes.
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
from konverge.client.access.places import Place
from konverge.client.access.programs import find_program, run_program
from konverge.client.access.tls import check_pair
from konverge.errors import ConfigError

__all__ = ["API_VERSIONS", "ExecPlugin", "ExecSpec"]

GROUP = "client.authentication.k8s.io/"
API_VERSIONS = (f"{GROUP}v1", f"{GROUP}v1beta1")

RUN_PAUSE = 10.0
"""Seconds after a run in which what it gave is good enough: a second run would hardly give anything else."""

DEADLINE = 60.0
INTERACTIVE_DEADLINE = 300.0
"""Seconds for a run in which a person logs in."""


@dataclass(frozen=True)
class ExecSpec:
    """How to run a plugin. Arguments and environment may hold secrets and are not shown."""

    command: str
    place: Place
    api_version: str
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "Never"
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    """The cluster for the plugin's eyes, when it asks for it."""


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
class _Held:
    identity: Identity
    expires: datetime | None
    obtained: float


def _stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ExecPlugin:
    """Credentials that a plugin gives, kept until they expire.

    Raises ConfigError from both of its methods for a plugin that is missing, fails, hangs, or prints something else.
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
        self._held: _Held | None = None
        # A client on another thread has a loop of its own, and a lock belongs to one loop.
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"ExecPlugin({self._spec.command!r})"

    async def identity(self) -> Identity:
        """Return what the plugin gave last, after a run when there is nothing yet or it expired."""
        if (held := self._usable()) is not None:
            return held.identity
        # Held across the run: whoever waits here finds its result.
        async with self._lock():
            held = self._usable() or await self._run()
        return held.identity

    async def renew(self, rejected: Identity) -> Identity | None:
        """Run the plugin again, unless somebody did since, or did just before the server said no."""
        async with self._lock():
            held = self._held
            if held is None or (held.identity == rejected and not self._just_ran(held)):
                held = await self._run()
        return held.identity if held.identity != rejected else None

    def _lock(self) -> asyncio.Lock:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def _usable(self) -> _Held | None:
        held = self._held
        if held is None or held.expires is None or self._now() <= held.expires or self._just_ran(held):
            return held
        return None

    def _just_ran(self, held: _Held) -> bool:
        return self._clock() - held.obtained < RUN_PAUSE

    async def _run(self) -> _Held:
        spec = self._spec
        interactive = self._interactive()
        program = find_program(spec.command, self._environ.get("PATH", ""))
        if program is None:
            hint = f": {spec.install_hint}" if spec.install_hint else ""
            raise self._error(f"there is no such program{hint}")
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
        self._held = self._read(output)
        return self._held

    def _interactive(self) -> bool:
        mode = self._spec.interactive_mode
        if mode == "Never":
            return False
        terminal = self._terminal()
        if mode == "Always" and not terminal:
            raise self._error("it needs a terminal to ask on (interactiveMode: Always), and there is none")
        return terminal

    def _info(self, interactive: bool) -> dict[str, Any]:
        cluster = {} if self._spec.cluster is None else {"cluster": self._spec.cluster}
        return {**cluster, "interactive": interactive}

    def _read(self, output: bytes) -> _Held:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.ValidationError as error:
            raise self._error(f"its output is no ExecCredential: {error}") from None
        except msgspec.DecodeError:
            raise self._error("its output is not JSON") from None
        self._check_version(answer)
        status = answer.status
        if status is None:
            raise self._error("its output has no status")
        return _Held(self._identity(status), status.expiration_timestamp, self._clock())

    def _check_version(self, answer: _ExecCredential) -> None:
        if answer.kind != "ExecCredential":
            raise self._error("its output is not of kind ExecCredential")
        if answer.api_version != self._spec.api_version:
            # Only what is plainly a version is quoted: the rest of the output may be anything.
            known = answer.api_version if answer.api_version in API_VERSIONS else "another apiVersion"
            raise self._error(f"it answered with {known}, {self._spec.api_version} is configured")

    def _identity(self, status: _Status) -> Identity:
        certificate, key = status.client_certificate_data or "", status.client_key_data or ""
        if bool(certificate) != bool(key):
            raise self._error("it gave one of certificate and key, not both")
        if not certificate and not status.token:
            raise self._error("it gave neither a token nor a certificate")
        place = Place(self._told())
        pair = None
        if certificate:
            at, key_at = place.at("status.clientCertificateData"), place.at("status.clientKeyData")
            pair = check_pair(certificate.encode(), key.encode(), at=at, key_at=key_at)
        header = bearer(status.token, place.at("status.token")) if status.token else None
        return Identity(header, pair)

    def _told(self) -> str:
        return f"{self._spec.place.file}: exec plugin {self._spec.command} of {self._spec.place.field}"

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"{self._told()}: {what}")
