"""The manager: one process of an operator, from its start to its end.

manager = Manager(name="webapp-operator", election=LeaderElection("webapp-operator"), probes=":8081")
manager.add(controller_for(WebApp).owns(Deployment).build(WebAppReconciler()))
manager.run()
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from prometheus_client.registry import Collector

from konverge.cache import CacheOptions
from konverge.client import Client, ClientConfig
from konverge.controller import EVENTS, LEASES, Controller, ControllerStats, Permission
from konverge.errors import LeaseLost
from konverge.manager.elector import LeaderElection
from konverge.manager.endpoints import Endpoints
from konverge.manager.leader_elections import LeaderCallback
from konverge.manager.running_manager import Process, Setup
from konverge.manager.signals import stop_on_signals
from konverge.manager.stages import opened
from konverge.manager.webhook_serving import WebhookServing
from konverge.objects import Key, Kind
from konverge.telemetry import ensure_logging

__all__ = ["Manager"]

_log = logging.getLogger("konverge.manager")


class Manager:
    """Runs controllers: caches shared by all, queues, workers, and all that an operator's process needs.

    Promises:

    - stages start in order and stop in reverse (`konverge.manager.running_manager` has the table), and nothing is left running;
    - two controllers for one kind, or of one name, are refused when the second is added;
    - after `stop`, SIGTERM or SIGINT no reconcile starts; what runs may end within `grace` seconds, then it is
      cancelled; then the lease is released and the caches close. A second signal ends the process at once;
    - with an `election`, no reconcile runs and no write leaves while another leads.

    `name` is the operator's: its field manager, and how it signs events. `namespaces` limits it to these; empty is all.
    `probes` is the address of /healthz, /readyz and /metrics, or `Endpoints` with more to say.
    """

    def __init__(
        self,
        client: Client | ClientConfig | None = None,
        *,
        name: str = "konverge",
        namespaces: tuple[str, ...] = (),
        election: LeaderElection | None = None,
        probes: str | Endpoints | None = None,
        by_kind: Mapping[Kind, CacheOptions] | None = None,
        grace: float = 20.0,
    ) -> None:
        if not isinstance(namespaces, tuple):
            raise TypeError(f"namespaces is a tuple: write namespaces=({namespaces!r},)")
        if not grace >= 0:
            raise ValueError(f"grace is a number of seconds, 0 or more, got {grace!r}")
        self.name = name
        self._setup = Setup(
            client=client,
            name=name,
            namespaces=namespaces,
            election=election,
            endpoints=Endpoints(probes) if isinstance(probes, str) else probes,
            by_kind=by_kind or {},
            grace=grace,
        )
        self._controllers: dict[Kind, Controller[Any]] = {}
        self._elections: dict[str, LeaderElection | None] = {}
        self._hooks: list[LeaderCallback] = []
        self._stopping = asyncio.Event()
        self._process: Process | None = None

    def add(self, *controllers: Controller[Any], election: LeaderElection | None = None) -> None:
        """Take controllers in; with an `election` they work by a lease of their own instead of the manager's.

        Raises: ValueError when there is one for the same kind, or of the same name.
        """
        for controller in controllers:
            kind = controller.kind
            if kind in self._controllers:
                other = self._controllers[kind].name
                raise ValueError(f"{kind.kind} has a controller already, {other!r}: one kind, one controller")
            if any(controller.name == other.name for other in self._controllers.values()):
                raise ValueError(f"there is a controller named {controller.name!r} already: use .named(...)")
            self._controllers[kind] = controller
            self._elections[controller.name] = election or self._setup.election

    def on_leader_change(self, hook: LeaderCallback) -> None:
        """Call `hook(lease, leads)` whenever this process starts or stops to lead; it must not block."""
        self._hooks.append(hook)

    def serve_webhooks(self, serving: WebhookServing) -> None:
        """Answer webhooks as well, from before the caches start; on every replica, whoever leads.

        Raises: ValueError when that was said before.
        """
        if self._setup.webhooks is not None:
            raise ValueError("this manager serves webhooks already: put all of them into one WebhookServing")
        self._setup = replace(self._setup, webhooks=serving)

    def export(self, *metrics: Collector) -> None:
        """Show metrics of one's own at /metrics beside ours; made with `registry=None`, so that nothing is global."""
        self._setup = replace(self._setup, metrics=(*self._setup.metrics, *metrics))

    @property
    def controllers(self) -> tuple[Controller[Any], ...]:
        """The controllers that were added."""
        return tuple(self._controllers.values())

    def permissions(self) -> tuple[Permission, ...]:
        """Give what this process must be allowed to do: its controllers, its events, and its lease if it has one."""
        needed = {one for controller in self.controllers for one in controller.permissions()}
        needed.update(EVENTS, LEASES if any(self._elections.values()) else ())
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
        """Run until `stop` is called, or the lease is lost.

        Raises: LeaseLost when this process led and does not any more.
        """
        await self._serve(lambda: None)

    async def _serve(self, started: Callable[[], None]) -> None:
        async with self.running() as process:
            started()
            await self._stopping.wait()
        if process.lost:
            raise LeaseLost(f"{self.name} does not lead any more: {process.lost} (start it anew)")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Process]:
        """Run while the block runs: for tests, and for programs that have more to do."""
        if self._process is not None:
            raise RuntimeError("this manager runs already: make another one for a second run")
        setup = replace(self._setup, elections=dict(self._elections), leading_hooks=tuple(self._hooks))
        self._process = process = Process(setup, self.controllers, self.permissions(), self._stopping)
        try:
            async with opened(process.stages(), process.reached):
                yield process
        finally:
            self._process = None
            self._stopping.clear()

    def stop(self) -> None:
        """Ask for an orderly end. On the loop that it runs on; signals do it by themselves."""
        self._stopping.set()

    async def _run(self) -> None:
        async with stop_on_signals(self.stop):
            # What a start leaves stays until the end: no full collection need stop all work to look at it again.
            await self._serve(gc.freeze)

    # Looking in

    def stats(self) -> tuple[ControllerStats, ...]:
        """Give each controller in numbers."""
        return tuple(running.stats() for running in self._process.running) if self._process is not None else ()

    def why(self, controller: str, key: Key) -> list[dict[str, Any]]:
        """Give the last reconciles of a key, the newest first: what woke it, what it read and wrote, how it ended.

        Raises: ValueError when there is no such controller.
        """
        found = self._process.why(controller, key) if self._process is not None else None
        if found is None:
            names = ", ".join(one.name for one in self.controllers) or "none"
            raise ValueError(f"there is no controller {controller!r} at work (there are: {names})")
        return found
