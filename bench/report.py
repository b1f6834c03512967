"""docs/benchmarks.md and its charts, from the JSON files in bench/results, with bench/results/notes.md about misses.

Run by `make bench` at its end, and alone: `python bench/report.py [docs]`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bars import Bar, bar_chart
from measurement import BUSY, RESULTS, Measurement, table, verdict

CHARTS = "benchmarks"
ORDER = ("controller", "client", "transport", "cache", "cache-events", "scale")

HEAD = """# Benchmarks

Made by `make bench`: every contender runs in every round, in a different order each time, on one machine and against
the same server (operators: a new one for each). A figure is the median of the rounds; the ratio matters more than the
figure. Charts show the median and, as a line, the lowest and the highest round. CPU time is that of the process that is
compared. Figures that were measured while other programs used more than {busy:g} cores are marked as invalid.
"""


def main(docs: Path) -> None:
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    found.sort(key=lambda one: (ORDER.index(one["name"]) if one["name"] in ORDER else len(ORDER), one["name"]))
    charts = docs / CHARTS
    charts.mkdir(parents=True, exist_ok=True)
    notes = RESULTS / "notes.md"
    explained = [notes.read_text()] if notes.exists() else []
    parts = [HEAD.format(busy=BUSY), _misses(found), *explained, *(_section(one, charts) for one in found)]
    (docs / "benchmarks.md").write_text("\n".join(parts))


def _misses(found: list[dict[str, Any]]) -> str:
    """Return the targets that are missed, first: they are what a reader should know."""
    missed = [f"- {one['name']}: {target['claim']}" for one in found for target in one["targets"] if not target["met"]]
    count = sum(len(one["targets"]) for one in found)
    head = f"## Missed\n\n{len(missed)} of {count} targets are missed.\n"
    return "\n".join([head, *missed]) + "\n"


def _section(one: dict[str, Any], charts: Path) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in one["machine"].items())
    parts = [f"## {one['name']}\n", f"{one['head']} ({machine})\n", *one["text"]]
    for number, comparison in enumerate(one["comparisons"]):
        measured = {name: Measurement(name, **values) for name, values in comparison["contenders"].items()}
        file = f"{one['name']}-{number}.svg"
        (charts / file).write_text(_chart(comparison, measured))
        parts += [
            table(comparison["title"], comparison["unit"], measured, comparison["against"]),
            f"![{comparison['title']}]({CHARTS}/{file})\n",
        ]
    parts += [verdict(target["claim"], target["met"]) for target in one["targets"]]
    return "\n".join(parts) + "\n"


def _chart(comparison: dict[str, Any], measured: dict[str, Measurement]) -> str:
    order = sorted(measured.values(), key=lambda one: one.median, reverse=comparison["better"] == "higher")
    bars = [
        Bar(one.name, one.median, min(one.rounds), max(one.rounds), is_own=one.name.startswith("konverge"))
        for one in order
    ]
    unit = f"{comparison['unit']}, {comparison['better']} is better"
    return bar_chart(comparison["title"], unit, bars)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs")
