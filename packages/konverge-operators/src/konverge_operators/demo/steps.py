"""The steps of the demo: the lifecycle of one WebApp. Each step is checked on the API server.

The operator runs in separate processes, so killing the leader is real. The steps do not depend on that: they read and
write only the cluster, as a user of kubectl does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import click

from konverge.client import Client, has_condition, is_deployment_complete
from konverge.errors import Invalid, KonvergeError, NotFound
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import Pod, Service
from konverge.objects import Unstructured
from konverge_operators.demo.kubectl import Kubectl
from konverge_operators.demo.replicas import Replicas

__all__ = ["DemoContext", "StepPrinter", "Steps"]

_POLL_INTERVAL = 0.1
_NEW_TAG = "1.26"


class StepPrinter:
    """Prints one line for each step: its number, the seconds since the step before, and what is true now."""

    def __init__(self) -> None:
        self.steps = 0
        self._started = self._last = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the demo."""
        return time.perf_counter() - self._started

    def print_step(self, text: str) -> None:
        now = time.perf_counter()
        self.steps += 1
        click.echo(f"{self.steps:2}. {now - self._last:5.1f} s  {text}")
        self._last = now

    def failure(self, message: str) -> click.ClickException:
        """Return the error for a failure of the current step."""
        return click.ClickException(f"step {self.steps + 1}: {message}")


@dataclass(frozen=True, kw_only=True)
class DemoContext:
    """What the steps work with: a client for the namespace, the sample, the operator's replicas and its lease.

    `kind` is the class of the sample, `has_webhooks` says whether the API server calls the webhooks, `step_timeout` is
    the timeout of a step in seconds, and `kubectl` is None where it is not installed.
    """

    client: Client
    kind: type[Any]
    sample: Unstructured
    replicas: Replicas
    lease_name: str
    has_webhooks: bool
    step_timeout: float
    kubectl: Kubectl | None


class Steps:
    """The steps, in order. The first step that fails ends the demo with an error that names it."""

    def __init__(self, context: DemoContext, printer: StepPrinter) -> None:
        self._context = context
        self._printer = printer
        self._client = context.client
        self._name = context.sample.name
        self._image: str = context.sample["spec"]["image"]
        self._count: int = context.sample["spec"]["replicas"]

    async def run(self) -> None:
        steps = (self._elect_leader, self._create, self._wait_ready, self._scale, self._heal, self._update)
        for step in (*steps, self._refuse, self._fail_over, self._delete):
            try:
                self._printer.print_step(await step())
            except KonvergeError as error:
                raise self._printer.failure(str(error)) from error

    async def _elect_leader(self) -> str:
        leader = await self._until("one of the replicas is the leader", self._leader)
        return f"operator: {len(self._context.replicas.names)} replicas are running, {leader} is the leader"

    async def _create(self) -> str:
        created = await self._client.apply(self._context.sample, force=True)
        children = [await self._child(kind, owner=created.uid) for kind in (Deployment, Service)]
        app = await self._client.get(self._context.kind, self._name)
        self._check(bool(app.metadata.finalizers), "the WebApp has the operator's finalizer")
        return f"created: {created.kind} {self._name}; it owns a {' and a '.join(child.kind for child in children)}"

    async def _wait_ready(self) -> str:
        waited = await self._wait_for_condition()
        await self._converged()
        return f"ready: {self._count} of {self._count} pods of {self._image} are available ({waited})"

    async def _scale(self) -> str:
        self._count += 2
        await self._client.scale(self._context.kind, self._name, self._count)
        await self._converged()
        return f"scaled: {self._count} of {self._count} pods are available"

    async def _heal(self) -> str:
        before = await self._client.get(Deployment, self._name)
        await self._client.delete(before)
        await self._child(Deployment, not_uid=before.uid)
        await self._converged()
        return f"healed: Deployment deleted by hand, a new one runs {self._count} pods"

    async def _update(self) -> str:
        before = self._image
        self._image = f"{before.rpartition(':')[0]}:{_NEW_TAG}"
        await self._client.patch(self._context.kind, self._name, {"spec": {"image": self._image}})
        await self._converged()
        return f"updated: all pods run {self._image}, none runs {before}"

    async def _refuse(self) -> str:
        spec = {"image": "nginx:latest"} if self._context.has_webhooks else {"image": self._image, "replicas": 5000}
        invalid = Unstructured({**self._context.sample, "metadata": {"name": "bad-app"}, "spec": spec})
        try:
            await self._client.create(invalid)
        except Invalid as error:
            reason = "; ".join(f"{cause.field}: {cause.message}" for cause in error.causes) or str(error)
        else:
            raise self._printer.failure("an invalid manifest was not refused")
        self._check(await self._is_gone(self._context.kind, "bad-app"), "a refused manifest is not stored")
        return f"refused by the {'webhook' if self._context.has_webhooks else 'schema'}: {reason}"

    async def _fail_over(self) -> str:
        leader = await self._until("one of the replicas is the leader", self._leader)
        self._context.replicas.kill(leader)
        killed = time.perf_counter()
        # A child is deleted while there is no leader: the next leader has to notice and repair it.
        before = await self._client.get(Service, self._name)
        await self._client.delete(before)

        async def another() -> str | None:
            found = await self._leader()
            return found if found != leader else None

        successor = await self._until("another replica is the leader", another)
        elapsed = time.perf_counter() - killed
        await self._child(Service, not_uid=before.uid)
        return (
            f"failed over: {leader} killed, {successor} is the leader {elapsed:.1f} s later "
            "and has recreated the Service deleted meanwhile"
        )

    async def _delete(self) -> str:
        await self._client.delete(self._context.kind, self._name)

        async def gone() -> bool:
            return await self._is_gone(self._context.kind, self._name)

        async def collected() -> bool:
            lists = [await self._client.list(kind) for kind in (Deployment, ReplicaSet, Pod)]
            return not any(map(len, lists)) and await self._is_gone(Service, self._name)

        await self._until("the WebApp is gone, its finalizer has run", gone)
        await self._until("its children and pods are deleted", collected)
        return "deleted: the finalizer has run, children and pods are gone"

    async def _wait_for_condition(self) -> str:
        """Wait for the condition Ready as users do; return how."""
        kubectl, kind, timeout = self._context.kubectl, self._context.kind, self._context.step_timeout
        if kubectl is None:
            await self._client.wait_for(kind, self._name, has_condition("Ready"), timeout=timeout)
            return "condition Ready; kubectl is not installed"
        resource = f"{kind.__name__.lower()}/{self._name}"
        waiting = asyncio.create_task(kubectl.wait_ready(resource, timeout))

        async def done() -> bool:
            return waiting.done() and waiting.result() is None

        try:
            await self._until(f"{resource} has the condition Ready", done)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return f"kubectl wait {resource} --for=condition=Ready"

    # Reading the cluster

    async def _leader(self) -> str | None:
        """Return the running replica that holds the lease, None if there is none."""
        lease = await self._client.get(Lease, self._context.lease_name)
        name = (lease.spec.holder_identity or "").rpartition("_")[0]
        return name if name in self._context.replicas.names else None

    async def _child(self, kind: type[Any], *, owner: str = "", not_uid: str = "") -> Any:
        async def owned() -> Any:
            found = await self._client.get(kind, self._name)
            owners = [reference.uid for reference in found.metadata.owner_references or ()]
            return found if found.uid != not_uid and (not owner or owner in owners) else None

        return await self._until(f"{kind.__name__} {self._name} exists and the WebApp owns it", owned)

    async def _converged(self) -> None:
        """Wait until the condition Ready holds for the current generation, and the pods agree with it."""

        async def holds() -> bool:
            app = await self._client.get(self._context.kind, self._name)
            reported = has_condition("Ready")(app)
            images = [pod.spec.containers[0].image for pod in await self._client.list(Pod)]
            deployment = await self._client.get(Deployment, self._name)
            complete = images == [self._image] * self._count and is_deployment_complete()(deployment)
            return complete and reported and app.status.ready_replicas == self._count

        await self._until(f"the WebApp is Ready with {self._count} pods of {self._image} and no others", holds)

    async def _is_gone(self, kind: type[Any], name: str) -> bool:
        try:
            await self._client.get(kind, name)
        except NotFound:
            return True
        return False

    async def _until(self, what: str, check: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until a check returns something true, and return it; an API error counts as false."""
        deadline = time.monotonic() + self._context.step_timeout
        last_error = ""
        while time.monotonic() < deadline:
            try:
                self._context.replicas.restart_exited()
                if found := await check():
                    return found
            except KonvergeError as error:
                last_error = f" ({error})"
            except ChildProcessError as error:
                raise self._printer.failure(str(error)) from error
            await asyncio.sleep(_POLL_INTERVAL)
        raise self._printer.failure(f"not true after {self._context.step_timeout:g} s: {what}{last_error}")

    def _check(self, holds: bool, claim: str) -> None:
        if not holds:
            raise self._printer.failure(f"not true: {claim}")
