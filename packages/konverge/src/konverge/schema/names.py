"""Checks for the names of groups, versions, kinds and resources, and the plural of a kind."""

from __future__ import annotations

from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors
from konverge.schema.schema_errors import invalid_value

__all__ = ["check_group", "check_label", "plural_of"]


def check_label(path: str, name: str, *, any_case: bool = False) -> None:
    """Check a DNS label (RFC 1035) at `path` of the CRD; a kind may have upper-case letters.

    Raises: ValueError that describes a valid label.
    """
    if rfc1035_label_errors(name.lower() if any_case else name):
        letters = "letters" if any_case else "lowercase letters"
        suggestion = f"write at most 63 {letters}, digits and '-', a letter first, a letter or digit last"
        raise invalid_value(path, f"{name!r} is not a DNS label", suggestion)


def check_group(path: str, group: str) -> None:
    """Check an API group: a domain with a dot, such as `example.com`.

    Raises: ValueError that describes a valid group.
    """
    if dns_subdomain_errors(group) or "." not in group:
        raise invalid_value(
            path, f"{group!r} is not an API group", "write a lowercase domain with a dot: 'example.com'"
        )


def plural_of(kind: str) -> str:
    """Return the likely plural of a kind by the regular rules of English."""
    name = kind.lower()
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in ("a", "e", "i", "o", "u"):
        return f"{name[:-1]}ies"
    return f"{name}s"
