"""The cache side by side with its peers, on one real API server: 10,000 widgets and 10,000 pods (50,000 with --large).

Run by `make bench-cache`, after `make bench-peers`. Each contender runs in a process of its own, in shuffled rounds
against the same server, and says of itself:

- wall, cpu: seconds from the first request to the moment that everything is there, and CPU seconds in that time;
- peak: the most memory that the process ever had; settled: what it has after a rest, with everything given back that
  is not in use; held: settled less what the same process has settled at with an empty collection, for each object;
- get, list, index: how often a second one object is read by name, and the hundredth part of all by label and by node.
  Readers get a copy of their own, as in operators; kopf has none to give.

CPU and memory are what is judged; other work on the machine makes wall times and reads a second worse, for all alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from copying import copy_stored
from load import load
from measuring import Measured, in_rounds, keep, verdict

from konverge.testing import ControlPlane

PEERS = Path(__file__).parent / "peers"
BUILT = PEERS / "built"
PYTHON = [sys.executable, "-W", "ignore"]

CONTENDERS: dict[str, list[str]] = {
    "konverge": [*PYTHON, str(PEERS / "konverge_peer.py")],
    "konverge, compressed": [*PYTHON, str(PEERS / "konverge_peer.py")],
    "client-go, dynamic": [str(BUILT / "client-go"), "dynamic"],
    "client-go, typed": [str(BUILT / "client-go"), "typed"],
    "client-go, typed, stripped": [str(BUILT / "client-go"), "typed"],
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

SLOW = ("kopf",)
"""What takes minutes at 50,000 objects: there it runs once, after the others."""

CREATED = 10_000
"""So many objects are created; what is more are copies of them, made in etcd."""

Figures = dict[str, dict[str, Measured]]


def one_process(name: str, kubeconfig: str, what: str, count: int) -> dict[str, float]:
    """Run a contender once and give its figures."""
    *_, variant = name.split(", ")
    command = [*CONTENDERS[name], kubeconfig, what, str(count), variant]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed with {done.returncode}:\n{done.stderr[-3000:]}{done.stdout[-3000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


class Trial:
    """One collection of so many objects on a server of its own, and what contenders made of it."""

    def __init__(self, plane: ControlPlane, what: str, count: int, names: list[str]) -> None:
        self.count = count
        self.names = names
        self._kubeconfig = str(plane.kubeconfig)
        self._what = what
        self._found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        self._load(plane, 0)
        self._empty = {name: one_process(name, self._kubeconfig, what, 0)["settled"] for name in names}
        self._load(plane, count)

    def run(self, name: str) -> float:
        """Run a contender once, note its figures and give its CPU seconds."""
        figures = one_process(name, self._kubeconfig, self._what, self.count)
        figures["held"] = (figures["settled"] - self._empty[name]) / self.count
        print(f"{self._what} {self.count} {name}: {_shown(figures)}", file=sys.stderr, flush=True)
        self._found[name].append(figures)
        return figures["cpu"]

    def figures(self) -> Figures:
        """Give what was noted."""
        return {
            name: {column: Measured(column, [one[column] for one in runs]) for column in COLUMNS}
            for name, runs in self._found.items()
        }

    def _load(self, plane: ControlPlane, count: int) -> None:
        began = time.perf_counter()
        asyncio.run(load(self._kubeconfig, self._what, 0, min(count, CREATED)))
        copy_stored(plane, self._what, max(0, count - CREATED))
        print(f"{count} {self._what} in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def measure(trials: list[Trial], rounds: int) -> None:
    """Run all contenders of all trials in shuffled rounds: what disturbs one size then disturbs the other as well."""
    pairs = [(trial, name) for trial in trials for name in trial.names]
    slow = [(trial, name) for trial, name in pairs if name in SLOW and trial.count > 10_000]
    for some, times in (([pair for pair in pairs if pair not in slow], rounds), (slow, 1)):
        in_rounds({f"{trial.count} {name}": partial(trial.run, name) for trial, name in some}, rounds=times)


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
        *(against("held", f"client-go, typed{more}", 0.5) for more in ("", ", stripped")),
        *(against("held", f"client-go, typed{more}", 0.15, "konverge, compressed") for more in ("", ", stripped")),
        against("cpu", "kopf", 0.1),
        against("peak", "kopf", 0.4),
        against("settled", "kopf", 0.4),
    ]
    return [line for line in lines if line]


def growth(what: str, small: Figures, large: Figures, times: float) -> list[str]:
    """Say whether what konverge needs grows no faster than what it holds."""
    lines = []
    for name in ("konverge", "konverge, compressed"):
        if name in small:
            cpu, held = (large[name][one].median / small[name][one].median for one in ("cpu", "held"))
            words = f"{what}: cpu of {name} grows linearly within 15% ({cpu / times:.2f} of linear)"
            lines.append(verdict(words, cpu / times <= 1.15))
            lines.append(verdict(f"{what}: held of {name} per object grows at most 15% ({held:.2f}x)", held <= 1.15))
    return lines


def main(asked: argparse.Namespace) -> None:
    counts = [asked.count, asked.count * 5] if asked.large else [asked.count]
    head = f"Median of {asked.rounds} shuffled rounds (above 10,000 objects {', '.join(SLOW)} runs once).\n\n"
    text, lines = "", []
    for what in asked.kinds:
        with ExitStack() as planes:
            trials = [Trial(planes.enter_context(ControlPlane()), what, count, asked.contenders) for count in counts]
            measure(trials, asked.rounds)
        for trial in trials:
            text += table(f"{trial.count:,} {what}", trial.figures()) + "\n"
            lines += verdicts(f"{trial.count:,} {what}", trial.figures())
        if asked.large:
            lines += growth(what, trials[0].figures(), trials[1].figures(), counts[1] / counts[0])
        keep(asked.keep, head + text + "\n".join(lines) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--large", action="store_true", help="also with five times as many")
    parser.add_argument("--kinds", nargs="+", choices=["widgets", "pods"], default=["widgets", "pods"])
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--keep", default="cache", help="the name of the result in bench/results")
    found: Any = parser.parse_args()
    return found  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(arguments())
