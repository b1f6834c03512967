"""Taking part in an election: asks the server what the lease machine wants to know, and tells who leads.

    elector = Elector(client, Election("webapp-operator", "shop"))
    client = Client.connect(guard=elector.guard)     # what the workers write with
    await elector.run()

The client given to an elector is not behind the guard: it writes the lease while nobody leads.
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

from konverge.client import Client
from konverge.errors import AlreadyExists, Conflict, KonvergeError, NotFound
from konverge.manager.guard import Clock, Guard, boot_clock
from konverge.manager.lease import Candidate, Look, Record, Timing, Wait, Write
from konverge.objects import Kind, MicroTime, ObjectMeta, Resource
from konverge.objects import field as struct_field

__all__ = ["Election", "Elector", "ElectorStats", "default_identity"]

_log = logging.getLogger("konverge.manager")

Started: TypeAlias = Callable[[], None]
Stopped: TypeAlias = Callable[[str], Awaitable[None] | None]

# Timers of the loop stand still while the machine sleeps; the lease's clock does not, so it is looked at this often.
_LONGEST_NAP: Final = 1.0
# Clocks are floats: one that is short of a moment by less than it can count would be looked at for ever.
_SHORTEST_NAP: Final = 0.001
_RELEASE_TRIES: Final = 4


class _Lease(Resource, identity=Kind("coordination.k8s.io", "v1", "Lease", "leases")):
    """A Lease whose spec is kept as it came: fields of other kinds of election stay as they are."""

    spec: dict[str, Any] = struct_field(default_factory=dict)


def default_identity() -> str:
    """Make a name that no other process has, now or later: the host's (in a pod, the pod's) and something random."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(8)}"


@dataclass(frozen=True)
class Election:
    """Which lease to compete for, as whom, and how fast. `name` and `namespace` are the Lease object's.

    `namespace` "" means the client's own. `lease`, `renew_deadline`, `retry` and `margin` are explained at `Timing`.
    `clock` is what the lease is measured by; on virtual time it is the loop's.
    """

    name: str
    namespace: str = ""
    _: KW_ONLY
    identity: str = field(default_factory=default_identity)
    lease: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0
    margin: float = 1.0
    release_on_stop: bool = True
    clock: Clock = boot_clock

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError('an election needs the name of a Lease: Election("webapp-operator")')
        if not self.identity:
            raise ValueError("identity is empty: leave it out, or give each process a name that no other has")
        self.timing  # noqa: B018 - to be refused here, where the mistake is

    @property
    def timing(self) -> Timing:
        """The four durations."""
        return Timing(lease=self.lease, renew_deadline=self.renew_deadline, retry=self.retry, margin=self.margin)


@dataclass(frozen=True, slots=True)
class ElectorStats:
    """An elector at one moment.

    `holder` is who was last seen in the lease, `why_not` why we do not lead. `trouble` says why the last request
    failed, "" when it did not: a standby is well as long as it can look.
    """

    name: str
    identity: str
    leading: bool
    holder: str
    why_not: str
    trouble: str
    terms: int
    renewals: int
    failures: int


class Elector:
    """Competes for one lease, renews it, and gives it back.

    Promises:

    - the guard is open only while this elector leads, and never past the lease (see `lease`);
    - `started` is called when leading starts, and `stopped` with the reason as soon as it ends, always in pairs. The
      next term starts only after `stopped` is through, so two terms of one process do not overlap;
    - no failure of the server ends `run`; it ends by `stop`, by being cancelled, or by an error of a callback, and then
      the guard is shut;
    - the lease is released only by `stop`: whoever calls it has ended all writes before.

    The guard's clock is the elector's. `record` is told what is worth an event: reason and message.
    """

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        guard: Guard | None = None,
        started: Started = lambda: None,
        stopped: Stopped = lambda _: None,
        record: Callable[[str, str], None] | None = None,
        random: Random | None = None,
    ) -> None:
        self.election = election
        self.guard = guard or Guard(election.clock)
        self.leading = asyncio.Event()
        """Set while this elector leads; for tasks of the loop that it runs on."""
        self._client = client
        self._started, self._stopped = started, stopped
        self._record = record
        # Seeded by the name: no two candidates keep in step, and a simulation plays the same each time.
        self._candidate = Candidate(election.identity, election.timing, random=random or Random(election.identity))
        self._document: _Lease | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._release = election.release_on_stop
        self._given_up = ""
        self._trouble = ""
        self._terms = self._renewals = self._failures = 0

    async def run(self) -> None:
        """Compete until told to stop."""
        try:
            while not self._stopping:
                await self._round()
            await self._lead_no_more("told to stop")
            if self._release:
                await self._give_back()
        finally:
            await self._lead_no_more("the elector ended")

    def stop(self, *, release: bool = True) -> None:
        """End `run`. The lease is given back, unless the election or the caller says no.

        Call it when nothing writes any more. Say `release=False` when a write that was cancelled may still be on its
        way: then nobody else can lead before the lease is over.
        """
        self._release = self._release and release
        self._stopping = True
        self._wake.set()

    def give_up(self, why: str) -> None:
        """Stop leading now, and leave the lease to expire: whatever still writes has that long to end."""
        if self.leading.is_set():
            self.guard.shut()
            self._given_up = why
            self._wake.set()

    def stats(self) -> ElectorStats:
        """Say where it stands."""
        candidate = self._candidate
        return ElectorStats(
            name=self.election.name,
            identity=self.election.identity,
            leading=candidate.leading and not self._given_up,
            holder=candidate.seen.holder if candidate.seen is not None else "",
            why_not=candidate.why_not,
            trouble=self._trouble,
            terms=self._terms,
            renewals=self._renewals,
            failures=self._failures,
        )

    async def _round(self) -> None:
        step = self._candidate.next(self.guard.clock(), MicroTime.now())
        if await self._settle():
            return  # telling took time: what was to be done may be something else by now
        if isinstance(step, Wait):
            await self._nap(step.until - self.guard.clock())
        else:
            await self._ask(step)
            await self._settle()

    async def _settle(self) -> bool:
        """Make guard and callbacks agree with the candidate; say whether that ended a term."""
        if self._given_up:
            self._candidate.step_down(self._given_up)
            self._given_up = ""
        if not self._candidate.leading:
            return await self._lead_no_more(self._candidate.why_not)
        self.guard.open(self._candidate.deadline)
        if not self.leading.is_set():
            self.leading.set()
            self._terms += 1
            _log.info("Leading started", extra=self._facts())
            self._tell("became leader")
            self._started()
        return False

    async def _lead_no_more(self, why: str) -> bool:
        self.guard.shut()
        if not self.leading.is_set():
            return False
        self.leading.clear()
        _log.warning("Leading ended", extra={**self._facts(), "why": why})
        self._tell("stopped leading")
        told = self._stopped(why)
        if inspect.isawaitable(told):
            await told
        return True

    async def _nap(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(_SHORTEST_NAP, seconds), _LONGEST_NAP)):
                await self._wake.wait()
        self._wake.clear()

    async def _ask(self, step: Look | Write) -> None:
        """Do what the candidate wants and tell it what came of it."""
        candidate, clock = self._candidate, self.guard.clock
        started = clock()
        try:
            # The client keeps to the limit by itself; whatever makes it late must not make us late.
            async with asyncio.timeout(step.timeout):
                found = await (self._look(step) if isinstance(step, Look) else self._write(step))
        except (KonvergeError, TimeoutError) as error:
            conflict = isinstance(error, Conflict | AlreadyExists | NotFound)
            self._note_failure(str(error) or f"no answer within {step.timeout:g} s")
            candidate.failed(self._trouble, started=started, at=clock(), conflict=conflict)
            return
        self._trouble = ""
        self._document = found
        record = None if found is None else Record.read(found.spec, found.resource_version)
        if isinstance(step, Look) or record is None:
            candidate.observed(record, at=clock())
        elif self._given_up:
            candidate.failed(self._given_up, started=started, at=clock())
        else:
            candidate.wrote(record, started=started, answered=clock())
            self._renewals += candidate.leading

    async def _look(self, step: Look) -> _Lease | None:
        client = self._client.using(timeout=step.timeout)
        try:
            return await client.get(_Lease, self.election.name, namespace=self._namespace)
        except NotFound:
            return None

    async def _write(self, step: Write) -> _Lease:
        client = self._client.using(timeout=step.timeout)
        if not step.version or self._document is None:
            metadata = ObjectMeta(name=self.election.name, namespace=self._namespace)
            return await client.create(_Lease(metadata=metadata, spec=dict(step.spec)))
        lease = copy.copy(self._document)
        lease.spec = {**lease.spec, **step.spec}
        # Without a source it is sent whole: the same verbs (get, create, update) as every other elector needs.
        lease.remember_source(None)
        return await client.update(lease)

    async def _give_back(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.election.renew_deadline):
                for _ in range(_RELEASE_TRIES):
                    step = self._candidate.release(MicroTime.now())
                    if step is None:
                        return
                    await self._ask(step)
        _log.warning("The lease could not be released, it will expire", extra={**self._facts(), "why": self._trouble})

    @property
    def _namespace(self) -> str:
        return self.election.namespace or self._client.settings.namespace

    def _note_failure(self, why: str) -> None:
        self._failures += 1
        if why != self._trouble:
            _log.warning("A request for the lease failed", extra={**self._facts(), "why": why})
        self._trouble = why

    def _tell(self, what: str) -> None:
        if self._record is not None:
            self._record("LeaderElection", f"{self.election.identity} {what}")

    def _facts(self) -> dict[str, str]:
        return {"lease": f"{self._namespace}/{self.election.name}", "identity": self.election.identity}
