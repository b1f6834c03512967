from mailboxes.api import Mailbox


def observe(mailbox: Mailbox) -> None:
    mailbox.status.ready = 1  # mistake
