"""The controllers of EndpointSlices and Endpoints: one maintains them for services, one deletes stale Endpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from konverge.cache import Event, EventType
from konverge.controller import Controller, controller_for
from konverge.errors import Forbidden
from konverge.k8s.core.v1 import Endpoints, Node, Pod, Service
from konverge.k8s.discovery.v1 import Endpoint, EndpointPort, EndpointSlice
from konverge.objects import Key, LabelSelector, ObjectMeta
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import Predicate
from konverge_cluster.server_messages import is_namespace_terminating
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.pods.facts import is_being_deleted
from konverge_cluster.workloads.pods.selector_index import SelectorIndex
from konverge_cluster.workloads.services.changes import endpoints_changed
from konverge_cluster.workloads.services.endpoints import endpoint_of, families_of, has_address, ports_of
from konverge_cluster.workloads.services.slices import MANAGED_BY, MANAGER, SERVICE, Changes, required_changes
from konverge_cluster.workloads.services.subsets import OVER_CAPACITY, labels_of, subsets_of, truncate
from konverge_cluster.workloads.services.trigger_times import TriggerTimeTracker, annotate

__all__ = ["EndpointsReconciler", "ServiceReconciler", "endpoints_controller", "service_controller"]


class ServiceReconciler(Reconciler[Service]):
    """Maintains the endpoints of services with a selector; endpoints of other services are left alone.

    A pod on a missing node is left out unless the service publishes unready addresses; when the node is created,
    the service is reconciled again.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self) -> None:
        self._selectors = SelectorIndex()
        self._trigger_times = TriggerTimeTracker()
        self._waiting: defaultdict[str, set[Key]] = defaultdict(set)

    def pod_to_services(self, event: Event) -> Iterable[Key]:
        """Map a pod to the services that select it, or did before the change."""
        found: set[Key] = set()
        for entry in (event.old, event.new):
            if entry is not None:
                labels = dict(zip(entry.labels[::2], entry.labels[1::2], strict=True))
                found.update(self._selectors.matching(entry.key.namespace, labels))
        return sorted(found)

    def node_to_services(self, event: Event) -> Iterable[Key]:
        """Map a new node to the services that wait for it."""
        return sorted(self._waiting.pop(event.key.name, ())) if event.type is EventType.ADDED else ()

    def gone(self, key: Key) -> None:
        """Forget a service."""
        self._selectors.drop(key)
        self._trigger_times.forget(key)

    async def reconcile(self, obj: Service, ctx: Context) -> Result | None:
        """Update the endpoints of a service."""
        if obj.spec.type == "ExternalName" or not obj.spec.selector:
            self.gone(obj.key)
            return Result.done()
        selector = LabelSelector.of(obj.spec.selector)
        self._selectors.put(obj.key, selector)
        pods = sorted(await ctx.list(Pod, labels=str(selector)), key=lambda pod: pod.key)
        changed = self._trigger_times.last_change(obj, pods)
        try:
            for changes in await self._changes(obj, pods, ctx):
                await _write_slices(obj, changes, ctx, changed)
            await _write_endpoints(obj, pods, ctx, changed)
        except Forbidden as error:
            if not is_namespace_terminating(error):
                raise
        return Result.done()

    async def _changes(self, service: Service, pods: Sequence[Pod], ctx: Context) -> list[Changes]:
        labels = f"{SERVICE}={service.name},{MANAGED_BY}={MANAGER}"
        slices = await ctx.list(EndpointSlice, labels=labels)
        families = families_of(service)
        found = [Changes(delete=[one for one in slices if one.address_type not in families])]
        for family in families:
            desired = [await self._endpoint(pod, service, family, ctx) for pod in pods]
            of_family = [one for one in slices if one.address_type == family]
            present = [one for one in desired if one is not None]
            found.append(required_changes(service, family, desired=present, slices=of_family))
        return found

    async def _endpoint(
        self, pod: Pod, service: Service, family: str, ctx: Context
    ) -> tuple[list[EndpointPort], Endpoint] | None:
        if not has_address(pod, with_terminating=True):
            return None
        name = pod.spec.node_name or ""
        node = await ctx.get(Node, name) if name else None
        if node is None and not service.spec.publish_not_ready_addresses:
            self._waiting[name].add(service.key)
            return None
        return ports_of(pod, service), endpoint_of(pod, service, family=family, node=node)


class EndpointsReconciler(Reconciler[Endpoints]):
    """Deletes Endpoints whose service is gone."""

    async def reconcile(self, obj: Endpoints, ctx: Context) -> Result | None:
        """Delete Endpoints unless a service of their name exists."""
        if await ctx.get(Service, obj.key) is None:
            await controller_client(ctx).delete(obj, missing_ok=True)
        return Result.done()


def service_controller() -> Controller[Service]:
    """Return the controller of the endpoints of services."""
    reconciler = ServiceReconciler()
    builder = controller_for(Service).named("endpoint-slice-controller").owns(EndpointSlice)
    builder = builder.watches(Pod, reconciler.pod_to_services, predicate=Predicate(endpoints_changed))
    builder = builder.watches(Node, reconciler.node_to_services)
    return builder.watches(Endpoints, _if_deleted).build(reconciler)


def endpoints_controller() -> Controller[Endpoints]:
    """Return the controller that deletes Endpoints together with their service."""
    builder = controller_for(Endpoints).named("endpoint-controller").predicate(Predicate(_never))
    return builder.watches(Service, _if_deleted).build(EndpointsReconciler())


async def _write_slices(service: Service, changes: Changes, ctx: Context, changed: datetime | None) -> None:
    client = controller_client(ctx)
    if not is_being_deleted(service):
        for one in changes.create:
            one.metadata.annotations = annotate(one.metadata.annotations, changed)
            await client.create(one)
    for one in changes.update:
        one.metadata.annotations = annotate(one.metadata.annotations, changed)
        await client.update(one)
    for one in changes.delete:
        await client.delete(one, missing_ok=True)


async def _write_endpoints(service: Service, pods: Sequence[Pod], ctx: Context, changed: datetime | None) -> None:
    subsets, truncated = truncate(subsets_of(service, pods))
    labels = labels_of(service)
    found = await ctx.get(Endpoints, service.key)
    if found is None:
        metadata = ObjectMeta(name=service.name, namespace=service.namespace, labels=labels)
        metadata.annotations = _annotations({}, changed, truncated=truncated)
        if not is_being_deleted(service):
            await controller_client(ctx).create(Endpoints(metadata=metadata, subsets=subsets))
        return
    marked = OVER_CAPACITY in found.metadata.annotations
    if (found.subsets, found.metadata.labels, marked) != (subsets, labels, truncated):
        found.subsets, found.metadata.labels = subsets, labels
        found.metadata.annotations = _annotations(found.metadata.annotations, changed, truncated=truncated)
        await controller_client(ctx).update(found)


def _annotations(present: dict[str, str], changed: datetime | None, *, truncated: bool) -> dict[str, str]:
    timed = {name: value for name, value in annotate(present, changed).items() if name != OVER_CAPACITY}
    return timed | ({OVER_CAPACITY: "truncated"} if truncated else {})


def _if_deleted(event: Event) -> Iterable[Key]:
    """Map a deleted object to the object of the same name."""
    return (event.key,) if event.type is EventType.DELETED else ()


def _never(_: Event) -> bool:
    return False
