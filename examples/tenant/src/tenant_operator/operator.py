"""The operator: `konverge dev tenant_operator` and `konverge run tenant_operator` load it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from konverge import Client, Key, Operator, controller_for
from konverge.cache import CacheOptions, by_function
from konverge.k8s.core.v1 import ConfigMap, Namespace, ResourceQuota, Secret
from konverge.triggers import Channel, to_referring
from tenant_operator.api import Profile, Tenant
from tenant_operator.beta import BetaTenant, conversion
from tenant_operator.billing import CHANNEL, Billing, poll_billing
from tenant_operator.reconciler import SYSTEM_NAMESPACE, TenantReconciler
from tenant_operator.webhook import check


def registry_of(tenant: Tenant) -> list[Key]:
    """Return the key of the Secret that a tenant refers to."""
    return [Key(SYSTEM_NAMESPACE, tenant.spec.registry)] if tenant.spec.registry is not None else []


def make_operator(billing: Billing) -> Operator:
    """Return the operator with the given billing system."""

    @asynccontextmanager
    async def open_billing(_client: Client) -> AsyncGenerator[Billing]:
        yield billing

    controller = (
        controller_for(Tenant)
        .owns(Namespace)
        .owns(ResourceQuota)
        .owns(ConfigMap)
        .index(Tenant, "profile", ".spec.profile")
        .watches(Profile, to_referring(Tenant, index="profile"))
        .index(Tenant, "registry", by_function(Tenant, registry_of))
        .watches(Secret, to_referring(Tenant, index="registry"), options=CacheOptions(metadata_only=True))
        .needs(Secret, "get")
        .channel(Channel(CHANNEL))
        .build(TenantReconciler())
    )
    return Operator(
        name="tenant-operator",
        kinds=((Tenant, BetaTenant), Profile),
        controllers=(controller,),
        webhooks=(check, conversion),
        runnables=(poll_billing,),
        shared=(open_billing,),
        samples=tuple(sorted((Path(__file__).parents[2] / "samples").glob("*.yaml"))),
    )


operator = make_operator(Billing())
