"""Whether this process is well, component by component, in the words of Kubernetes' own servers.

A check gives a reason when something is wrong and "" when not. *Live* checks fail when a restart would help; *ready*
checks fail when this process should not be sent work. Both kinds are asked from the side thread while the main loop may
be busy, so a check only looks; it does not wait, and does not change anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

__all__ = ["Check", "Health", "Outcome", "Report"]

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_REASON: Final = 2000


@dataclass(frozen=True, slots=True)
class Check:
    """One component: its name, and what gives the reason why it is not well ("" when it is)."""

    name: str
    look: Callable[[], str]
    live: bool = False
    ready: bool = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a check's name is part of an address: letters, digits, '-', '_', '.', got {self.name!r}")

    def outcome(self) -> Outcome:
        """Look once. A check that fails to look is a failed check, and nothing worse."""
        try:
            reason = self.look()
        except Exception as error:
            reason = f"the check failed: {type(error).__name__}: {error}"
        return Outcome(self.name, " ".join(reason.split())[:_LONGEST_REASON])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check said: a reason, "" when all is well."""

    name: str
    reason: str = ""
    excluded: bool = False

    def line(self) -> str:
        """Give the line for people."""
        if self.excluded:
            return f"[+]{self.name} excluded: ok"
        return f"[-]{self.name} failed: {self.reason}" if self.reason else f"[+]{self.name} ok"


@dataclass(frozen=True, slots=True)
class Report:
    """What all checks said; it is fine when none that counts failed."""

    name: str
    outcomes: tuple[Outcome, ...]
    unknown: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(outcome.reason and not outcome.excluded for outcome in self.outcomes)

    def text(self, *, verbose: bool = False) -> str:
        """Give it for people: "ok" when it is, else, or when asked for, a line for each check."""
        if self.ok and not verbose:
            return "ok"
        lines = [outcome.line() for outcome in self.outcomes]
        if self.unknown:
            named = ",".join(f'"{name}"' for name in self.unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {named}")
        return "\n".join([*lines, f"{self.name} check {'passed' if self.ok else 'failed'}", ""])


class Health:
    """All checks of a process. `add` may be called while others ask, from any thread."""

    def __init__(self, *checks: Check) -> None:
        self._checks: tuple[Check, ...] = ()
        self.add(Check("ping", lambda: "", live=True), *checks)

    def add(self, *checks: Check) -> None:
        """Take checks in.

        Raises: ValueError for a name that is taken.
        """
        for check in checks:
            if any(check.name == other.name for other in self._checks):
                raise ValueError(f"there is a check named {check.name!r} already")
            # Replaced as a whole: whoever goes through the old ones is not disturbed.
            self._checks = (*self._checks, check)

    def live(self, *, exclude: Collection[str] = ()) -> Report:
        """Ask whether a restart would help."""
        return self._report("healthz", [check for check in self._checks if check.live], exclude)

    def ready(self, *, exclude: Collection[str] = ()) -> Report:
        """Ask whether this process can do its work."""
        return self._report("readyz", [check for check in self._checks if check.ready], exclude)

    def _report(self, name: str, checks: list[Check], exclude: Collection[str]) -> Report:
        outcomes = tuple(
            Outcome(check.name, excluded=True) if check.name in exclude else check.outcome() for check in checks
        )
        known = {check.name for check in checks}
        return Report(name, outcomes, tuple(each for each in exclude if each not in known))
