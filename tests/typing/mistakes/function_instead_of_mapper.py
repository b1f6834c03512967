from konverge import controller_for
from konverge.k8s.core.v1 import Secret
from mailboxes.api import Mailbox
from mailboxes.operator import mailboxes_of

controller_for(Mailbox).watches(Secret, mailboxes_of)  # mistake
