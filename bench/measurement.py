"""Shared parts of the benchmarks: measurement in shuffled rounds, tables with the spread, result files.

The machine is shared and noisy, so every contender runs in every round, in a different order each time. A result is the
median of the rounds; the spread is the interquartile range.
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
class Measurement:
    """The values of one contender, one for each round."""

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
    """Return the CPU time of one call in microseconds, measured over about `seconds` of calls."""
    duration = _timed(run, 1)
    count = max(1, int(seconds / max(duration, 1e-7)))
    return _timed(run, count) / count * 1e6


def _timed(run: Callable[[], object], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        run()
    return time.process_time() - begin


def measure_rounds(
    contenders: dict[str, Callable[[], float]], rounds: int = 15, seed: int = 1
) -> dict[str, Measurement]:
    """Measure every contender in every round, in shuffled order; return the measurements by name."""
    shuffle = random.Random(seed).shuffle
    measured = {name: Measurement(name) for name in contenders}
    for _ in range(rounds):
        order = list(contenders)
        shuffle(order)
        for name in order:
            measured[name].rounds.append(contenders[name]())
    return measured


def table(title: str, unit: str, measured: dict[str, Measurement], against: str) -> str:
    """Return a table of the measurements, fastest first, each with its ratio to the contender `against`."""
    base = measured[against].median
    rows = [f"### {title}", "", f"| | {unit} | spread | x {against} |", "|---|--:|--:|--:|"]
    rows += [
        f"| {one.name} | {one.median:,.2f} | {one.spread:,.2f} | {one.median / base:.2f} |"
        for one in sorted(measured.values(), key=lambda one: one.median)
    ]
    return "\n".join(rows) + "\n"


def verdict(claim: str, holds: bool) -> str:
    """Return a line that says whether a target is met."""
    return f"- {'met' if holds else '**missed**'}: {claim}"


def save_result(name: str, text: str) -> None:
    """Print a result and write it to bench/results, with the machine and the commit."""
    head = f"# {name}\n\n{machine()}\n\n"
    sys.stdout.write(head + text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(head + text)


def machine() -> str:
    """Return a line that describes the machine and the commit."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip() or "unknown",
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
    }
    return "Measurement on: " + json.dumps(facts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
