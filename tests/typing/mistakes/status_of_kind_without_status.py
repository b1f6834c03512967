from mailboxes.api import Domain


def observe(domain: Domain) -> None:
    domain.status.conditions = []  # mistake
