from mailboxes.api import Mailbox, MailboxSpec

Mailbox(spec=MailboxSpec(image="mail:1", quotas=1))  # mistake
