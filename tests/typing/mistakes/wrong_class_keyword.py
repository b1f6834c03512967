from konverge import CustomResource
from mailboxes.api import MailboxSpec


class Inbox(CustomResource[MailboxSpec], group="mail.example.com", version="v1", short_name=("in",)):  # mistake
    pass
