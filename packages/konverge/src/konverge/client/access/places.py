"""Where a setting stands: which file, which field. Every ConfigError about a setting starts here.

A place holds names, never values, so an error made from it can show no secret.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge.errors import ConfigError

__all__ = ["Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a file: `Place("kubeconfig a.yaml", "users[2].user.token")`."""

    file: str
    field: str = ""

    def at(self, name: str) -> Place:
        """Go one step down: to a key of this mapping."""
        return Place(self.file, f"{self.field}.{name}" if self.field else name)

    def error(self, what: str, advice: str = "") -> ConfigError:
        """Make the error that says what is wrong here, and what to do about it."""
        where = f", at {self.field}" if self.field else ""
        return ConfigError(f"{self.file}: {what}{where}{f' ({advice})' if advice else ''}")
