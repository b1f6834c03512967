from konverge import controller_for
from mailboxes.api import Domain
from mailboxes.reconciler import MailboxReconciler

controller_for(Domain).build(MailboxReconciler())  # mistake
