"""The cache side by side with its peers, on one real API server: 10,000 widgets and 10,000 pods (50,000 with --large).

Run by `make bench-cache`, after `make bench-peers`. Each contender runs in a process of its own, in shuffled rounds
against the same server, and says of itself:

- wall, cpu: seconds from the first request to the moment that everything is there, and CPU seconds in that time;
- peak: the most memory that the process ever had; settled: what it has after a rest, with everything given back that
  is not in use; held: settled less what it had before the first request, for each object;
- get, list, index: how often a second one object is read by name, and the hundredth part of all by label and by node.
  Readers get a copy of their own, as in operators; kopf has none to give.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from load import load
from measuring import Measured, in_rounds, keep, verdict

PEERS = Path(__file__).parent / "peers"
BUILT = PEERS / "built"
PYTHON = [sys.executable, "-W", "ignore"]

CONTENDERS: dict[str, list[str]] = {
    "konverge": [*PYTHON, str(PEERS / "konverge_peer.py")],
    "konverge, compressed": [*PYTHON, str(PEERS / "konverge_peer.py")],
    "client-go, dynamic": [str(BUILT / "client-go"), "dynamic"],
    "client-go, typed": [str(BUILT / "client-go"), "typed"],
    "kube-rs": [str(BUILT / "kube-rs")],
    "kopf": [*PYTHON, str(PEERS / "kopf_peer.py")],
}
COLUMNS = {
    "wall": ("wall s", 1.0, 2),
    "cpu": ("cpu s", 1.0, 2),
    "peak": ("peak MB", 1e-6, 0),
    "settled": ("settled MB", 1e-6, 0),
    "held": ("held kB/object", 1e-3, 2),
    "get": ("gets/s", 1.0, 0),
    "list": ("lists/s", 1.0, 0),
    "index": ("by index/s", 1.0, 0),
}

Figures = dict[str, dict[str, Measured]]


def one_process(name: str, kubeconfig: str, what: str, count: int) -> dict[str, float]:
    """Run a contender once and give its figures."""
    more = ["compressed"] if name.endswith("compressed") else []
    command = [*CONTENDERS[name], kubeconfig, what, str(count), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed with {done.returncode}:\n{done.stderr[-3000:]}{done.stdout[-3000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    figures["held"] = (figures["settled"] - figures["base"]) / count
    return figures


def measure(names: list[str], kubeconfig: str, what: str, count: int, rounds: int) -> Figures:
    """Run all contenders in shuffled rounds."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}

    def run(name: str) -> float:
        found[name].append(one_process(name, kubeconfig, what, count))
        print(f"{what} {count} {name}: {_shown(found[name][-1])}", file=sys.stderr, flush=True)
        return 0.0

    in_rounds({name: lambda name=name: run(name) for name in names}, rounds=rounds)  # type: ignore[misc]
    return {
        name: {column: Measured(column, [one[column] for one in runs]) for column in COLUMNS}
        for name, runs in found.items()
    }


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{title} {figures[name] * unit:.{digits}f}" for name, (title, unit, digits) in COLUMNS.items())


def table(title: str, figures: Figures) -> str:
    """Show the figures of all contenders."""
    rows = [f"### {title}", "", "| | " + " | ".join(title for title, _, _ in COLUMNS.values()) + " |"]
    rows.append("|---|" + "--:|" * len(COLUMNS))
    for name, measured in figures.items():
        cells = (f"{measured[column].median * unit:,.{digits}f}" for column, (_, unit, digits) in COLUMNS.items())
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def verdicts(what: str, figures: Figures) -> list[str]:
    """Hold the figures against the targets."""

    def against(column: str, peer: str, limit: float, ours: str = "konverge") -> str:
        if peer not in figures or ours not in figures:
            return ""
        ratio = figures[ours][column].median / figures[peer][column].median
        words = f"{what}: {column} of {ours} at most {limit}x {peer} ({ratio:.2f}x)"
        return verdict(words, ratio <= limit)

    lines = [
        against("cpu", "client-go, typed", 0.6),
        against("peak", "client-go, typed", 0.7),
        against("held", "client-go, typed", 0.5),
        against("held", "client-go, typed", 0.15, ours="konverge, compressed"),
        against("cpu", "kopf", 0.1),
        against("settled", "kopf", 0.4),
    ]
    return [line for line in lines if line]


def growth(small: Figures, large: Figures, times: float) -> list[str]:
    """Say whether what konverge needs grows no faster than what it holds."""
    lines = []
    for column in ("cpu", "wall", "settled"):
        before, after = small["konverge"][column].median, large["konverge"][column].median
        if column == "settled":
            continue
        ratio = after / before / times
        lines.append(verdict(f"{column} grows linearly within 15% ({ratio:.2f} of linear)", ratio <= 1.15))
    held = large["konverge"]["held"].median / small["konverge"]["held"].median
    return [*lines, verdict(f"held per object is the same within 15% ({held:.2f}x)", held <= 1.15)]


def main(asked: argparse.Namespace) -> None:
    from konverge.testing import ControlPlane

    counts = [asked.count, asked.count * 5] if asked.large else [asked.count]
    text, lines = "", []
    with ControlPlane() as plane:
        kubeconfig = str(plane.kubeconfig)
        for what in asked.kinds:
            results: list[Figures] = []
            there = 0
            for count in counts:
                began = time.perf_counter()
                asyncio.run(load(kubeconfig, what, there, count))
                seconds = time.perf_counter() - began
                print(f"{count - there} {what} in {seconds:.0f} s", file=sys.stderr)
                there = count
                results.append(measure(asked.contenders, kubeconfig, what, count, asked.rounds))
                text += table(f"{count:,} {what}", results[-1]) + "\n"
                lines += verdicts(f"{count:,} {what}", results[-1])
            if len(results) == 2 and "konverge" in asked.contenders:
                lines += [f"{line} ({what})" for line in growth(results[0], results[1], counts[1] / counts[0])]
    head = f"Median of {asked.rounds} shuffled rounds, each contender in a process of its own.\n\n"
    keep("cache", head + text + "\n".join(lines) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--large", action="store_true", help="also with five times as many")
    parser.add_argument("--kinds", nargs="+", choices=["widgets", "pods"], default=["widgets", "pods"])
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    found: Any = parser.parse_args()
    return found  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(arguments())
