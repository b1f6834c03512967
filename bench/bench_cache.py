"""The cache compared with its peers on one real API server: 10,000 widgets and 10,000 pods (50,000 with --large).

Run by `make bench-cache`, after `make bench-peers`. Each contender runs in its own process, in shuffled rounds against
the same server, and reports:

- wall, cpu: seconds from the first request until the cache is complete, and CPU seconds in that time;
- peak: the peak memory of the process; settled: its memory after a pause, with unused memory returned to the system;
  held: settled minus settled of the same process with an empty collection, per object;
- get, list, index: reads per second of one object by name, and of one percent of the objects by label and by node.
  Readers get their own copy, as in operators; kopf does not copy.

The targets are about CPU and memory. Other load on the machine affects wall times and read rates of all contenders.
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

from etcd_copies import copy_stored
from load import load
from measurement import Measurement, Result, measure_rounds

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
"""Contenders that take minutes with 50,000 objects: there they run once, after the others."""

CREATED = 10_000
"""Number of objects that are created; more objects are copies of them, written to etcd."""

Metrics = dict[str, dict[str, Measurement]]


def one_process(name: str, kubeconfig: str, what: str, count: int) -> dict[str, float]:
    """Run a contender once and return its metrics."""
    *_, variant = name.split(", ")
    command = [*CONTENDERS[name], kubeconfig, what, str(count), variant]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed with {done.returncode}:\n{done.stderr[-3000:]}{done.stdout[-3000:]}")
    metrics: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return metrics


class Trial:
    """One collection of `count` objects on its own server, and the metrics of the contenders."""

    def __init__(self, plane: ControlPlane, what: str, count: int, names: list[str]) -> None:
        self.count = count
        self.names = names
        self._kubeconfig = str(plane.kubeconfig)
        self._what = what
        self._runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        self._load(plane, 0)
        self._empty = {name: one_process(name, self._kubeconfig, what, 0)["settled"] for name in names}
        self._load(plane, count)

    def run(self, name: str) -> float:
        """Run a contender once, record its metrics and return its CPU seconds."""
        metrics = one_process(name, self._kubeconfig, self._what, self.count)
        metrics["held"] = (metrics["settled"] - self._empty[name]) / self.count
        print(f"{self._what} {self.count} {name}: {_format(metrics)}", file=sys.stderr, flush=True)
        self._runs[name].append(metrics)
        return metrics["cpu"]

    def metrics(self) -> Metrics:
        """Return the recorded metrics."""
        return {
            name: {column: Measurement(column, [one[column] for one in runs]) for column in COLUMNS}
            for name, runs in self._runs.items()
        }

    def _load(self, plane: ControlPlane, count: int) -> None:
        start = time.perf_counter()
        asyncio.run(load(self._kubeconfig, self._what, 0, min(count, CREATED)))
        copy_stored(plane, self._what, max(0, count - CREATED))
        print(f"{count} {self._what} in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def measure(trials: list[Trial], rounds: int) -> None:
    """Run all contenders of all trials in shuffled rounds, so that other load affects all sizes alike."""
    pairs = [(trial, name) for trial in trials for name in trial.names]
    slow = [(trial, name) for trial, name in pairs if name in SLOW and trial.count > 10_000]
    for some, times in (([pair for pair in pairs if pair not in slow], rounds), (slow, 1)):
        measure_rounds({f"{trial.count} {name}": partial(trial.run, name) for trial, name in some}, rounds=times)


def _format(metrics: dict[str, float]) -> str:
    return ", ".join(f"{title} {metrics[name] * unit:.{digits}f}" for name, (title, unit, digits) in COLUMNS.items())


def table(title: str, metrics: Metrics) -> str:
    """Return a table of the metrics of all contenders."""
    rows = [f"### {title}", "", "| | " + " | ".join(title for title, _, _ in COLUMNS.values()) + " |"]
    rows.append("|---|" + "--:|" * len(COLUMNS))
    for name, measured in metrics.items():
        cells = (f"{measured[column].median * unit:,.{digits}f}" for column, (_, unit, digits) in COLUMNS.items())
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def add_targets(result: Result, what: str, metrics: Metrics) -> None:
    """Add the targets of one collection."""

    def against(column: str, peer: str, limit: float, ours: str = "konverge") -> None:
        if peer in metrics and ours in metrics:
            ratio = metrics[ours][column].median / metrics[peer][column].median
            result.target(f"{what}: {column} of {ours} at most {limit}x {peer} ({ratio:.2f}x)", ratio <= limit)

    against("cpu", "client-go, typed", 0.6)
    against("peak", "client-go, typed", 0.7)
    for more in ("", ", stripped"):
        against("held", f"client-go, typed{more}", 0.5)
        against("held", f"client-go, typed{more}", 0.15, "konverge, compressed")
    against("cpu", "kopf", 0.1)
    against("peak", "kopf", 0.4)
    against("settled", "kopf", 0.4)


def add_growth(result: Result, what: str, small: Metrics, large: Metrics, times: float) -> None:
    """Add whether the cost of konverge grows at most linearly with the number of objects."""
    for name in ("konverge", "konverge, compressed"):
        if name in small:
            cpu, held = (large[name][one].median / small[name][one].median for one in ("cpu", "held"))
            claim = f"{what}: cpu of {name} grows linearly within 15% ({cpu / times:.2f} of linear)"
            result.target(claim, cpu / times <= 1.15)
            result.target(f"{what}: held of {name} per object grows at most 15% ({held:.2f}x)", held <= 1.15)


def main(args: argparse.Namespace) -> None:
    counts = [args.count, args.count * 5] if args.large else [args.count]
    result = Result(
        args.result, f"Median of {args.rounds} shuffled rounds (above 10,000 objects {', '.join(SLOW)} runs once)."
    )
    for what in args.kinds:
        with ExitStack() as planes:
            trials = [Trial(planes.enter_context(ControlPlane()), what, count, args.contenders) for count in counts]
            measure(trials, args.rounds)
        for trial in trials:
            title, metrics = f"{trial.count:,} {what}", trial.metrics()
            result.text(table(title, metrics))
            for column in ("cpu", "held"):
                name, unit, _ = COLUMNS[column]
                scaled = {
                    one: Measurement(one, [value * unit for value in columns[column].rounds])
                    for one, columns in metrics.items()
                }
                result.compare(f"{title}: {name}", name, scaled, against=next(iter(scaled)))
            add_targets(result, title, metrics)
        if args.large:
            add_growth(result, what, trials[0].metrics(), trials[1].metrics(), counts[1] / counts[0])
        result.save()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--large", action="store_true", help="also measure five times as many objects")
    parser.add_argument("--kinds", nargs="+", choices=["widgets", "pods"], default=["widgets", "pods"])
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--result", default="cache", help="name of the result in bench/results")
    args: Any = parser.parse_args()
    return args  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(arguments())
