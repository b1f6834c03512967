from konverge import Context
from mailboxes.api import Mailbox
from mailboxes.children import deployment_for


async def observe(mailbox: Mailbox, ctx: Context) -> int:
    deployment = await ctx.apply(deployment_for(mailbox))
    return deployment.status.ready or 0  # mistake
