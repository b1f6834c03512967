from konverge import controller_for
from mailboxes.api import Mailbox
from mailboxes.reconciler import MailboxReconciler

controller_for(Mailbox).build(MailboxReconciler)  # mistake
