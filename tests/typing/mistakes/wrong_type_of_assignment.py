from mailboxes.api import Mailbox


def scale(mailbox: Mailbox) -> None:
    mailbox.spec.replicas = "2"  # mistake
