"""One run of a manager: the stages that it starts, in order, and their state.

| stage | starts | ready when | on failure |
|---|---|---|---|
| thread | the lease thread, for leases and probes; none for a server on the same loop | it runs | fails the start |
| probes | /healthz, /readyz, /metrics, /debug/why | the port is bound | fails the start, naming the address |
| client | nothing: the first request connects | - | a missing configuration fails the start |
| events | the event recorder | - | events are dropped and counted |
| preflight | the check for missing permissions | at once | logged |
| shared | what `Operator(shared=...)` opens | all are open | fails the start |
| certificates | creates or reads the webhooks' certificate | a valid pair exists | retries, readiness says why |
| webhooks | the TLS server | it serves | fails the start, naming the address |
| caches | reflectors | at once; each controller waits for its own kinds | never fails; readiness names kind and verb |
| triggers | sources fill the queues, also on standbys | existing objects are queued | - |
| lease | leader election, once the caches have synced | at once | retries |
| workers | reconciles, once the lease is held | - | per key |
| runnables | runnables, once the caches have synced and the lease is held if they need it | - | stops the manager |
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

from konverge.cache import Cache, CacheOptions
from konverge.client import Client, ClientConfig, load_config
from konverge.controller import Controller, Permission, RunningController
from konverge.errors import NotFound
from konverge.manager.background import background
from konverge.manager.election_runner import ElectionRunner
from konverge.manager.elector import LeaderElection, default_identity
from konverge.manager.heartbeat import Heartbeat, LoopMonitor
from konverge.manager.histories import find_histories, find_history
from konverge.manager.leader_elections import LeaderElections
from konverge.manager.lease_thread import LeaseThread
from konverge.manager.monitoring import Monitoring
from konverge.manager.options import ManagerOptions
from konverge.manager.preflight import log_failure, warn_missing_permissions
from konverge.manager.runnable_tasks import RunnableTasks
from konverge.manager.runnables import Runnable, RunnableContext
from konverge.manager.stages import Stage
from konverge.manager.webhook_serving import WebhookStages
from konverge.manager.workers import Workers
from konverge.objects import Key
from konverge.reconcile import (
    EventRecorder,
    LastApplied,
    ReconcileDependencies,
    Reference,
)
from konverge.reconcile.context import record_in_cache

__all__ = ["RunningManager"]

_RECORDER_GRACE = 2.0


class RunningManager:
    """The components of a running manager, in the order in which they start."""

    def __init__(
        self,
        options: ManagerOptions,
        controllers: tuple[Controller[Any], ...],
        permissions: tuple[Permission, ...],
        stopping: asyncio.Event,
    ) -> None:
        self.options = options
        self.lost_reason = ""
        """Why this process stopped being the leader; "" when it did not."""
        self.stage = ""
        self.controllers: tuple[RunningController[Any], ...] = ()
        self.cache: Cache | None = None
        self.leader_elections = LeaderElections(options.controller_elections, options.leader_callbacks)
        self.recorder: EventRecorder | None = None
        self.webhooks = WebhookStages(options.webhooks, stopping) if options.webhooks is not None else None
        self.monitoring = Monitoring(self)
        for metric in options.metrics:
            self.monitoring.registry.register(metric)
        self._declared = controllers
        self._permissions = permissions
        self._stopping = stopping
        self._identity = options.leader_election.identity if options.leader_election else default_identity()
        self._heartbeat = Heartbeat()
        self._thread: LeaseThread | None = None
        supplied = options.client
        self._leases_in_thread = not isinstance(supplied, Client) or supplied.with_new_transport() is not None
        self._last_applied = LastApplied()
        self._shared: tuple[object, ...] = ()
        self._runnables = RunnableTasks(options.runnables)

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, in order."""
        return (
            Stage("thread", self._run_thread),  # leases and probes must not depend on the authors' code
            Stage("probes", self._serve_probes),  # from here on /readyz shows what the start waits for
            Stage("client", self._connect),
            Stage("events", self._run_recorder),
            *([Stage("preflight", self._check_permissions)] if self.options.checks_permissions else ()),
            Stage("shared", self._open_shared),  # outlives everything that uses it
            *self._webhook_stages(),  # before the caches: stored objects may need our own conversion to be read
            Stage("caches", self._run_caches),
            Stage("triggers", self._run_sources),  # on standbys too, so that a new leader has its queues filled
            Stage("lease", self._run_elections),
            Stage("workers", self._run_workers),
            Stage("runnables", self._run_runnables),
        )

    def _webhook_stages(self) -> tuple[Stage, ...]:
        webhooks = self.webhooks
        if webhooks is None:
            return ()
        return (
            Stage("certificates", lambda: webhooks.certificates(self._client, self._leading())),
            Stage("webhooks", webhooks.serve),
        )

    def active_handlers(self) -> str:
        """Name the reconciles in flight: one of them may block the main loop."""
        keys = [f"{one.controller.name} {key}" for one in self.controllers for key in one.active_keys()]
        return ", ".join(keys[:5])

    def on_stage(self, stage: str) -> None:
        """Record which stage is being opened, "" when all are open."""
        self.stage = stage

    def why(self, controller: str, key: Key) -> list[dict[str, Any]] | None:
        """Return the reconcile history of a key; None when there is no such controller."""
        return find_history(self.controllers, controller, key)

    def find_history(self, controller: str, key: Key | None) -> Any:
        """Return the history of a key, or the keys that have one; see `find_histories`."""
        namespace = self._client.options.namespace or "default"
        return find_histories(self.controllers, controller, key, namespace=namespace)

    # The stages

    @asynccontextmanager
    async def _run_thread(self) -> AsyncGenerator[None]:
        if not self._leases_in_thread and self.options.endpoints is None:
            yield  # the server runs on this loop too, so a thread would have nothing to run
            return
        async with AsyncExitStack() as stack:
            self._thread = await stack.enter_async_context(LeaseThread())
            monitor = LoopMonitor(
                self._heartbeat, active_handlers=self.active_handlers, step_down=self.leader_elections.step_down
            )
            self.monitoring.loop_monitor = monitor
            await stack.enter_async_context(background(self._heartbeat.run(), self._thread.call(monitor.run)))
            yield

    @asynccontextmanager
    async def _serve_probes(self) -> AsyncGenerator[None]:
        if self.options.endpoints is None or self._thread is None:
            yield
            return
        servers = self.options.endpoints.servers(
            self.monitoring.health,
            registry=self.monitoring.registry,
            why=self.find_history,
            connect=self._connect_client,
        )
        try:
            for server in servers:
                await self._thread.call(server.start)
            yield
        finally:
            for server in servers:
                await self._thread.call(server.stop)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[None]:
        supplied = self.options.client
        client = supplied if isinstance(supplied, Client) else Client.connect(self._config())
        client = client.using(field_manager=self.options.name)
        if self.options.retry is not None:
            client = client.with_retry(self.options.retry)
        self._client = client.with_observers(self.monitoring.requests, *self.options.request_observers)
        self.leader_elections.open(
            self._connect_client,
            thread=self._thread if self._leases_in_thread else None,
            on_stopped_leading=self._stopped_leading,
            record_event=self._record_election,
        )
        try:
            yield
        finally:
            if not isinstance(supplied, Client):
                await client.close()

    @asynccontextmanager
    async def _run_recorder(self) -> AsyncGenerator[None]:
        self.recorder = EventRecorder(
            self._client,
            controller=self.options.name,
            instance=self._identity,
            limits=self.options.event_limits,
        )
        async with background(self.recorder.run()) as (sending,):
            try:
                yield
            finally:
                self.recorder.close(grace=_RECORDER_GRACE)
                await asyncio.wait([sending], timeout=_RECORDER_GRACE)

    @asynccontextmanager
    async def _check_permissions(self) -> AsyncGenerator[None]:
        elections = {one for one in self.options.controller_elections.values() if one is not None}
        leases = {Key(one.namespace or self._client.options.namespace, one.name) for one in elections}
        namespaces = self.options.namespaces
        check = partial(warn_missing_permissions, self._client, self._permissions, namespaces=namespaces, leases=leases)
        async with background(log_failure(check)):
            yield

    @asynccontextmanager
    async def _open_shared(self) -> AsyncGenerator[None]:
        stack = AsyncExitStack()
        try:
            self._shared = tuple(
                [await stack.enter_async_context(function(self._client)) for function in self.options.shared]
            )
            yield
        finally:
            await stack.aclose()  # without an error of the block: what runs at shutdown runs after an error too

    @asynccontextmanager
    async def _run_caches(self) -> AsyncGenerator[None]:
        options = CacheOptions(namespaces=self.options.namespaces, manager=self.options.name)
        cache = Cache(self._client.collection, server=self._client, options=options, by_kind=self.options.by_kind)
        self.cache = cache
        self.controllers = tuple(self._register(controller, cache) for controller in self._declared)
        self._workers = Workers(self.controllers, self.leader_elections)
        async with cache:
            yield

    @asynccontextmanager
    async def _run_sources(self) -> AsyncGenerator[None]:
        async with background(*(running.run_sources() for running in self.controllers)):
            yield

    @asynccontextmanager
    async def _run_elections(self) -> AsyncGenerator[None]:
        async with background(self._compete()) as (competing,):
            try:
                yield
            finally:
                # Release only when nothing writes any more: a cancelled write may still be in flight.
                self.leader_elections.stop(release=self._workers.drained and self._runnables.drained)
                if any(self.leader_elections):
                    await asyncio.wait([competing], timeout=self.leader_elections.release_timeout)

    @asynccontextmanager
    async def _run_workers(self) -> AsyncGenerator[None]:
        async with self._workers.run(grace=self.options.grace):
            yield

    @asynccontextmanager
    async def _run_runnables(self) -> AsyncGenerator[None]:
        running = self._runnables.run(
            self._client, self._own_election(), self._runnable_context, grace=self.options.grace
        )
        async with running:
            yield

    # Helpers of the stages

    def _config(self) -> ClientConfig:
        supplied = self.options.client
        assert not isinstance(supplied, Client)
        return supplied or load_config()

    def _connect_client(self) -> AbstractAsyncContextManager[Client]:
        """Return a new client, for another loop; the manager's own if its server runs on this loop."""
        supplied = self.options.client
        if isinstance(supplied, Client):
            return supplied.with_new_transport() or nullcontext(supplied)
        return Client.connect(self._config())

    def _register(self, controller: Controller[Any], cache: Cache) -> RunningController[Any]:
        election = self.leader_elections.of(controller.name)
        client = self._client if election is None else self._client.with_write_guard(election.fence)
        dependencies = ReconcileDependencies(
            controller=controller.name,
            client=client,
            cache=cache,
            field_manager=self.options.name,
            last_applied=self._last_applied,
            recorder=self.recorder,
            shared=self._shared,
        )
        observers = (self.monitoring.controllers, *self.options.observers)
        running = RunningController(controller, dependencies, observers=observers, journal=self.options.new_journal())
        running.register()
        return running

    async def _compete(self) -> None:
        """Run the elections once the caches have synced: a process without a current cache must not lead."""
        await self._wait_for_caches()
        await self.leader_elections.run()

    async def _wait_for_caches(self) -> None:
        assert self.cache is not None
        await self.cache.changes.wait_for(self._caches_synced)

    def _caches_synced(self) -> bool:
        """Report whether each collection is synced, or is of a kind that does not exist yet."""
        assert self.cache is not None
        informers = self.cache.stats().informers
        return all(not each.not_synced_reason or isinstance(each.reflector.error, NotFound) for each in informers)

    async def _runnable_context(self, runnable: Runnable, client: Client) -> RunnableContext:
        """Return the context of a runnable, once the caches have synced."""
        assert self.cache is not None
        await self._wait_for_caches()
        client = client.with_write_listener(partial(record_in_cache, self.cache))
        channels = {channel.name: channel for one in self._declared for channel in one.channels}
        return RunnableContext(runnable.name, client, self.cache, channels=channels, shared=self._shared)

    async def _stopped_leading(self, reason: str) -> None:
        """Stop at once: another replica may become leader soon."""
        if not reason:  # it was asked to stop
            return
        self.lost_reason = reason
        await self._runnables.stop_leading()
        await self._workers.stop(0.0)
        # A leader without workers would keep the other replicas from leading.
        self.leader_elections.stop(release=False)
        self._stopping.set()

    def _leading(self) -> asyncio.Event | None:
        """Return the event that is set while this process leads by the lease of the manager."""
        election = self._own_election()
        return None if election is None else election.leading

    def _own_election(self) -> ElectionRunner | None:
        """Return the election by the lease of the manager."""
        for election in self.leader_elections:
            if election.election is self.options.leader_election:
                return election
        return None

    def _record_election(self, election: LeaderElection, reason: str, message: str) -> None:
        if self.recorder is not None:
            namespace = election.namespace or self._client.options.namespace
            lease = Reference(
                api_version="coordination.k8s.io/v1", kind="Lease", name=election.name, namespace=namespace
            )
            self.recorder.record(lease, reason=reason, message=message, action="Elect")
