from mailboxes.api import MailboxSpec

MailboxSpec(replicas=2)  # mistake
