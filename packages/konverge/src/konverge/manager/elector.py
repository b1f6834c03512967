"""The elector: sends the requests that the state machine in `lease` decides on, and reports who leads.

    elector = Elector(client, LeaderElection("webapp-operator", "shop"))
    client = Client.connect(guard=elector.fence)     # the client that the workers write with
    await elector.run()

The client of the elector itself is not fenced: it writes the lease while this process does not lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

from msgspec import Struct

from konverge.cache.entries import parse_version
from konverge.client import Client
from konverge.errors import AlreadyExists, Conflict, KonvergeError, NotFound
from konverge.manager.lease import Candidate, LeaseRecord, Read, Timing, Wait, Write
from konverge.manager.write_fence import Clock, WriteFence, boot_clock
from konverge.objects import Kind, MicroTime, ObjectMeta, Resource
from konverge.objects import field as struct_field

__all__ = ["Elector", "ElectorStats", "LeaderElection", "default_identity"]

_log = logging.getLogger("konverge.manager")

StartedLeading: TypeAlias = Callable[[], None]
StoppedLeading: TypeAlias = Callable[[str], Awaitable[None] | None]

_STOPPED: Final = ""
"""The reason for the end of a term when `stop` was called: none, since the lease was not lost."""

# Timers of the loop stop while the machine is suspended; the lease's clock does not. So it is read this often.
_LONGEST_SLEEP: Final = 1.0
# Clocks are floats: a sleep below their resolution would be repeated for ever.
_SHORTEST_SLEEP: Final = 0.001
_RELEASE_ATTEMPTS: Final = 4


class _Lease(Resource, identity=Kind("coordination.k8s.io", "v1", "Lease", "leases")):
    """A Lease with its spec as plain JSON, so that fields of other election strategies are preserved."""

    spec: dict[str, Any] = struct_field(default_factory=dict)


def default_identity() -> str:
    """Return an identity that no other process has, now or later: the name of the host (in a pod: of the pod) and a
    random suffix."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(8)}"


@dataclass(frozen=True)
class LeaderElection:
    """Which lease to compete for, with which identity and timing. `name` and `namespace` are those of the Lease.

    `namespace` "" means the client's own. `lease_duration`, `renew_deadline`, `retry_period` and `margin` are explained
    in `Timing`. `release_on_stop` releases the lease when the process stops. `clock` measures the lease; in virtual
    time it is the loop's clock.
    """

    name: str
    namespace: str = ""
    _: KW_ONLY
    identity: str = field(default_factory=default_identity)
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    margin: float = 1.0
    release_on_stop: bool = True
    clock: Clock = boot_clock

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError('leader election needs the name of a Lease: LeaderElection("webapp-operator")')
        if not self.identity:
            raise ValueError("identity is empty: leave it out, or give each process a name that no other has")
        self.timing  # noqa: B018 - raises here, where the mistake is

    @property
    def timing(self) -> Timing:
        """The four durations."""
        return Timing(
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            retry_period=self.retry_period,
            margin=self.margin,
        )


class ElectorStats(Struct, frozen=True):
    """An elector at one moment.

    `holder` is the last observed holder of the lease, `reason` why this process does not lead. `error` is the error of
    the last request, "" when it succeeded: a standby is healthy as long as it can read the lease.
    """

    name: str
    identity: str
    leading: bool
    holder: str
    reason: str
    error: str
    terms: int
    renew_count: int
    failures: int


class Elector:
    """Competes for one lease, renews it and releases it.

    Promises:

    - the write fence is open only while this elector leads, and never past the lease (see `lease`);
    - `on_started_leading` is called when leading starts and `on_stopped_leading`, with the reason, as soon as it ends,
      always in pairs. The next term starts only after `on_stopped_leading` has returned, so two terms of one process
      do not overlap;
    - no failure of the server ends `run`. It ends by `stop`, by cancellation or by an error of a callback, and then the
      fence is closed;
    - the lease is released only by `stop`: its caller has ended all writes before;
    - a term ends when the server returns an older version of the lease than before, and so does each later one as soon
      as it starts: etcd was restored, and what this process has cached is of a history that is gone.

    The fence uses the clock of the election. `record_event` receives reason and message of what is worth an event.
    """

    def __init__(
        self,
        client: Client,
        election: LeaderElection,
        *,
        fence: WriteFence | None = None,
        on_started_leading: StartedLeading = lambda: None,
        on_stopped_leading: StoppedLeading = lambda _: None,
        record_event: Callable[[str, str], None] | None = None,
        random: Random | None = None,
    ) -> None:
        self.election = election
        self.fence = fence or WriteFence(election.clock)
        self.leading = asyncio.Event()
        """Set while this elector leads; for tasks of the loop that it runs on."""
        self._client = client
        self._on_started_leading, self._on_stopped_leading = on_started_leading, on_stopped_leading
        self._record_event = record_event
        # Seeded with the identity: two candidates never stay in step, and a simulation is reproducible.
        self._candidate = Candidate(election.identity, election.timing, random=random or Random(election.identity))
        self._lease: _Lease | None = None
        self._interrupt = asyncio.Event()
        self._stopping = False
        self._release = election.release_on_stop
        self._step_down_reason = ""
        self._last_error = ""
        self._version = 0  # the highest of the lease so far
        self._restored = ""  # why nothing that this process has cached can be trusted
        self._terms = self._renew_count = self._failures = 0

    async def run(self) -> None:
        """Compete until `stop` is called."""
        try:
            while not self._stopping:
                await self._step()
            await self._stop_leading(_STOPPED)
            if self._release:
                await self._release_lease()
        finally:
            await self._stop_leading("the elector ended")

    def stop(self, *, release: bool = True) -> None:
        """End `run` and release the lease, unless the election or the caller disables the release.

        Call it when nothing writes any more. Pass `release=False` when a cancelled write may still be in flight: then
        no other candidate can lead before the lease expires.
        """
        self._release = self._release and release
        self._stopping = True
        self._interrupt.set()

    def step_down(self, reason: str) -> None:
        """Stop leading now and let the lease expire: writes in flight have that long to end."""
        if self.leading.is_set():
            self.fence.close()
            self._step_down_reason = reason
            self._interrupt.set()

    def stats(self) -> ElectorStats:
        """Return the current state."""
        candidate = self._candidate
        return ElectorStats(
            name=self.election.name,
            identity=self.election.identity,
            leading=candidate.leading and not self._step_down_reason,
            holder=candidate.observed.holder if candidate.observed is not None else "",
            reason=candidate.reason,
            error=self._restored or self._last_error,
            terms=self._terms,
            renew_count=self._renew_count,
            failures=self._failures,
        )

    async def _step(self) -> None:
        step = self._candidate.next(self.fence.clock(), MicroTime.now())
        if await self._apply_state():
            return  # the callback took time, so the step may be out of date
        if isinstance(step, Wait):
            await self._sleep(step.until - self.fence.clock())
        else:
            await self._send(step)
            await self._apply_state()

    async def _apply_state(self) -> bool:
        """Make the fence and the callbacks agree with the candidate; report whether that ended a term."""
        if self._step_down_reason:
            self._candidate.step_down(self._step_down_reason)
            self._step_down_reason = ""
        if self._restored and self._candidate.leading:
            self._start_leading()  # with a closed fence: the end of a term is what ends the process
            self._candidate.step_down(self._restored)
        if not self._candidate.leading:
            return await self._stop_leading(self._candidate.reason)
        self.fence.open(self._candidate.deadline)
        self._start_leading()
        return False

    def _start_leading(self) -> None:
        if not self.leading.is_set():
            self.leading.set()
            self._terms += 1
            _log.info("became leader", extra=self._facts())
            self._emit_event("became leader")
            self._on_started_leading()

    async def _stop_leading(self, reason: str) -> bool:
        self.fence.close()
        if not self.leading.is_set():
            return False
        self.leading.clear()
        if not reason:
            _log.info("stopped leading", extra=self._facts())
        else:
            _log.warning("leader election lost", extra={**self._facts(), "reason": reason})
        self._emit_event("stopped leading")
        result = self._on_stopped_leading(reason)
        if inspect.isawaitable(result):
            await result
        return True

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(_SHORTEST_SLEEP, seconds), _LONGEST_SLEEP)):
                await self._interrupt.wait()
        self._interrupt.clear()

    async def _send(self, step: Read | Write) -> None:
        """Send the request of a step and record its result in the candidate."""
        candidate, clock = self._candidate, self.fence.clock
        started = clock()
        try:
            # The client enforces the timeout itself; this one holds even when the client is late.
            async with asyncio.timeout(step.timeout):
                lease = await (self._read(step) if isinstance(step, Read) else self._write(step))
        except (KonvergeError, TimeoutError) as error:
            conflict = isinstance(error, Conflict | AlreadyExists | NotFound)
            self._note_failure(str(error) or f"no response within {step.timeout:g} s")
            candidate.record_failure(self._last_error, started=started, at=clock(), conflict=conflict)
            return
        self._last_error = ""
        self._lease = lease
        self._compare_version(lease)
        record = None if lease is None else LeaseRecord.read(lease.spec, lease.resource_version)
        if isinstance(step, Read) or record is None:
            candidate.record_read(record, at=clock())
        elif self._step_down_reason:
            candidate.record_failure(self._step_down_reason, started=started, at=clock())
        else:
            candidate.record_write(record, started=started, finished=clock())
            self._renew_count += candidate.leading

    def _compare_version(self, lease: _Lease | None) -> None:
        """Notice a version that is lower than an earlier one; reads of one object and writes are never stale."""
        version = parse_version(lease.resource_version) if lease is not None else None
        if version is None:
            return
        if version < self._version and not self._restored:
            self._restored = f"etcd was restored: the lease went back from version {self._version} to {version}"
            _log.warning("server history restarted", extra={**self._facts(), "reason": self._restored})
        self._version = max(self._version, version)

    async def _read(self, step: Read) -> _Lease | None:
        client = self._client.using(timeout=step.timeout)
        try:
            return await client.get(_Lease, self.election.name, namespace=self._namespace)
        except NotFound:
            return None

    async def _write(self, step: Write) -> _Lease:
        client = self._client.using(timeout=step.timeout)
        if not step.version or self._lease is None:
            metadata = ObjectMeta(name=self.election.name, namespace=self._namespace)
            return await client.create(_Lease(metadata=metadata, spec=dict(step.spec)))
        lease = copy.copy(self._lease)
        lease.spec = {**lease.spec, **step.spec}
        # Without a source the whole object is sent: the verbs are get, create and update, as for other electors.
        lease.set_source(None)
        return await client.update(lease)

    async def _release_lease(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.election.renew_deadline):
                for _ in range(_RELEASE_ATTEMPTS):
                    step = self._candidate.release(MicroTime.now())
                    if step is None:
                        return
                    await self._send(step)
        _log.warning("lease release failed", extra={**self._facts(), "reason": self._last_error})

    @property
    def _namespace(self) -> str:
        return self.election.namespace or self._client.options.namespace

    def _note_failure(self, error: str) -> None:
        self._failures += 1
        if error != self._last_error:
            _log.warning("lease request failed", extra={**self._facts(), "reason": error})
        self._last_error = error

    def _emit_event(self, message: str) -> None:
        if self._record_event is not None:
            self._record_event("LeaderElection", f"{self.election.identity} {message}")

    def _facts(self) -> dict[str, str]:
        return {"lease": f"{self._namespace}/{self.election.name}", "identity": self.election.identity}
