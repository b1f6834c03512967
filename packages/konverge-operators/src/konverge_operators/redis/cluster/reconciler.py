"""The reconciler of RedisCluster: a workflow with one component, the shards.

Each reconcile observes the servers, does one step, and applies the StatefulSets: those of the spec, and those of
removed shards until their nodes have neither slots nor an identity any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from konverge import Context, Controller, Result
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Pod, Secret
from konverge.objects import AnyObject, Key, ObjectStatus
from konverge.triggers import to_keys
from konverge.workflow import Component, Configuration, Workflow, WorkflowReconciler, WorkflowState
from konverge.workflow.components import objects_status
from konverge_operators.protection import protection_of
from konverge_operators.redis.cluster import children
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.engine import Engine, Server
from konverge_operators.redis.cluster.forming import Step
from konverge_operators.redis.cluster.passwords import (
    Passwords,
    ensure_passwords,
    find_passwords,
    rotate,
    set_passwords,
)
from konverge_operators.redis.cluster.phases import phases
from konverge_operators.redis.cluster.reports import record, set_conditions
from konverge_operators.redis.cluster.steps import advance, next_update
from konverge_operators.redis.cluster.views import Member, View, expected_members, is_empty, observe
from konverge_operators.redis.connections import connection_secret, generate_password

__all__ = ["RedisClusterReconciler", "cluster_controller", "new_cluster_workflow", "replicas_to_run"]

_STEPS = 10
"""How many steps one reconcile does at most."""

configuration: Configuration[RedisCluster] = Configuration(
    secrets=lambda cluster: [cluster.name, children.servers_secret(cluster.name)]
)
"""The Secrets whose changes are followed. The pods are not replaced: see `passwords`."""


def new_cluster_workflow(generate: Callable[[], str] = generate_password) -> Workflow[RedisCluster]:
    """Return the workflow of a RedisCluster; `generate` returns a new password."""

    async def shard_objects(cluster: RedisCluster, ctx: Context) -> list[AnyObject]:
        known = cluster.status.connection_secret
        secret = await connection_secret(ctx, cluster.name, known, lambda: children.secret_for(cluster, generate()))
        passwords = await find_passwords(cluster, ctx) or await ensure_passwords(cluster, ctx, secret)
        view, step = await _proceed(cluster, ctx, passwords)
        step = step or await _update(cluster, view, ctx)
        rotation = await rotate(cluster, ctx, view, passwords, secret, generate)
        record(cluster, view, step or rotation)
        replicas = replicas_to_run(
            cluster, view, {_shard(one): one.spec.replicas or 0 for one in ctx.owned(StatefulSet)}
        )
        shards = [children.stateful_set_for(cluster, *one) for one in sorted(replicas.items())]
        return [*shards, children.service_for(cluster), children.budget_for(cluster)]

    return Workflow(
        kind=RedisCluster,
        components=(
            Component(
                children.COMPONENT, shard_objects, kinds=children.KINDS, readiness=_readiness, cleanup=_report_claims
            ),
        ),
        phases=phases,
        configuration=configuration,
        suspended=lambda cluster: cluster.spec.suspend,
        protected=protection_of,
    )


async def _proceed(cluster: RedisCluster, ctx: Context, passwords: Passwords) -> tuple[View, Step | None]:
    """Do one step after the other until one has to wait; return what was observed last, and what is under way."""
    engine, members = ctx.shared(Engine), await _members(cluster, ctx, passwords)
    forming, last, steps = cluster.status.forming, None, 0
    while True:
        steps += 1
        view = await observe(members, engine, shards=cluster.spec.shards)
        if await set_passwords(view, engine, passwords):
            view = await observe(members, engine, shards=cluster.spec.shards)
        step = await advance(cluster, view, engine)
        if step is None or step == last or cluster.status.forming != forming or steps == _STEPS:
            break  # done, or it waits for the servers, or for the status that must be written first
        last = step
    return view, step


async def _members(cluster: RedisCluster, ctx: Context, passwords: Passwords) -> list[Member]:
    """Return the members of the desired shards and of the existing StatefulSets, with the servers of their pods."""
    pods = {pod.name: pod for pod in await ctx.list(Pod)}
    sets = {_shard(one): one for one in ctx.owned(StatefulSet)}
    revisions = {shard: one.status.update_revision or "" for shard, one in sets.items()}
    members = expected_members(
        cluster.name,
        shards=cluster.spec.shards,
        per_shard=1 + cluster.spec.replicas_per_shard,
        existing={shard: one.spec.replicas or 0 for shard, one in sets.items()},
    )
    return [_with_pod(one, pods.get(one.pod), revisions.get(one.shard, ""), passwords) for one in members]


def _with_pod(member: Member, pod: Pod | None, revision: str, passwords: Passwords) -> Member:
    if pod is None or pod.metadata.deletion_timestamp is not None or not pod.status.pod_ip:
        return member
    current = (pod.metadata.labels or {}).get("controller-revision-hash", revision)
    server = Server(member.pod, pod.status.pod_ip, passwords.accepted)
    return replace(member, server=server, outdated=current != revision)


def _shard(found: StatefulSet) -> int:
    return children.shard_of(found.metadata.labels)


async def _update(cluster: RedisCluster, view: View, ctx: Context) -> Step | None:
    """Replace one pod with an old template, replicas first; a primary becomes a replica before."""
    found = next_update(view)
    if found is None:
        return None
    node, replacement = found
    if replacement is not None:
        await ctx.shared(Engine).fail_over(replacement.server)
        return Step(ClusterPhase.UPDATING, f"{replacement.member.pod} replaces {node.member.pod} as primary")
    pod = await ctx.get(Pod, node.member.pod)
    if pod is not None:
        await ctx.delete(pod)
    return Step(ClusterPhase.UPDATING, f"replacing {node.member.pod} of {cluster.name}")


def replicas_to_run(cluster: RedisCluster, view: View, existing: dict[int, int]) -> dict[int, int]:
    """Return the shards whose StatefulSets are to exist, with their replicas.

    A removed shard stays until all its nodes are empty; a shard keeps its pods until its primary is one that stays.
    """
    wanted = 1 + cluster.spec.replicas_per_shard
    found = dict.fromkeys(range(cluster.spec.shards), wanted)
    for shard, replicas in existing.items():
        members = [one for one in view.members if one.shard == shard]
        nodes = view.shard(shard)
        settled = len(nodes) == len(members) and cluster.status.formed
        if shard >= cluster.spec.shards and not (settled and all(is_empty(node.state) for node in nodes)):
            found[shard] = replicas
        elif shard < cluster.spec.shards and replicas > wanted:
            primary = view.primary_of(shard)
            moved = settled and primary is not None and not primary.member.excess
            found[shard] = wanted if moved else replicas
    return found


def _readiness(cluster: RedisCluster, objects: Sequence[AnyObject]) -> ObjectStatus:
    found = objects_status(cluster, objects)
    if found.status == "Current" and cluster.status.step:
        return ObjectStatus("InProgress", cluster.status.step_message)
    return found


async def _report_claims(cluster: RedisCluster, ctx: Context) -> None:
    """Record which claims outlive the cluster."""
    if cluster.spec.deletion_policy == "Retain":
        ctx.event("ClaimsRetained", f"the data is kept in the claims data-{cluster.name}-shard-*", action="Delete")


class RedisClusterReconciler(WorkflowReconciler[RedisCluster]):
    """Reconciles RedisClusters by their workflow."""

    finalizer = "redis.example.com/rediscluster"
    workflow = new_cluster_workflow()

    async def reconcile(self, cluster: RedisCluster, ctx: Context, /) -> Result:
        if cluster.spec.suspend and (passwords := await find_passwords(cluster, ctx)) is not None:
            members = await _members(cluster, ctx, passwords)
            record(cluster, await observe(members, ctx.shared(Engine), shards=cluster.spec.shards), None)
        return await super().reconcile(cluster, ctx)

    def observe(self, cluster: RedisCluster, ctx: Context, state: WorkflowState, /) -> None:
        """Set the counts and the conditions of the cluster."""
        sets = [one for one in (state["shards"].objects if "shards" in state else ()) if isinstance(one, StatefulSet)]
        cluster.status.ready_replicas = sum(one.status.ready_replicas or 0 for one in sets)
        if sets:
            cluster.status.connection_secret = cluster.name
        set_conditions(cluster, ctx)


def _cluster_of(pod: Pod) -> list[Key]:
    found = pod.metadata.labels or {}
    name = found.get("app.kubernetes.io/instance", "")
    return [Key(pod.namespace, name)] if name and children.SHARD in found else []


def cluster_controller(reconciler: RedisClusterReconciler) -> Controller[RedisCluster]:
    """Return the controller of the kind."""
    builder = reconciler.workflow.builder().watches(Pod, to_keys(_cluster_of, Pod))
    return builder.needs(Secret, "get", "create", "patch").needs(Pod, "delete").build(reconciler)
