"""Shared parts of the benchmarks: measurement in shuffled rounds, tables with the spread, result files.

The machine is shared and noisy, so every contender runs in every round, in a different order each time. A result is the
median of the rounds; the spread is the interquartile range. What other programs used meanwhile is measured too: figures
from a busy machine are marked as invalid.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from machine_load import MachineLoad

RESULTS = Path(os.environ.get("KONVERGE_BENCH_RESULTS") or Path(__file__).parent / "results")
BUSY = 0.3
"""The cores that other programs may use; beyond it a figure is invalid."""

Metrics = dict[str, float]
Better = Literal["lower", "higher"]


@dataclass
class Measurement:
    """The values of one contender, one for each round."""

    name: str
    rounds: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    """How many cores other programs used in each round."""

    @property
    def is_valid(self) -> bool:
        """Report whether the machine was quiet in most rounds."""
        return not self.busy or statistics.median(self.busy) <= BUSY

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
    contenders: Mapping[str, Callable[[], float]], rounds: int = 15, seed: int = 1
) -> dict[str, Measurement]:
    """Measure every contender in every round, in shuffled order; return the measurements by name."""
    single = {name: partial(_single, run) for name, run in contenders.items()}
    return measure_metrics(single, rounds, seed).get("", {})


def _single(run: Callable[[], float]) -> Metrics:
    return {"": run()}


def measure_metrics(
    contenders: Mapping[str, Callable[[], Metrics]], rounds: int, seed: int = 1
) -> dict[str, dict[str, Measurement]]:
    """Measure contenders that return several metrics at once; return the measurements by metric and contender."""
    shuffle = random.Random(seed).shuffle
    measured: dict[str, dict[str, Measurement]] = {}
    for _ in range(rounds):
        order = list(contenders)
        shuffle(order)
        for name in order:
            load = MachineLoad()
            metrics = contenders[name]()
            busy = load.foreign_cores()
            for metric, value in metrics.items():
                one = measured.setdefault(metric, {}).setdefault(name, Measurement(name))
                one.rounds.append(value)
                one.busy.append(busy)
    return measured


def table(title: str, unit: str, measured: dict[str, Measurement], against: str) -> str:
    """Return a table of the measurements, fastest first, each with its ratio to the contender `against`."""
    base = measured[against].median
    rows = [f"### {title}", "", f"| | {unit} | spread | x {against} |", "|---|--:|--:|--:|"]
    rows += [
        f"| {one.name}{'' if one.is_valid else ' (invalid: busy machine)'} | {one.median:,.2f} | {one.spread:,.2f}"
        f" | {one.median / base:.2f} |"
        for one in sorted(measured.values(), key=lambda one: one.median)
    ]
    return "\n".join(rows) + "\n"


def verdict(claim: str, holds: bool) -> str:
    """Return a line that says whether a target is met."""
    return f"- {'met' if holds else '**missed**'}: {claim}"


class Result:
    """The result of a benchmark: tables, plain text and targets, in bench/results as Markdown and as JSON.

    `report.py` makes docs/benchmarks.md of the JSON files.
    """

    def __init__(self, name: str, head: str) -> None:
        self.name = name
        self._parts = [head + "\n"]
        self._data: dict[str, Any] = {"name": name, "head": head, "comparisons": [], "targets": [], "text": []}

    def compare(
        self, title: str, unit: str, measured: dict[str, Measurement], *, against: str, better: Better = "lower"
    ) -> None:
        """Add one figure of all contenders, as ratios to the contender `against`."""
        self._parts.append(table(title, unit, measured, against))
        contenders = {name: {"rounds": one.rounds, "busy": one.busy} for name, one in measured.items()}
        self._data["comparisons"].append(
            {"title": title, "unit": unit, "against": against, "better": better, "contenders": contenders}
        )

    def text(self, text: str) -> None:
        """Add a paragraph or a table of its own."""
        self._parts.append(text)
        self._data["text"].append(text)

    def target(self, claim: str, holds: bool) -> None:
        """Add a target and whether it is met."""
        self._data["targets"].append({"claim": claim, "met": holds})

    def save(self) -> None:
        """Print the result and write both files."""
        lines = [verdict(one["claim"], one["met"]) for one in self._data["targets"]]
        save_result(self.name, "\n".join([*self._parts, *lines]) + "\n")
        text = json.dumps(self._data | {"machine": machine_facts()}, indent=1)
        (RESULTS / f"{self.name}.json").write_text(text + "\n")


def save_result(name: str, text: str) -> None:
    """Print a result and write it to bench/results, with the machine and the commit."""
    head = f"# {name}\n\nMeasurement on: {json.dumps(machine_facts())}\n\n"
    sys.stdout.write(head + text)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.md").write_text(head + text)


def machine_facts() -> dict[str, Any]:
    """Return what describes the machine and the commit."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit() or "unknown",
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
    }


def _commit() -> str:
    try:
        found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git: not a reason to lose an hour of measurements
        return ""
    return found.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
