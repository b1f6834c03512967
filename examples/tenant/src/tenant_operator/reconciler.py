"""What happens for each Tenant."""

from konverge import Context, Key, ObjectMeta, Reconciler
from konverge.k8s.core.v1 import ConfigMap, Namespace, ResourceQuota, ResourceQuotaSpec, Secret
from konverge.objects import QuantityText
from tenant_operator.api import Profile, Tenant
from tenant_operator.billing import Billing

SYSTEM_NAMESPACE = "tenant-system"


def namespace_for(tenant: Tenant) -> Namespace:
    """Return the namespace of a tenant."""
    return Namespace(metadata=ObjectMeta(name=f"tenant-{tenant.name}", labels={"example.com/tenant": tenant.name}))


def quota_for(tenant: Tenant, profile: Profile, *, suspended: bool) -> ResourceQuota:
    """Return the quota of a profile; a suspended tenant starts no pods."""
    pods = 0 if suspended else profile.spec.pods
    hard: dict[str, QuantityText] = {
        "pods": str(pods),
        "limits.cpu": profile.spec.cpu,
        "limits.memory": profile.spec.memory,
    }
    metadata = ObjectMeta(name="tenant", namespace=namespace_for(tenant).name)
    return ResourceQuota(metadata=metadata, spec=ResourceQuotaSpec(hard=hard))


def settings_for(tenant: Tenant, registry_user: str) -> ConfigMap:
    """Return what the programs of a tenant may read about it."""
    metadata = ObjectMeta(name="tenant", namespace=namespace_for(tenant).name)
    return ConfigMap(metadata=metadata, data={"owner": tenant.spec.owner, "registry-user": registry_user})


class TenantReconciler(Reconciler[Tenant]):
    """Creates a namespace with a quota and settings."""

    async def reconcile(self, tenant: Tenant, ctx: Context, /) -> None:
        """Apply the children, or report what is missing; the watches enqueue the tenant when that appears."""
        profile = await ctx.get(Profile, tenant.spec.profile)
        if profile is None:
            ctx.set_ready(tenant, False, reason="ProfileNotFound", message=f"no Profile {tenant.spec.profile}")
        else:
            await self.apply_children(tenant, profile, ctx)
        await ctx.update_status(tenant)

    async def apply_children(self, tenant: Tenant, profile: Profile, ctx: Context) -> None:
        """Apply the namespace and what is in it."""
        namespace = await ctx.apply(namespace_for(tenant))
        tenant.status.namespace = namespace.name
        if namespace.metadata.deletion_timestamp is not None:  # nothing can be created in it
            ctx.set_ready(tenant, False, reason="NamespaceTerminating")
            return
        tenant.status.suspended = tenant.name in await ctx.shared(Billing).list_overdue()
        await ctx.apply(quota_for(tenant, profile, suspended=tenant.status.suspended))
        await ctx.apply(settings_for(tenant, await self.registry_user(tenant, ctx)))
        ctx.set_ready(tenant, True, reason="Suspended" if tenant.status.suspended else "Active")

    async def registry_user(self, tenant: Tenant, ctx: Context) -> str:
        """Return the user of the tenant's registry, "" without one."""
        if tenant.spec.registry is None:
            return ""
        secret = await ctx.get(Secret, Key(SYSTEM_NAMESPACE, tenant.spec.registry))
        return secret.data.get("username", b"").decode() if secret is not None else ""
