from konverge import Context
from mailboxes.api import Domain


async def reconcile(domain: Domain, ctx: Context) -> None:
    ctx.condition(domain, "Ready", True, reason="Checked")  # mistake
