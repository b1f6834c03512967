from collections.abc import Iterable

from konverge import Context, Key
from konverge.k8s.core.v1 import Secret
from konverge.triggers import to_keys
from mailboxes.api import Mailbox


def mailboxes_with(secret: Secret, ctx: Context) -> Iterable[Key]:
    return [mailbox.key for mailbox in ctx.find(Mailbox, "secret", secret.name)]


to_keys(mailboxes_with, Secret)  # mistake
