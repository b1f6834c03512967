"""Names that the API server takes for groups, versions, kinds and resources, and the plural of a kind."""

from __future__ import annotations

from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors
from konverge.schema.refusals import refused_value

__all__ = ["check_group", "check_label", "plural_of"]


def check_label(path: str, name: str, *, any_case: bool = False) -> None:
    """Check a DNS label (RFC 1035) that stands at `path` of the CRD; a kind may mix cases.

    Raises: ValueError that says how a label looks.
    """
    if rfc1035_label_errors(name.lower() if any_case else name):
        letters = "letters" if any_case else "lowercase letters"
        instead = f"write at most 63 {letters}, digits and '-', a letter first, a letter or digit last"
        raise refused_value(path, f"{name!r} is not a DNS label", instead)


def check_group(path: str, group: str) -> None:
    """Check an API group: a domain with a dot, such as `example.com`.

    Raises: ValueError that says how a group looks.
    """
    if dns_subdomain_errors(group) or "." not in group:
        raise refused_value(path, f"{group!r} is no API group", "write a lowercase domain with a dot: 'example.com'")


def plural_of(kind: str) -> str:
    """Guess the plural of a kind by the rules of English that need no dictionary."""
    name = kind.lower()
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in ("a", "e", "i", "o", "u"):
        return f"{name[:-1]}ies"
    return f"{name}s"
