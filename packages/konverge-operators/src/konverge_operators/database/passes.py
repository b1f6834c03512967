"""One pass over a Database: observe, apply the children, decide one step and take it.

The order matters in four places:

1. The credentials are recorded in the status before the StatefulSet is created (`credentials.py`).
2. The number of members is recorded before they are stopped, so that all of them start again together.
3. One step at a time: what a step changes is observed before the next one is decided (`steps.py`).
4. A recovery is done, and recorded, before the StatefulSet is created (`backups/restoring.py`).
"""

from __future__ import annotations

from dataclasses import replace

from konverge import Context
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import now
from konverge_operators.database.api import Database
from konverge_operators.database.backups.restoring import go_on_restoring
from konverge_operators.database.backups.schedule import apply_schedule, backups_of, delete_expired
from konverge_operators.database.certificates import ensure_certificate, reload_certificate
from konverge_operators.database.children import (
    POD_MONITOR,
    authorities,
    base_objects,
    pod_template,
    revision_of,
    stateful_set,
)
from konverge_operators.database.credentials import create_credentials, find_secrets, foreign_secret
from konverge_operators.database.engine import Engine, EngineError, ObservedMembers, Target
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import ordinal_of, secrets_of, selector_of
from konverge_operators.database.rotation import rotate_password
from konverge_operators.database.steps import Replace, Restart, ScaleTo, Step, SwitchOver, next_step
from konverge_operators.database.storage import (
    expand_claims,
    find_expansion_error,
    find_lost_claims,
    is_template_stale,
    template_size,
)
from konverge_operators.database.switchovers import switch_over
from konverge_operators.database.upgrade_jobs import JobState, find_job
from konverge_operators.database.upgrades import delete_old_data, execute, next_upgrade_step
from konverge_operators.database.versions import (
    find_major,
    find_violation,
    major_of,
    resolve_version,
    running_version,
)

__all__ = ["Pass"]


class Pass:
    """One pass. `database` is the object as it was last stored, `facts` what was observed of it."""

    def __init__(self, database: Database, ctx: Context, engine: Engine) -> None:
        self.database = database
        self.version = resolve_version(engine.majors, database.spec.version)
        self.facts = Facts(database=database, now=now(), violation=find_violation(database, engine))
        self._ctx = ctx
        self._engine = engine

    @property
    def target(self) -> Target:
        return Target(
            database=self.database,
            version=self.version,
            pods=self.facts.pods,
            secrets=secrets_of(self.database),
            client=self._ctx.client,
        )

    async def run(self) -> None:
        """Observe the database, and bring it one step further unless something forbids that."""
        if not self.facts.violation and not self.database.spec.suspend:
            self.database = await create_credentials(self.database, self._ctx, self._engine)
        await self.observe()
        facts = self.facts
        if not (facts.violation or facts.missing or facts.unreachable or self.database.spec.suspend):
            await self._act()

    async def observe(self) -> None:
        """Read the children and the members."""
        database, ctx = self.database, self._ctx
        labels = ",".join(f"{name}={value}" for name, value in selector_of(database).items())
        secrets = await find_secrets(database, ctx)
        missing = tuple(name for name, one in secrets.items() if one is None)
        if not missing:
            database.status.credentials_created = True  # also those of an earlier Database with the same data
        pods = sorted(await ctx.list(Pod, labels=labels), key=lambda one: ordinal_of(one.name))
        claims = sorted(await ctx.list(PersistentVolumeClaim, labels=labels), key=lambda one: ordinal_of(one.name))
        violation = self.facts.violation or foreign_secret(database, self._engine, secrets)
        self.facts = replace(self.facts, database=database, pods=tuple(pods), violation=violation)
        await self._observe_members()
        await self._observe_version()
        self.facts = replace(
            self.facts,
            revision="" if self.facts.violation else revision_of(self._pod_template()),
            stateful_set=await ctx.get(StatefulSet, database.name),
            claims=tuple(claims),
            missing=missing,
            backups=await backups_of(database, ctx),
        )
        self.facts = replace(self.facts, lost_claims=await find_lost_claims(self.facts, ctx))

    async def _observe_version(self) -> None:
        """Find out which version the members have to run, and how far an upgrade is."""
        database, engine = self.database, self._engine
        last = find_major(engine.majors, database.status.version)
        data = self.facts.observed.major or (last.name if last is not None else "")
        wanted = find_major(engine.majors, database.spec.version)
        self.version = running_version(database, engine, data)
        self.facts = replace(
            self.facts,
            major=data,
            requested_major=wanted.name if wanted is not None else "",
            violation=self.facts.violation or find_violation(database, engine, data),
            upgrade_job=await find_job(database, self._ctx) if database.status.upgrade.stage else JobState(),
        )

    async def _observe_members(self) -> None:
        try:
            self.facts = replace(self.facts, observed=await self._engine.observe(self.target))
        except EngineError as error:
            initialized = ObservedMembers(initialized=self.database.status.initialized)
            self.facts = replace(self.facts, observed=initialized, unreachable=str(error))

    async def _act(self) -> None:
        """Apply the children and take the next step."""
        ctx, engine = self._ctx, self._engine
        template = engine.render(self.database, self.version, self.target.secrets)
        if (certificate := await ensure_certificate(self.database, ctx)) is not None:
            await ctx.apply(authorities(self.database, certificate.authorities))
        for desired in base_objects(self.database, template, pod_monitors=ctx.is_served(POD_MONITOR)):
            await ctx.apply(desired)
        await apply_schedule(self.database, ctx, engine, self.version)
        await delete_expired(self.facts, ctx)
        if self.facts.restoring and not await self._restore():
            return
        if await self._expand():
            return
        if self.facts.primary and not self.facts.observed.config_current:
            await engine.configure(self.target)
        step = next_upgrade_step(self.facts, next_step(self.facts))
        if isinstance(step, str):
            version = resolve_version(engine.majors, self.database.spec.version)
            self.database = await execute(step, ctx, engine, replace(self.target, version=version), self.facts)
            return
        await self._apply_stateful_set(step)
        await self._take(step)
        runs = step is None and not self.database.spec.hibernate
        if runs and self.database.status.upgrade.stage == "Starting":
            self.database = await delete_old_data(ctx, engine, self.target, self.facts)
        if runs:
            self.database = await switch_over(self.database, ctx, engine, self.target, self.facts)
        self.database = await reload_certificate(certificate, ctx, engine, self.target, self.facts)
        if self.facts.primary:
            self.database = await rotate_password(self.database, ctx, engine, self.target, self.facts.now)

    async def _restore(self) -> bool:
        """Go on with a recovery; report whether it is done."""
        state = await go_on_restoring(self.facts, self._ctx, self._engine, self.version)
        self.facts = replace(self.facts, recovery_error=state.error)
        if state.done:
            self.database.status.restored_at = self.facts.now
            self.database = await self._ctx.update_status(self.database)
            self.facts = replace(self.facts, database=self.database)
            self._ctx.event("Restored", "the data is restored and checked by a query", action="Restore")
        return state.done

    async def _expand(self) -> bool:
        """Let the storage grow; report whether the StatefulSet is being deleted for that."""
        facts, existing = self.facts, self.facts.stateful_set
        self.facts = facts = replace(facts, expansion_error=await find_expansion_error(facts, self._ctx))
        if not facts.expansion_error:
            await expand_claims(facts, self._ctx)
        if existing is None:
            return False
        if existing.metadata.deletion_timestamp is None and is_template_stale(facts):
            await self._record_replicas()
            await self._ctx.delete(existing, propagation="Orphan")
            self._ctx.event("StatefulSetRecreated", "the claims have a new size; the pods stay", action="Expand")
            return True
        return existing.metadata.deletion_timestamp is not None

    async def _apply_stateful_set(self, step: Step) -> None:
        """Apply the StatefulSet with the number of members that a step wants, or the one that it has."""
        before = self.facts.replicas
        replicas = step.replicas if isinstance(step, ScaleTo) else before
        if replicas == 0:
            await self._record_replicas()
        storage = template_size(self.database, self.facts.stateful_set)
        desired = stateful_set(self.database, self._pod_template(), replicas=replicas, storage=storage)
        live = await self._ctx.apply(desired)
        if replicas != before:
            self._ctx.event("Scaled", f"from {before} to {replicas} members", action="Scale")
        self.facts = replace(self.facts, stateful_set=live)

    async def _record_replicas(self) -> None:
        """Record how many members there are, before the StatefulSet does not say so any more."""
        if self.facts.replicas and self.database.status.last_replicas != self.facts.replicas:
            self.database.status.last_replicas = self.facts.replicas
            self.database = await self._ctx.update_status(self.database)

    async def _take(self, step: Step) -> None:
        ctx, engine = self._ctx, self._engine
        if isinstance(step, Replace):
            await ctx.delete(step.pod)
            ctx.event("MemberReplaced", f"{step.pod.name} is created again {step.reason}", action="Update")
        elif isinstance(step, Restart):
            await engine.restart(self.target, step.member)
            ctx.event("MemberRestarted", f"{step.member} restarts for its parameters", action="Update")
        elif isinstance(step, SwitchOver):
            await engine.switchover(self.target, step.to)
            ctx.event("SwitchingOver", f"to {step.to}: {step.reason}", action="SwitchOver")

    def _pod_template(self) -> dict[str, object]:
        template = self._engine.render(self.database, self.version, self.target.secrets)
        return pod_template(self.database, template, major_of(self._engine.majors, self.version))
