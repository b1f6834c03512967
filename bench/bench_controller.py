"""One operator written on four frameworks, side by side on one real API server: 2,000 shops, each of which owns a
Deployment and a Service and has a status.

Run by `make bench-controller`, after `make bench-peers`. Each contender runs alone, as a process and a user of its own,
in shuffled rounds against the same server, eight reconciles at a time, without a limit on requests. What is counted is
counted from outside: requests from the server's audit log, CPU time and memory from /proc. In each round:

- converge: the shops are there, the operator starts. Objects a second from the start of the process to the last status;
  requests for each object until it is quiet, without exception; CPU seconds for 1,000 objects, its own and those of the
  server; the most memory it had;
- latency: 10 and 100 changes a second. From the moment that the server received a change to the begin of the reconcile
  that has it (each operator writes name, generation and wall clock into a file);
- restart: the operator starts again and nothing has changed. Seconds until it has looked at every object;
  requests and writes in that time;
- steady: then for 60 seconds, in which every object is looked at again once: requests, writes, CPU seconds.

Each run adds a line to a file of figures, and the tables show all runs that are in it: rounds can be run in parts.

Eight reconciles at a time are at most eight requests at a time, save in kopf: its own patches come on top, and 24
requests were under way on average. On a server that answers slowly this decides the rate, hence the two that can have
more workers with 16 too, which is what konverge has when nothing is said.

The server has the same two cores as the operators, and takes four fifths of their time: what it spends on an object is
shown as well, and no operator can be faster than that leaves room for.

A write is a request that could change something, whether or not it did. Other work on the machine makes rates and
latencies worse, for all alike; requests and CPU time hardly change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from audit import Audit, Request
from measuring import Measured, in_rounds, keep, verdict
from operator_process import OperatorProcess, cpu_of
from shop_load import change, check, clear, load, prepare

from konverge.client import Client, load_config
from konverge.testing import ControlPlane

PEERS = Path(__file__).parent / "peers"
BUILT = PEERS / "built"
PYTHON = [sys.executable, "-W", "ignore"]

CONTENDERS: dict[str, list[str]] = {
    "konverge": [*PYTHON, str(PEERS / "konverge_operator.py")],
    "konverge, 16 workers": [*PYTHON, str(PEERS / "konverge_operator.py"), "16"],
    "controller-runtime": [str(BUILT / "controller-runtime"), "update"],
    "controller-runtime, 16 workers": [str(BUILT / "controller-runtime"), "update", "16"],
    "controller-runtime, apply": [str(BUILT / "controller-runtime"), "apply"],
    "kube-rs": [str(BUILT / "kube-rs-operator")],
    "kopf": [*PYTHON, str(PEERS / "kopf_operator.py")],
}
COLUMNS = {
    "rate": ("objects/s", 1.0, 0),
    "requests": ("requests/object", 1.0, 2),
    "cpu": ("cpu s/1,000", 1.0, 2),
    "server_cpu": ("server's cpu s/1,000", 1.0, 1),
    "peak": ("peak MB", 1e-6, 0),
    "calm_p50": ("p50 ms at 10/s", 1e3, 1),
    "calm_p99": ("p99 ms at 10/s", 1e3, 1),
    "p50": ("p50 ms at 100/s", 1e3, 1),
    "p99": ("p99 ms at 100/s", 1e3, 1),
    "restart_seconds": ("restart s", 1.0, 1),
    "restart_requests": ("restart requests", 1.0, 0),
    "restart_writes": ("restart writes", 1.0, 0),
    "steady_requests": ("steady requests", 1.0, 0),
    "steady_writes": ("steady writes", 1.0, 0),
    "steady_cpu": ("steady cpu s", 1.0, 2),
    "load": ("load", 1.0, 0),
}
PACE = 100.0
CALM_PACE, CALM_CHANGES = 10.0, 200
STEADY = 60.0
SELDOM = 3600.0
QUIET = 3.0
BACKLOG = 1.0
PATIENCE = 600.0

Figures = dict[str, float]
Results = dict[str, dict[str, Measured]]


class Trial:
    """One contender in one round: its shops are made, measured and cleared away."""

    def __init__(self, plane: ControlPlane, client: Client, audit: Audit, *, name: str, count: int) -> None:
        self._plane = plane
        self._client = client
        self._audit = audit
        self._count = count
        self._command = CONTENDERS[name]
        self._user = f"{name.replace(', ', '-')}-{time.time_ns()}"
        self._kubeconfig = plane.kubeconfig_for(self._user, groups=["system:masters"])

    async def run(self, *, steady: bool) -> Figures:
        """Measure everything once."""
        await load(self._client, self._count)
        self._audit.forget()
        with tempfile.TemporaryDirectory() as directory:
            operator = partial(OperatorProcess, self._command, kubeconfig=self._kubeconfig, directory=Path(directory))
            with operator(resync=SELDOM) as process:
                figures = await self._converge(process)
                calm = await self._latency(process, range(CALM_CHANGES), replicas=2, pace=CALM_PACE)
                figures |= {f"calm_{name}": figure for name, figure in calm.items()}
                figures |= await self._latency(process, range(self._count), replicas=3, pace=PACE)
            await self._quiet()
            with operator(resync=STEADY) as process:
                figures |= await self._restart(process)
                if steady:
                    figures |= await self._steady(process)
        await clear(self._client)
        return figures

    async def _converge(self, process: OperatorProcess) -> Figures:
        before = self._server_cpu()
        first = await self._observed(process, since=process.began, count=self._count)
        cpu, server_cpu = process.cpu(), self._server_cpu() - before
        await self._quiet()
        await check(self._client, self._count)
        return {
            "rate": self._count / (max(first.values()) - process.began),
            "requests": len(self._audit.of(self._user)) / self._count,
            "cpu": cpu * 1000 / self._count,
            "server_cpu": server_cpu * 1000 / self._count,
            "peak": process.peak(),
        }

    async def _latency(self, process: OperatorProcess, numbers: range, *, replicas: int, pace: float) -> Figures:
        known = {name: generation for name, generation, _ in process.stamps()}
        begin = time.time()
        await change(self._client, numbers, replicas=replicas, per_second=pace)
        await self._observed(process, since=begin, count=len(numbers))
        await self._quiet()
        await check(self._client, self._count)
        changes = [one for one in self._audit.requests if (one.verb, one.resource) == ("patch", "shops")]
        received = {one.name: one.received for one in changes if one.user == "admin" and one.received >= begin}
        started: dict[str, float] = {}
        for name, generation, moment in process.stamps(since=begin):
            if generation > known[name]:
                started.setdefault(name, moment)
        delays = [started[name] - moment for name, moment in received.items()]
        centiles = statistics.quantiles(delays, n=100)
        return {"p50": centiles[49], "p99": centiles[98]}

    async def _restart(self, process: OperatorProcess) -> Figures:
        def looked_at() -> bool:
            return len({name for name, _, _ in process.stamps()}) >= self._count

        await self._until(looked_at, process)
        first: dict[str, float] = {}
        for name, _, moment in process.stamps():
            first.setdefault(name, moment)
        idle = max(first.values())
        await asyncio.sleep(1)
        self._audit.read()
        asked = self._audit.of(self._user, since=process.began, until=idle + 1)
        return {
            "restart_seconds": idle - process.began,
            "restart_requests": len(asked),
            "restart_writes": sum(one.is_write for one in asked),
        }

    async def _steady(self, process: OperatorProcess) -> Figures:
        begin, cpu = time.time(), process.cpu()
        await asyncio.sleep(STEADY)
        spent = process.cpu() - cpu
        self._audit.read()
        asked = self._audit.of(self._user, since=begin, until=begin + STEADY)
        looks = len({name for name, _, moment in process.stamps(since=begin)})
        print(f"{self._user}: {looks} objects of {self._count} looked at", file=sys.stderr, flush=True)
        return {
            "steady_requests": len(asked),
            "steady_writes": sum(one.is_write for one in asked),
            "steady_cpu": spent,
        }

    def _server_cpu(self) -> float:
        return sum(cpu_of(pid) for pid in self._plane.pids.values())

    # Waiting

    async def _observed(self, process: OperatorProcess, *, since: float, count: int) -> dict[str, float]:
        """Wait until a status of so many shops was written; give when it was, by name."""
        written: dict[str, float] = {}

        def all_written() -> bool:
            self._audit.read()
            for one in self._audit.of(self._user, since=since):
                if _is_status(one):
                    written.setdefault(one.name, one.answered)
            return len(written) >= count

        await self._until(all_written, process)
        return written

    async def _until(self, there: Callable[[], bool], process: OperatorProcess) -> None:
        deadline = time.monotonic() + PATIENCE
        while not there():
            process.check()
            if time.monotonic() > deadline:
                raise SystemExit(f"{self._user} is not done after {PATIENCE:g} s")
            await asyncio.sleep(0.5)

    async def _quiet(self) -> None:
        """Wait until the operator has not asked for anything for a while."""
        while True:
            self._audit.read()
            mine = self._audit.of(self._user)
            if not mine or mine[-1].answered < time.time() - QUIET:
                return
            await asyncio.sleep(0.5)


def _is_status(one: Request) -> bool:
    return one.resource == "shops/status" and one.verb in ("patch", "update") and one.code == 200


def measure(asked: argparse.Namespace) -> None:
    """Run all contenders in shuffled rounds; add the figures of each run to the file of figures, a line of JSON."""
    # A Service has an address of its own, and the audit log must not be cut while it is read.
    flags = ("--service-cluster-ip-range=10.96.0.0/16", "--audit-log-maxsize=100000")
    with ControlPlane(audit=True, extra_flags=flags) as plane:
        audit = Audit(plane.audit_log)

        async def run_once(name: str) -> Figures:
            async with Client.connect(load_config(kubeconfig=str(plane.kubeconfig))) as client:
                await prepare(client)
                trial = Trial(plane, client, audit, name=name, count=asked.count)
                return await trial.run(steady=not asked.no_steady)

        def run(name: str) -> float:
            figures = asyncio.run(run_once(name)) | {"load": os.getloadavg()[1]}
            print(f"{name}: {_shown(figures)}", file=sys.stderr, flush=True)
            with asked.figures.open("a") as file:
                file.write(json.dumps({"name": name, **figures}) + "\n")
            return figures["cpu"]

        in_rounds({name: partial(run, name) for name in asked.contenders}, rounds=asked.rounds, seed=asked.seed)
        audit.close()


def measured(figures: Path) -> Results:
    """Give the figures of all runs in a file, by contender."""
    lines = [json.loads(line) for line in figures.read_text().splitlines()]
    runs = {name: [line for line in lines if line["name"] == name] for name in CONTENDERS}
    return {
        name: {
            column: Measured(column, [one[column] for one in ours if column in one])
            for column in COLUMNS
            if any(column in one for one in ours)
        }
        for name, ours in runs.items()
        if ours
    }


def _shown(figures: Figures) -> str:
    there = ((figures[name], *COLUMNS[name]) for name in COLUMNS if name in figures)
    return ", ".join(f"{title} {value * unit:.{digits}f}" for value, title, unit, digits in there)


def table(figures: Results, *columns: str) -> str:
    """Show some figures of all contenders, with how far the rounds lie apart, and how many rounds there were."""
    rows = ["| | " + " | ".join(COLUMNS[one][0] for one in columns) + " |", "|---|" + "--:|" * len(columns)]
    for name, found in figures.items():
        rounds = len(found["cpu"].rounds)
        cells = (_cell(found[column], rounds, *COLUMNS[column][1:]) if column in found else "" for column in columns)
        rows.append(f"| {name} ({rounds}) | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n\n"


def _cell(one: Measured, rounds: int, unit: float, digits: int) -> str:
    median, spread = one.median * unit, one.spread * unit
    apart = f" ± {spread / 2:,.{digits}f}" if spread > 0.5 * 10**-digits else ""
    return f"{median:,.{digits}f}{apart}" + (f" ({len(one.rounds)})" if len(one.rounds) != rounds else "")


def verdicts(figures: Results, count: int) -> list[str]:
    """Hold the figures against the targets."""
    ours = {column: one.median for column, one in figures["konverge"].items()}
    peers = {name: measured for name, measured in figures.items() if not name.startswith("konverge")}
    lines = []

    def against(words: str, column: str, peer: str, holds: Callable[[float], bool]) -> None:
        if peer in peers and column in ours and column in peers[peer]:
            ratio = ours[column] / peers[peer][column].median
            lines.append(verdict(f"{words} {peer} ({ratio:.2f}x)", holds(ratio)))

    for peer in peers:
        against("requests for each object at most those of", "requests", peer, lambda ratio: ratio <= 1.001)
    against("rate at least 0.9x", "rate", "controller-runtime", lambda ratio: ratio >= 0.9)
    against("rate at least 3x", "rate", "kopf", lambda ratio: ratio >= 3)
    against("p99 at 10 changes a second at most 1.5x", "calm_p99", "controller-runtime", lambda ratio: ratio <= 1.5)
    against("p99 at 100 changes a second at most 1.5x", "p99", "controller-runtime", lambda ratio: ratio <= 1.5)
    against("peak memory below", "peak", "controller-runtime", lambda ratio: ratio < 1)
    limit = 2 * count
    writes = ours["restart_writes"]
    lines.append(verdict(f"no write after a restart, at most one a child ({writes:.0f})", writes <= limit))
    if "steady_writes" in ours:
        writes = ours["steady_writes"]
        lines.append(verdict(f"no write in steady state ({writes:.0f})", writes == 0))
    return lines


def main(asked: argparse.Namespace) -> None:
    if asked.rounds:
        measure(asked)
    figures = measured(asked.figures)
    loads = [load for one in figures.values() if "load" in one for load in one["load"].rounds]
    text = f"{asked.count:,} shops. Median of the rounds (how many: in brackets), ± half of the spread."
    if loads:
        text += f" The load average of the machine was {min(loads):.0f} to {max(loads):.0f}."
    text += "\n\n"
    text += "### converge\n\n" + table(figures, "rate", "requests", "cpu", "server_cpu", "peak")
    text += "### from a change to its reconcile\n\n" + table(figures, "calm_p50", "calm_p99", "p50", "p99")
    if min(one["p50"].median for one in figures.values()) > BACKLOG:
        text += (
            "At 100 changes a second every operator fell behind on this machine: what is shown is how long the line "
        )
        text += "of changes grew, not how soon an idle operator begins.\n\n"
    text += "### restart, and 60 seconds in which nothing changes\n\n"
    text += table(figures, *(name for name in COLUMNS if name.startswith(("restart", "steady"))))
    if "konverge" in figures:
        text += "\n".join(verdicts(figures, asked.count)) + "\n"
    if asked.keep:
        keep("controller", text)
    else:
        print(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="0: only show what is in the file of figures")
    parser.add_argument("--figures", type=Path, default=BUILT / "controller.jsonl", help="where runs are added")
    parser.add_argument("--no-steady", action="store_true", help="leave out the minute of steady state")
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1, help="decides in which order the contenders run")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="only print the result")
    found: Any = parser.parse_args()
    return found  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(arguments())
