"""The healthz and readyz checks of a process, in the format of Kubernetes' own servers.

A check returns a reason when something is wrong and "" when not. *Live* checks fail when a restart would help; *ready*
checks fail when this process should not get work. Both run in the lease thread while the main loop may be blocked, so a
check only reads state; it does not wait and does not change anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

__all__ = ["Check", "CheckResult", "Health", "Report"]

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_REASON: Final = 2000


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, and a function that returns the reason of a failure ("" when there is none)."""

    name: str
    checker: Callable[[], str]
    live: bool = False
    ready: bool = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"the name of a check is part of a URL: letters, digits, '-', '_' and '.', got {self.name!r}"
            )

    def run(self) -> CheckResult:
        """Run the check once. A check that raises is a failed check."""
        try:
            reason = self.checker()
        except Exception as error:
            reason = f"the check failed: {type(error).__name__}: {error}"
        return CheckResult(self.name, " ".join(reason.split())[:_LONGEST_REASON])


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: the reason of the failure, "" when it passed."""

    name: str
    reason: str = ""
    excluded: bool = False

    def line(self) -> str:
        """Return the line of the verbose report."""
        if self.excluded:
            return f"[+]{self.name} excluded: ok"
        return f"[-]{self.name} failed: {self.reason}" if self.reason else f"[+]{self.name} ok"


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all checks; it is ok when no check failed, except excluded ones."""

    name: str
    results: tuple[CheckResult, ...]
    unknown: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(result.reason and not result.excluded for result in self.results)

    def text(self, *, verbose: bool = False) -> str:
        """Return "ok" when all passed; otherwise, or with `verbose`, a line for each check."""
        if self.ok and not verbose:
            return "ok"
        lines = [result.line() for result in self.results]
        if self.unknown:
            names = ",".join(f'"{name}"' for name in self.unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        return "\n".join([*lines, f"{self.name} check {'passed' if self.ok else 'failed'}", ""])


class Health:
    """All checks of a process. Any thread may call `add`, also while checks run."""

    def __init__(self, *checks: Check) -> None:
        self._checks: tuple[Check, ...] = ()
        self.add(Check("ping", lambda: "", live=True), *checks)

    def add(self, *checks: Check) -> None:
        """Add checks.

        Raises: ValueError for a name that is in use.
        """
        for check in checks:
            if any(check.name == other.name for other in self._checks):
                raise ValueError(f"a check named {check.name!r} already exists")
            # Replaced as a whole: another thread may be iterating over the old tuple.
            self._checks = (*self._checks, check)

    def live(self, *, exclude: Collection[str] = ()) -> Report:
        """Run the live checks: a failure means that a restart would help."""
        return self._report("healthz", [check for check in self._checks if check.live], exclude)

    def ready(self, *, exclude: Collection[str] = ()) -> Report:
        """Run the ready checks: a failure means that this process cannot do its work."""
        return self._report("readyz", [check for check in self._checks if check.ready], exclude)

    def _report(self, name: str, checks: list[Check], exclude: Collection[str]) -> Report:
        results = tuple(
            CheckResult(check.name, excluded=True) if check.name in exclude else check.run() for check in checks
        )
        known = {check.name for check in checks}
        return Report(name, results, tuple(each for each in exclude if each not in known))
