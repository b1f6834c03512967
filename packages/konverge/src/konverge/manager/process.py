"""One life of a manager: what it starts, in order, and what becomes of it.

| stage | starts | ready when | when it cannot |
|---|---|---|---|
| thread | the side thread, for lease and probes | it runs | fails the start |
| probes | /healthz, /readyz, /metrics, /debug/why | the port is bound | fails the start, naming the address |
| client | nothing: the first request connects | - | no configuration fails the start |
| events | the recorder | - | events are dropped and counted |
| preflight | asks which permissions are missing | asked | says so in the log |
| certificates | makes or reads the webhooks' certificate | a valid pair is on hand | retries, readiness says why |
| webhooks | the TLS server | serving | fails the start, naming the address |
| caches | reflectors | at once; each controller waits for its own kinds | never fails; readiness names kind and verb |
| triggers | queues fill, also on standbys | what is there is in line | - |
| lease | the campaign, once the caches are warm | at once | keeps trying |
| workers | reconciles, once the lease is held | - | per key |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.registry import Collector

from konverge.cache import Cache, CacheOptions
from konverge.client import Client, ClientConfig, load_config
from konverge.controller import Controller, Permission, Running
from konverge.errors import NotFound
from konverge.manager.background import background
from konverge.manager.checks import Measures
from konverge.manager.elector import Election, default_identity
from konverge.manager.endpoints import Endpoints
from konverge.manager.heartbeat import Heartbeat, LoopWatch
from konverge.manager.leaderships import Leaderships, LeadingHook
from konverge.manager.lease_thread import LeaseThread
from konverge.manager.preflight import warn_of_missing
from konverge.manager.stages import Stage
from konverge.manager.webhook_serving import WebhookParts, WebhookServing
from konverge.objects import Key, Kind
from konverge.reconcile import EventRecorder, Memory, Reference, Tools

__all__ = ["Process", "Setup"]

_log = logging.getLogger("konverge.manager")

_SYNC_POLL = 0.25
_RECORDER_GRACE = 2.0


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a manager was told."""

    client: Client | ClientConfig | None
    name: str
    namespaces: tuple[str, ...]
    election: Election | None
    endpoints: Endpoints | None
    by_kind: Mapping[Kind, CacheOptions] = field(default_factory=dict)
    grace: float = 20.0
    webhooks: WebhookServing | None = None
    elections: Mapping[str, Election | None] = field(default_factory=dict)  # by controller
    leading_hooks: tuple[LeadingHook, ...] = ()
    metrics: tuple[Collector, ...] = ()


class Process:
    """The moving parts of a manager, in the order in which they start."""

    def __init__(
        self,
        setup: Setup,
        controllers: tuple[Controller[Any], ...],
        permissions: tuple[Permission, ...],
        stopping: asyncio.Event,
    ) -> None:
        self.setup = setup
        self.lost = ""  # why leading ended, when it did
        self.stage = ""
        self.running: tuple[Running[Any], ...] = ()
        self.cache: Cache | None = None
        self.leaderships = Leaderships(setup.elections, setup.leading_hooks)
        self.recorder: EventRecorder | None = None
        self.webhooks = WebhookParts(setup.webhooks, stopping) if setup.webhooks is not None else None
        self.measures = Measures(self)
        for metric in setup.metrics:
            self.measures.registry.register(metric)
        self._controllers = controllers
        self._permissions = permissions
        self._stopping = stopping
        self._identity = setup.election.identity if setup.election else default_identity()
        self._heartbeat = Heartbeat()
        self._side: LeaseThread | None = None
        self._work: asyncio.Task[None] | None = None
        self._drained = True
        self._memory = Memory()

    def stages(self) -> tuple[Stage, ...]:
        """Give the stages, in order."""
        return (
            Stage("thread", self._thread),  # a lease and probes must not depend on what authors do on the main loop
            Stage("probes", self._probe),  # from here on it can be asked what the start waits for
            Stage("client", self._connect),
            Stage("events", self._record),
            Stage("preflight", self._check),
            *self._webhook_stages(),  # before the caches: stored objects may need our own conversion to be read
            Stage("caches", self._follow),
            Stage("triggers", self._fill),  # on standbys too, so that a new leader knows what to do
            Stage("lease", self._campaign),
            Stage("workers", self._reconcile),
        )

    def _webhook_stages(self) -> tuple[Stage, ...]:
        parts = self.webhooks
        if parts is None:
            return ()
        return (
            Stage("certificates", lambda: parts.certificates(self._client, self._leading())),
            Stage("webhooks", parts.serve),
        )

    def blocking(self) -> str:
        """Name the reconciles that run now: one of them, if any, holds up the main loop."""
        keys = [f"{one.controller.name} {key}" for one in self.running for key in one.busy()]
        return ", ".join(keys[:5])

    def reached(self, stage: str) -> None:
        """Note which stage is being opened, "" when all are."""
        self.stage = stage

    def why(self, controller: str, key: Key) -> list[dict[str, Any]] | None:
        """Give the last reconciles of a key; None when there is no such controller."""
        for running in self.running:
            if running.controller.name == controller:
                return running.journal.why(key)
        return None

    # The stages

    @asynccontextmanager
    async def _thread(self) -> AsyncGenerator[None]:
        if isinstance(self.setup.client, Client) and self.setup.endpoints is None:
            yield  # a client of this loop only: there is nothing that a thread could do
            return
        async with AsyncExitStack() as stack:
            self._side = await stack.enter_async_context(LeaseThread())
            watch = LoopWatch(self._heartbeat, blocking=self.blocking, give_up=self.leaderships.give_up)
            self.measures.watch = watch
            await stack.enter_async_context(background(self._heartbeat.beat(), self._side.call(watch.run)))
            yield

    @asynccontextmanager
    async def _probe(self) -> AsyncGenerator[None]:
        if self.setup.endpoints is None or self._side is None:
            yield
            return
        probes = self.setup.endpoints.server(
            self.measures.health, registry=self.measures.registry, why=self.why, connect=self._own_client
        )
        await self._side.call(probes.start)
        try:
            yield
        finally:
            await self._side.call(probes.stop)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[None]:
        given = self.setup.client
        client = given if isinstance(given, Client) else Client.connect(self._config())
        client = client.using(field_manager=self.setup.name)
        self._client = client.observed(self.measures.requests)
        side = None if isinstance(given, Client) else self._side
        self.leaderships.open(self._own_client, side=side, lost=self._lose, record=self._record_election)
        try:
            yield
        finally:
            if not isinstance(given, Client):
                await client.close()

    @asynccontextmanager
    async def _record(self) -> AsyncGenerator[None]:
        self.recorder = EventRecorder(self._client, controller=self.setup.name, instance=self._identity)
        async with background(self.recorder.run()) as (sending,):
            try:
                yield
            finally:
                self.recorder.close(grace=_RECORDER_GRACE)
                await asyncio.wait([sending], timeout=_RECORDER_GRACE)

    @asynccontextmanager
    async def _check(self) -> AsyncGenerator[None]:
        elections = {one for one in self.setup.elections.values() if one is not None}
        leases = {Key(one.namespace or self._client.settings.namespace, one.name) for one in elections}
        namespaces = self.setup.namespaces
        check = warn_of_missing(self._client, self._permissions, namespaces=namespaces, leases=leases)
        async with background(_forgiving(check)):
            yield

    @asynccontextmanager
    async def _follow(self) -> AsyncGenerator[None]:
        options = CacheOptions(namespaces=self.setup.namespaces, manager=self.setup.name)
        cache = Cache(self._client.collection, server=self._client, options=options, by_kind=self.setup.by_kind)
        self.cache = cache
        self.running = tuple(self._bring_up(controller, cache) for controller in self._controllers)
        async with cache:
            yield

    @asynccontextmanager
    async def _fill(self) -> AsyncGenerator[None]:
        async with background(*(running.feed() for running in self.running)):
            yield

    @asynccontextmanager
    async def _campaign(self) -> AsyncGenerator[None]:
        async with background(self._compete()) as (competing,):
            try:
                yield
            finally:
                # Only when nothing writes any more: a write that was cancelled may still be on its way.
                self.leaderships.stop(release=self._drained)
                if any(self.leaderships):
                    await asyncio.wait([competing], timeout=self.leaderships.patience)

    @asynccontextmanager
    async def _reconcile(self) -> AsyncGenerator[None]:
        async with background(self._work_when_leading()) as (self._work,):
            try:
                yield
            finally:
                await self._finish(self.setup.grace)

    # How it is done

    def _config(self) -> ClientConfig:
        given = self.setup.client
        assert not isinstance(given, Client)
        return given or load_config()

    def _own_client(self) -> AbstractAsyncContextManager[Client]:
        """Give a client for another loop, or this one when the process was given its client."""
        given = self.setup.client
        return nullcontext(given) if isinstance(given, Client) else Client.connect(self._config())

    def _bring_up(self, controller: Controller[Any], cache: Cache) -> Running[Any]:
        leadership = self.leaderships.of(controller.name)
        client = self._client if leadership is None else self._client.guarded(leadership.guard)
        tools = Tools(
            controller=controller.name,
            client=client,
            cache=cache,
            field_manager=self.setup.name,
            memory=self._memory,
            recorder=self.recorder,
        )
        running = Running(controller, tools, observer=self.measures.controllers)
        running.declare()
        return running

    async def _compete(self) -> None:
        """Campaign once the caches are warm: who cannot see the cluster shall not lead it."""
        while not self._is_warm():  # noqa: ASYNC110 - what it waits for are many things, and seldom
            await asyncio.sleep(_SYNC_POLL)
        await self.leaderships.run()

    def _is_warm(self) -> bool:
        """Tell whether each collection is synced, or is of a kind that is not there yet."""
        assert self.cache is not None
        mirrors = self.cache.stats().mirrors
        return all(not mirror.waits_for or isinstance(mirror.reflector.error, NotFound) for mirror in mirrors)

    async def _work_when_leading(self) -> None:
        async with asyncio.TaskGroup() as group:
            for running in self.running:
                group.create_task(self._work_by_lease(running), name=running.controller.name)

    async def _work_by_lease(self, running: Running[Any]) -> None:
        leadership = self.leaderships.of(running.controller.name)
        if leadership is not None:
            await leadership.leading.wait()
        await running.work()

    async def _finish(self, grace: float) -> None:
        """Hand out no more keys, let what runs end within the grace, and cancel the rest."""
        for running in self.running:
            running.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                for running in self.running:
                    await running.queue.drained()
        # Once false it stays so: what was cancelled when the lease was lost may still be on its way at the end.
        self._drained = self._drained and not any(running.busy() for running in self.running)
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    async def _lose(self, why: str) -> None:
        """Stop at once: another may lead soon."""
        if why == "told to stop":
            return
        self.lost = why
        await self._finish(0.0)
        # A leader that does nothing would keep others from it.
        self.leaderships.stop(release=False)
        self._stopping.set()

    def _leading(self) -> asyncio.Event | None:
        """Give what is set while this process leads by its main lease."""
        for leadership in self.leaderships:
            if leadership.election is self.setup.election:
                return leadership.leading
        return None

    def _record_election(self, election: Election, reason: str, message: str) -> None:
        if self.recorder is not None:
            namespace = election.namespace or self._client.settings.namespace
            about = Reference(
                api_version="coordination.k8s.io/v1", kind="Lease", name=election.name, namespace=namespace
            )
            self.recorder.record(about, reason=reason, message=message, action="Elect")


async def _forgiving(coroutine: Any) -> None:
    try:
        await coroutine
    except Exception:
        _log.exception("A check at the start failed")
