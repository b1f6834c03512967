from konverge import CustomResource
from mailboxes.api import MailboxSpec


class Inbox(CustomResource[MailboxSpec], group="mail.example.com"):  # mistake
    pass
