"""Impersonation of another user: the Impersonate- headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Impersonation"]

_TOKEN_CHARACTERS = frozenset("!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The characters of a header name, except the percent sign, which escapes all others."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user that requests impersonate. The server checks that the real user is allowed to."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError("Impersonation: uid, groups and extra need a user")
        for _, value in self.headers():
            if any(character in value for character in "\r\n\0"):
                raise ValueError("Impersonation: a header cannot contain a line break")

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return names and values in order; a name is repeated for each group and each value of an extra field."""
        uid = (("impersonate-uid", self.uid),) if self.uid else ()
        groups = tuple(("impersonate-group", group) for group in self.groups)
        extra = tuple(
            (f"impersonate-extra-{_escaped(name)}", value) for name, values in self.extra.items() for value in values
        )
        return (("impersonate-user", self.user), *uid, *groups, *extra)


def _escaped(name: str) -> str:
    return "".join(
        character if character in _TOKEN_CHARACTERS else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in name
    )
