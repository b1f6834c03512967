from konverge import Context, Reconciler, Result
from mailboxes.api import Mailbox


class MailboxReconciler(Reconciler[Mailbox]):
    async def reconcile(self, mailbox: Mailbox, ctx: Context) -> Result:
        return 30  # mistake
