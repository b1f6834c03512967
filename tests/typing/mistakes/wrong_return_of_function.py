from konverge import Context, controller_for
from mailboxes.api import Mailbox


async def reconcile(mailbox: Mailbox, ctx: Context) -> float:
    return 30.0


controller_for(Mailbox).build(reconcile)  # mistake
