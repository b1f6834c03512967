from konverge import ObjectMeta
from mailboxes.api import Mailbox

Mailbox(metadata=ObjectMeta(name="info"))  # mistake
