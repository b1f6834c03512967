from mailboxes.api import DomainSpec

DomainSpec("example.com")  # mistake
