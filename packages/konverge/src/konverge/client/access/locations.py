"""The location of a setting: a file and a field. Every ConfigError about a setting names its location.

A location contains names, never values, so its errors contain no secrets.
"""

from __future__ import annotations

from msgspec import Struct

from konverge.errors import ConfigError

__all__ = ["Location"]


class Location(Struct, frozen=True):
    """A field of a file: `Location("kubeconfig a.yaml", "users[2].user.token")`."""

    file: str
    field: str = ""

    def child(self, name: str) -> Location:
        """Return the location of a key of this mapping."""
        return Location(self.file, f"{self.field}.{name}" if self.field else name)

    def error(self, what: str, advice: str = "") -> ConfigError:
        """Return the error about this setting: what is wrong and what to do about it."""
        where = f", at {self.field}" if self.field else ""
        return ConfigError(f"{self.file}: {what}{where}{f' ({advice})' if advice else ''}")
