"""The billing system, outside of the cluster: it knows who has not paid."""

import asyncio
from dataclasses import dataclass, field

from konverge.manager import RunnableContext
from tenant_operator.api import Tenant

POLL_SECONDS = 30.0
CHANNEL = "billing"


@dataclass
class Billing:
    """A client of the billing system; this one has its data in memory."""

    overdue: set[str] = field(default_factory=set[str])

    async def list_overdue(self) -> list[str]:
        """Return the names of the tenants that have not paid."""
        return sorted(self.overdue)


async def poll_billing(ctx: RunnableContext) -> None:
    """Enqueue the tenants whose status differs from what billing reports."""
    while True:
        try:
            overdue = await ctx.shared(Billing).list_overdue()
        except OSError as error:  # an error that leaves a runnable ends the manager
            ctx.log.warning("billing is not available", extra={"error": str(error)})
        else:
            for tenant in ctx.cache.lister(Tenant).list():
                if tenant.status.suspended != (tenant.name in overdue):
                    ctx.channel(CHANNEL).put(tenant.key)
        await asyncio.sleep(POLL_SECONDS)
