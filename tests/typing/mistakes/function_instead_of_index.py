from konverge import controller_for
from mailboxes.api import Mailbox


def image_of(mailbox: Mailbox) -> list[str]:
    return [mailbox.spec.image]


controller_for(Mailbox).index(Mailbox, "image", image_of)  # mistake
