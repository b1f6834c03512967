from konverge import Context, Reconciler
from mailboxes.api import Mailbox


class MailboxReconciler(Reconciler[Mailbox]):
    async def reconcile(self, mailbox: Mailbox, ctx: Context) -> bool:  # mistake
        return True
