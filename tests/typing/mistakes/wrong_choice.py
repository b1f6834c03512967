from mailboxes.api import MailboxSpec

MailboxSpec(image="mail:1", plan="gratis")  # mistake
