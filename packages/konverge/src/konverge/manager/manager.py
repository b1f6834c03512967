"""The manager: one process of an operator, from start to stop.

manager = Manager(name="webapp-operator", leader_election=LeaderElection("webapp-operator"), probes=":8081")
manager.add(controller_for(WebApp).owns(Deployment).build(WebAppReconciler()))
manager.run()
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from konverge.cache import CacheOptions
from konverge.client import Client, ClientConfig, RetryPolicy
from konverge.controller import EVENTS, LEASES, Builder, Controller, Permission
from konverge.errors import LeaseLost
from konverge.manager.elector import LeaderElection
from konverge.manager.endpoints import Endpoints
from konverge.manager.garbage_collection import collect_less
from konverge.manager.options import ManagerOptions
from konverge.manager.runnables import OpenShared, Runnable, RunnableFunction
from konverge.manager.signals import stop_on_signals
from konverge.manager.stages import open_stages
from konverge.manager.webhook_serving import WebhookServing
from konverge.objects import Key, Kind, kind_of
from konverge.reconcile import EventLimits, Journal, ReconcileObserver, ReconcileSpans
from konverge.telemetry import RequestSpans, ensure_logging

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer
    from prometheus_client.registry import Collector

    from konverge.controller import ControllerStats
    from konverge.manager.leader_elections import LeaderCallback
    from konverge.manager.running_manager import RunningManager

__all__ = ["Manager"]

_log = logging.getLogger("konverge.manager")


class Manager:
    """Runs controllers with shared caches, and everything else that the process of an operator needs.

    Promises:

    - stages start in order and stop in reverse (`konverge.manager.running_manager` has the table); nothing is left
      running;
    - a second controller with the same name is rejected when it is added, and so is a second controller of a kind that
      owns the same kind of children, or has the same finalizer, as the first one;
    - after `stop`, SIGTERM or SIGINT no reconcile starts. Reconciles in flight may end within `grace` seconds, then
      they are cancelled; then the lease is released and the caches close. A second signal ends the process at once;
    - with `leader_election`, no reconcile runs and no write is sent while another process leads.

    `name` is the name of the operator: its field manager, and the reporter of its events. `namespaces` limits the
    operator to these; empty means all. `probes` is the address of /healthz, /readyz, /metrics and /debug, or
    `Endpoints` with more options; except for a loopback address, metrics and debug are protected.
    """

    def __init__(
        self,
        client: Client | ClientConfig | None = None,
        *,
        name: str = "konverge",
        namespaces: tuple[str, ...] = (),
        leader_election: LeaderElection | None = None,
        probes: str | Endpoints | None = None,
        by_kind: Mapping[Kind, CacheOptions] | None = None,
        grace: float = 20.0,
    ) -> None:
        if not isinstance(namespaces, tuple):
            raise TypeError(f"namespaces must be a tuple: write namespaces=({namespaces!r},)")
        if not grace >= 0:
            raise ValueError(f"grace must be 0 or more seconds, got {grace!r}")
        self.name = name
        self._options = ManagerOptions(
            client=client,
            name=name,
            namespaces=namespaces,
            leader_election=leader_election,
            endpoints=Endpoints(probes) if isinstance(probes, str) else probes,
            by_kind=by_kind or {},
            grace=grace,
        )
        self._controllers: list[Controller[Any]] = []
        self._elections: dict[str, LeaderElection | None] = {}
        self._leader_callbacks: list[LeaderCallback] = []
        self._stopping = asyncio.Event()
        self._running: RunningManager | None = None

    def add(self, *controllers: Controller[Any], leader_election: LeaderElection | None = None) -> None:
        """Add controllers; with `leader_election` they use a lease of their own instead of the manager's.

        A kind may have several controllers, under distinct names.

        Raises: ValueError when a controller would interfere with another one, TypeError for anything but a controller.
        """
        for controller in controllers:
            require_controller(controller)
            for other in self._controllers:
                _check_distinct(controller, other)
            self._controllers.append(controller)
            self._elections[controller.name] = leader_election or self._options.leader_election

    def add_runnable(self, *functions: RunnableFunction, leader_only: bool = True) -> None:
        """Run async functions as long as this manager runs; see `Runnable`.

        Raises: TypeError for anything but an async function.
        """
        added = tuple(Runnable(function, leader_only) for function in functions)
        self._options = replace(self._options, runnables=(*self._options.runnables, *added))

    def share(self, *functions: OpenShared) -> None:
        """Open objects at start-up that reconcilers and runnables get with `ctx.shared(type)`; see `OpenShared`."""
        self._options = replace(self._options, shared=(*self._options.shared, *functions))

    def on_leader_change(self, callback: LeaderCallback) -> None:
        """Call `callback(lease, leading)` when this process starts or stops leading; it must not block."""
        self._leader_callbacks.append(callback)

    def serve_webhooks(self, serving: WebhookServing) -> None:
        """Serve webhooks too: on every replica, whether it leads or not, from before the caches start.

        Raises: ValueError on a second call.
        """
        if self._options.webhooks is not None:
            raise ValueError("this manager already serves webhooks: put all of them into one WebhookServing")
        self._options = replace(self._options, webhooks=serving)

    def export(self, *metrics: Collector) -> None:
        """Expose metrics of your own at /metrics; create them with `registry=None`, so that nothing is global."""
        self._options = replace(self._options, metrics=(*self._options.metrics, *metrics))

    def observe(self, *observers: ReconcileObserver) -> None:
        """Notify observers of each reconcile of every controller."""
        self._options = replace(self._options, observers=(*self._options.observers, *observers))

    def trace(self, tracer: Tracer) -> None:
        """Make an OpenTelemetry span of each reconcile and of each request; those of a reconcile are its children."""
        self.observe(ReconcileSpans(tracer))
        self._options = replace(self._options, request_observers=(RequestSpans(tracer),))

    def retry_requests(self, policy: RetryPolicy) -> None:
        """Set the retry policy of the requests of this process, except for those about its lease."""
        self._options = replace(self._options, retry=policy)

    def use_journal(self, new_journal: Callable[[], Journal]) -> None:
        """Set what creates the journal of each controller: `manager.use_journal(partial(Journal, limit_keys=100))`."""
        self._options = replace(self._options, new_journal=new_journal)

    def limit_events(self, limits: EventLimits) -> None:
        """Set how many events may be written; the default suits an operator that shares a cluster with others."""
        self._options = replace(self._options, event_limits=limits)

    def skip_permission_check(self) -> None:
        """Do not check the permissions at the start: for a process that is known to have all of them, as in tests."""
        self._options = replace(self._options, checks_permissions=False)

    @property
    def controllers(self) -> tuple[Controller[Any], ...]:
        """The added controllers."""
        return tuple(self._controllers)

    def permissions(self) -> tuple[Permission, ...]:
        """Return the permissions that this process needs: for its controllers, its events, and its lease if any."""
        needed = {one for controller in self.controllers for one in controller.permissions()}
        elections = {**self._elections, **self._runnable_election()}
        needed.update(EVENTS, LEASES if any(elections.values()) else ())
        return tuple(sorted(needed))

    # Running

    def run(self) -> None:
        """Run until a signal stops the process. Blocks; this is usually the last line of a program.

        Logs go to stderr in the human format at INFO, unless logging is already configured.

        Raises: LeaseLost when this process was the leader and lost its lease.
        """
        ensure_logging()
        asyncio.run(self._run())

    async def serve(self) -> None:
        """Run until `stop` is called or the lease is lost.

        Raises: LeaseLost when this process was the leader and lost its lease.
        """
        await self._serve(lambda: None)

    async def _serve(self, on_started: Callable[[], None]) -> None:
        async with self.running() as running:
            on_started()
            await self._stopping.wait()
        if running.lost_reason:
            raise LeaseLost(f"{self.name} is no longer the leader: {running.lost_reason} (restart the process)")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[RunningManager]:
        """Run while the block runs: for tests, and for programs that do other work too."""
        from konverge.manager.running_manager import RunningManager  # not needed to declare an operator

        if self._running is not None:
            raise RuntimeError("this manager is already running: create another one for a second run")
        options = replace(
            self._options,
            controller_elections={**self._elections, **self._runnable_election()},
            leader_callbacks=tuple(self._leader_callbacks),
        )
        self._running = running = RunningManager(options, self.controllers, self.permissions(), self._stopping)
        try:
            async with open_stages(running.stages(), running.on_stage):
                yield running
        finally:
            self._running = None
            self._stopping.clear()

    def _runnable_election(self) -> dict[str, LeaderElection | None]:
        """Return the election of runnables, under a name that no controller has: there may be no controller."""
        leader_only = any(one.leader_only for one in self._options.runnables)
        return {"": self._options.leader_election} if leader_only else {}

    def stop(self) -> None:
        """Stop in order. Call it on the loop that the manager runs on; signals call it by themselves."""
        self._stopping.set()

    async def _run(self) -> None:
        async with stop_on_signals(self.stop):
            await self._serve(collect_less)

    # Inspection

    def stats(self) -> tuple[ControllerStats, ...]:
        """Return the stats of each controller."""
        return tuple(running.stats() for running in self._running.controllers) if self._running is not None else ()

    def why(self, controller: str, key: Key) -> list[dict[str, Any]]:
        """Return the reconcile history of a key, newest first: its triggers, its reads and writes, its result.

        Raises: ValueError when there is no such controller.
        """
        history = self._running.why(controller, key) if self._running is not None else None
        if history is None:
            names = ", ".join(one.name for one in self.controllers) or "none"
            raise ValueError(f"no controller {controller!r} is running (there are: {names})")
        return history


def require_controller(value: object) -> None:
    """Raise TypeError for anything but a controller; a forgotten `.build(...)` is named."""
    if isinstance(value, Builder):
        raise TypeError(f"{value!r} is not built: end it with .build(reconcile)")
    if not isinstance(value, Controller):
        raise TypeError(f"create a controller with controller_for(Kind).build(reconcile), got {value!r:.80}")


def _check_distinct(one: Controller[Any], other: Controller[Any]) -> None:
    """Raise ValueError when two controllers would interfere with each other."""
    if one.name == other.name:
        raise ValueError(f"a controller named {one.name!r} already exists: use .named(...)")
    if one.kind != other.kind:
        return
    shared = sorted(kind.kind for kind in _children(one) & _children(other))
    if shared:
        # They share a field manager, so `ctx.prune` of one would delete the children of the other.
        raise ValueError(
            f"controllers {other.name!r} and {one.name!r} of {one.kind.kind} both own {shared[0]}:"
            " declare a kind of children with .owns() in one of them"
        )
    if one.reconciler.finalizer and one.reconciler.finalizer == other.reconciler.finalizer:
        raise ValueError(
            f"controllers {other.name!r} and {one.name!r} of {one.kind.kind} both have the finalizer"
            f" {one.reconciler.finalizer!r}: each needs its own"
        )


def _children(controller: Controller[Any]) -> set[Kind]:
    return {kind_of(trigger.kind) for trigger in controller.triggers if trigger.owned}
