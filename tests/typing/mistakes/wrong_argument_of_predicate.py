from konverge.triggers import Predicate
from mailboxes.api import Mailbox


def is_paid(mailbox: Mailbox) -> bool:
    return mailbox.spec.plan == "paid"


Predicate(is_paid)  # mistake
