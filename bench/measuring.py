"""What the benchmarks share: contenders measured in shuffled rounds, tables with the spread, results that are kept.

The machine is shared and noisy, so every contender runs in every round, in another order each time. The figure is the
median of the rounds; the spread is how far the middle half of them lies apart.
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass
class Measured:
    """The figures of one contender, one for each round."""

    name: str
    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        if len(self.rounds) < 4:
            return max(self.rounds) - min(self.rounds)
        low, _, high = statistics.quantiles(self.rounds, n=4)
        return high - low


def microseconds(run: Callable[[], object], seconds: float = 0.05) -> float:
    """Give the CPU time of one call, in microseconds, over about that many seconds of calls."""
    once = _timed(run, 1)
    count = max(1, int(seconds / max(once, 1e-7)))
    return _timed(run, count) / count * 1e6


def _timed(run: Callable[[], object], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        run()
    return time.process_time() - begin


def in_rounds(contenders: dict[str, Callable[[], float]], rounds: int = 15, seed: int = 1) -> dict[str, Measured]:
    """Measure every contender in every round, shuffled; give the figures by name."""
    shuffle = random.Random(seed).shuffle
    measured = {name: Measured(name) for name in contenders}
    for _ in range(rounds):
        order = list(contenders)
        shuffle(order)
        for name in order:
            measured[name].rounds.append(contenders[name]())
    return measured


def table(title: str, unit: str, measured: dict[str, Measured], against: str) -> str:
    """Show the figures, fastest first, each with its ratio to one contender."""
    base = measured[against].median
    rows = [f"### {title}", "", f"| | {unit} | spread | x {against} |", "|---|--:|--:|--:|"]
    rows += [
        f"| {one.name} | {one.median:,.2f} | {one.spread:,.2f} | {one.median / base:.2f} |"
        for one in sorted(measured.values(), key=lambda one: one.median)
    ]
    return "\n".join(rows) + "\n"


def verdict(claim: str, holds: bool) -> str:
    """Say whether a target is met, in one line."""
    return f"- {'met' if holds else '**missed**'}: {claim}"


def keep(name: str, text: str) -> None:
    """Print a result and keep it in bench/results, with the machine and the commit."""
    head = f"# {name}\n\n{machine()}\n\n"
    sys.stdout.write(head + text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(head + text)


def machine() -> str:
    """Say what was measured, on what."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip() or "unknown",
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
    }
    return "Measured on: " + json.dumps(facts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
