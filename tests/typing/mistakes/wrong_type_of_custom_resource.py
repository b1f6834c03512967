from mailboxes.api import MailboxSpec

MailboxSpec(image="mail:1", replicas="2")  # mistake
