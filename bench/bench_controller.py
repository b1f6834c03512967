"""One operator written with four frameworks, compared on a real API server: 2,000 shops, each of which owns a
Deployment and a Service and has a status.

Run by `make bench-controller`, after `make bench-peers`. Each contender runs alone, in its own process, in shuffled
rounds, with eight concurrent reconciles and without a client-side rate limit. Each run has a new server: after a
contender with many writes the same server was slower for the next one.
Everything is measured from outside: requests from the server's audit log, CPU time and memory from /proc. Each round
has four parts:

- converge: the shops exist, the operator starts. Objects per second from the start of the process to the last status;
  all requests per object until the operator is idle; CPU seconds per 1,000 objects, of the operator and of the server;
  peak memory;
- latency: 10 and 50 changes per second. Time from the server receiving a change to the start of the reconcile that
  observes it (each operator writes name, generation and wall clock to a file). Most of it, and most of what differs
  between changes, is the server's own time, so the time from its response is shown too;
- restart: the operator restarts and nothing has changed. Seconds until it has reconciled every object; requests and
  writes in that time;
- steady: 60 more seconds, in which every object is reconciled once: requests, writes, CPU seconds. Only konverge and
  controller-runtime: the other two write every object in this time.

Each run appends a line to a file of metrics, and the tables show all runs in the file, so rounds can be run in parts.

Eight concurrent reconciles mean at most eight concurrent requests, except in kopf: with its own patches, 24 requests
were in flight on average. On a slow server this determines the rate. Two contenders with 16 workers, which is the
default of konverge, run if they are named with --contenders.

The server shares the two cores with the operators and uses four fifths of the CPU time. Its CPU time per object is
shown too; it bounds the rate of every operator.

A write is a request that could change something, whether or not it did. Other load on the machine affects rates and
latencies of all contenders; requests and CPU time hardly change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from audit import Audit, Request
from machine_load import MachineLoad
from machine_speed import MachineSpeed
from measurement import Better, Measurement, Result, measure_rounds
from operator_process import OperatorProcess, cpu_of
from shop_load import change, check, load, prepare

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
DEFAULT_CONTENDERS = [name for name in CONTENDERS if "workers" not in name]
FLAGS = (
    "--service-cluster-ip-range=10.96.0.0/16",  # each Service needs an address
    "--audit-log-maxsize=100000",  # the log must not be rotated while it is read
)
STEADY_CONTENDERS = ("konverge", "controller-runtime")
COLUMNS = {
    "rate": ("objects/s", 1.0, 0),
    "requests": ("requests/object", 1.0, 2),
    "cpu": ("cpu s/1,000", 1.0, 2),
    "server_cpu": ("server's cpu s/1,000", 1.0, 1),
    "speed": ("speed of the processor", 1.0, 1),
    "equal_rate": ("objects/s at equal speed", 1.0, 0),
    "equal_cpu": ("cpu s/1,000 at equal speed", 1.0, 2),
    "peak": ("peak MB", 1e-6, 0),
    "low_rate_p50": ("p50 ms at 10/s", 1e3, 1),
    "low_rate_p99": ("p99 ms at 10/s", 1e3, 1),
    "low_rate_after_p99": ("p99 ms after the response, at 10/s", 1e3, 1),
    "p50": ("p50 ms at 50/s", 1e3, 1),
    "p99": ("p99 ms at 50/s", 1e3, 1),
    "after_p99": ("p99 ms after the response, at 50/s", 1e3, 1),
    "restart_seconds": ("restart s", 1.0, 1),
    "restart_requests": ("restart requests", 1.0, 0),
    "restart_writes": ("restart writes", 1.0, 0),
    "steady_requests": ("steady requests", 1.0, 0),
    "steady_writes": ("steady writes", 1.0, 0),
    "steady_cpu": ("steady cpu s", 1.0, 2),
    "busy": ("cores of others", 1.0, 2),
}
RATE = 50.0
LOW_RATE, LOW_RATE_CHANGES = 10.0, 400
STEADY = 60.0
STEADY_CPU = 0.33
LONG_RESYNC = 3600.0
IDLE_SECONDS = 3.0
BACKLOG = 1.0
TIMEOUT = 600.0

Metrics = dict[str, float]
Results = dict[str, dict[str, Measurement]]


class Trial:
    """One contender in one round: creates its shops and measures."""

    def __init__(self, plane: ControlPlane, client: Client, audit: Audit, *, name: str, count: int) -> None:
        self._plane = plane
        self._client = client
        self._audit = audit
        self._count = count
        self._command = CONTENDERS[name]
        self._user = f"{name.replace(', ', '-')}-{time.time_ns()}"
        self._kubeconfig = plane.kubeconfig_for(self._user, groups=["system:masters"])

    async def run(self, *, steady: bool, converge_only: bool = False) -> Metrics:
        """Run the parts of a round; return the metrics."""
        await load(self._client, self._count)
        self._audit.clear()
        with tempfile.TemporaryDirectory() as directory:
            operator = partial(OperatorProcess, self._command, kubeconfig=self._kubeconfig, directory=Path(directory))
            with operator(resync=LONG_RESYNC) as process:
                metrics = await self._converge(process)
                if not converge_only:
                    metrics |= await self._latencies(process)
            if not converge_only:
                await self._wait_until_idle()
                with operator(resync=STEADY) as process:
                    metrics |= await self._restart(process)
                    if steady:
                        metrics |= await self._steady(process)
        return metrics

    async def _converge(self, process: OperatorProcess) -> Metrics:
        before = self._server_cpu()
        with MachineSpeed() as speed:
            first = await self._observed(process, since=process.start_time, count=self._count)
        cpu, server_cpu = process.cpu(), self._server_cpu() - before
        await self._wait_until_idle()
        await check(self._client, self._count)
        return {
            "rate": self._count / (max(first.values()) - process.start_time),
            "requests": len(self._audit.of(self._user)) / self._count,
            "cpu": cpu * 1000 / self._count,
            "server_cpu": server_cpu * 1000 / self._count,
            "speed": speed.value,
            "peak": process.peak(),
        }

    async def _latencies(self, process: OperatorProcess) -> Metrics:
        few = range(min(LOW_RATE_CHANGES, self._count))
        low_rate = await self._latency(process, few, replicas=2, rate=LOW_RATE)
        high_rate = await self._latency(process, range(self._count), replicas=3, rate=RATE)
        return {f"low_rate_{name}": metric for name, metric in low_rate.items()} | high_rate

    async def _latency(self, process: OperatorProcess, numbers: range, *, replicas: int, rate: float) -> Metrics:
        known = {name: generation for name, generation, _ in process.stamps()}
        begin = time.time()
        await change(self._client, numbers, replicas=replicas, per_second=rate)
        await self._observed(process, since=begin, count=len(numbers))
        await self._wait_until_idle()
        await check(self._client, self._count)
        changes = [one for one in self._audit.requests if (one.verb, one.resource) == ("patch", "shops")]
        ours = {one.name: one for one in changes if one.user == "admin" and one.received >= begin}
        started: dict[str, float] = {}
        for name, generation, time_ in process.stamps(since=begin):
            if generation > known[name]:
                started.setdefault(name, time_)
        delays = statistics.quantiles([started[name] - one.received for name, one in ours.items()], n=100)
        after = statistics.quantiles([started[name] - one.responded for name, one in ours.items()], n=100)
        return {"p50": delays[49], "p99": delays[98], "after_p99": after[98]}

    async def _restart(self, process: OperatorProcess) -> Metrics:
        def all_reconciled() -> bool:
            return len({name for name, _, _ in process.stamps()}) >= self._count

        await self._until(all_reconciled, process)
        first: dict[str, float] = {}
        for name, _, time_ in process.stamps():
            first.setdefault(name, time_)
        idle = max(first.values())
        await asyncio.sleep(1)
        self._audit.read()
        requests = self._audit.of(self._user, since=process.start_time, until=idle + 1)
        return {
            "restart_seconds": idle - process.start_time,
            "restart_requests": len(requests),
            "restart_writes": sum(one.is_write for one in requests),
        }

    async def _steady(self, process: OperatorProcess) -> Metrics:
        begin, cpu = time.time(), process.cpu()
        await asyncio.sleep(STEADY)
        spent = process.cpu() - cpu
        self._audit.read()
        requests = self._audit.of(self._user, since=begin, until=begin + STEADY)
        reconciled = len({name for name, _, time_ in process.stamps(since=begin)})
        print(f"{self._user}: {reconciled} objects of {self._count} reconciled", file=sys.stderr, flush=True)
        return {
            "steady_requests": len(requests),
            "steady_writes": sum(one.is_write for one in requests),
            "steady_cpu": spent,
        }

    def _server_cpu(self) -> float:
        return sum(cpu_of(pid) for pid in self._plane.pids.values())

    # Waiting

    async def _observed(self, process: OperatorProcess, *, since: float, count: int) -> dict[str, float]:
        """Wait until the status of `count` shops is written; return the times by name."""
        written: dict[str, float] = {}

        def all_written() -> bool:
            self._audit.read()
            for one in self._audit.of(self._user, since=since):
                if _is_status(one):
                    written.setdefault(one.name, one.responded)
            return len(written) >= count

        await self._until(all_written, process)
        return written

    async def _until(self, condition: Callable[[], bool], process: OperatorProcess) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            process.check()
            if time.monotonic() > deadline:
                raise SystemExit(f"{self._user} is not done after {TIMEOUT:g} s")
            await asyncio.sleep(0.5)

    async def _wait_until_idle(self) -> None:
        """Wait until the operator has sent no request for a few seconds."""
        while True:
            self._audit.read()
            mine = self._audit.of(self._user)
            if not mine or mine[-1].responded < time.time() - IDLE_SECONDS:
                return
            await asyncio.sleep(0.5)


def _is_status(one: Request) -> bool:
    return one.resource == "shops/status" and one.verb in ("patch", "update") and one.code == 200


def measure(args: argparse.Namespace) -> None:
    """Run all contenders in shuffled rounds; append the metrics of each run to the file, as a line of JSON."""

    async def run_once(plane: ControlPlane, name: str) -> Metrics:
        async with Client.connect(load_config(kubeconfig=str(plane.kubeconfig))) as client:
            with Audit(plane.audit_log) as audit:
                await prepare(client)
                trial = Trial(plane, client, audit, name=name, count=args.count)
                steady = name in STEADY_CONTENDERS and not args.no_steady
                return await trial.run(steady=steady, converge_only=args.converge_only)

    def run(name: str) -> float:
        with ControlPlane(audit=True, extra_flags=FLAGS) as plane:
            load = MachineLoad()
            metrics = asyncio.run(run_once(plane, name)) | {"busy": load.foreign_cores()}
        print(f"{name}: {_format(metrics)}", file=sys.stderr, flush=True)
        with args.metrics.open("a") as file:
            file.write(json.dumps({"name": name, **metrics}) + "\n")
        return metrics["cpu"]

    measure_rounds({name: partial(run, name) for name in args.contenders}, rounds=args.rounds, seed=args.seed)


def measured(metrics: Path) -> Results:
    """Return the metrics of all runs in a file, by contender."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    speed = statistics.median([one["speed"] for one in lines])
    for one in lines:
        one["equal_rate"] = one["rate"] * speed / one["speed"]
        one["equal_cpu"] = one["cpu"] * one["speed"] / speed
    runs = {name: [line for line in lines if line["name"] == name] for name in CONTENDERS}
    return {
        name: {
            column: Measurement(
                name, [one[column] for one in ours if column in one], [one["busy"] for one in ours if column in one]
            )
            for column in COLUMNS
            if any(column in one for one in ours)
        }
        for name, ours in runs.items()
        if ours
    }


def _format(metrics: Metrics) -> str:
    present = ((metrics[name], *COLUMNS[name]) for name in COLUMNS if name in metrics)
    return ", ".join(f"{title} {value * unit:.{digits}f}" for value, title, unit, digits in present)


def table(metrics: Results, *columns: str) -> str:
    """Return a table of some metrics of all contenders, with the spread and the number of rounds."""
    rows = ["| | " + " | ".join(COLUMNS[one][0] for one in columns) + " |", "|---|" + "--:|" * len(columns)]
    for name, measurements in metrics.items():
        rounds = len(measurements["cpu"].rounds)
        cells = (
            _cell(measurements[column], rounds, *COLUMNS[column][1:]) if column in measurements else ""
            for column in columns
        )
        rows.append(f"| {name} ({rounds}) | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n\n"


def _cell(one: Measurement, rounds: int, unit: float, digits: int) -> str:
    median, spread = one.median * unit, one.spread * unit
    deviation = f" ± {spread / 2:,.{digits}f}" if spread > 0.5 * 10**-digits else ""
    return f"{median:,.{digits}f}{deviation}" + (f" ({len(one.rounds)})" if len(one.rounds) != rounds else "")


def add_targets(result: Result, metrics: Results) -> None:
    """Add each target, as the ratio to a peer in the same rounds."""
    ours = {column: one.median for column, one in metrics["konverge"].items()}

    def against(claim: str, column: str, peer: str, holds: Callable[[float], bool]) -> None:
        if column in ours and column in metrics.get(peer, {}):
            ratio = ours[column] / metrics[peer][column].median
            result.target(f"{claim} {peer}'s ({ratio:.2f}x)", holds(ratio))

    for peer in (name for name in metrics if not name.startswith("konverge")):
        against("requests per object at most", "requests", peer, lambda ratio: ratio <= 1.001)
    against("CPU per object at most 1.0x", "equal_cpu", "controller-runtime", lambda ratio: ratio <= 1)
    against("rate at least 0.95x", "equal_rate", "controller-runtime", lambda ratio: ratio >= 0.95)
    against("rate at least 2.5x", "equal_rate", "kopf", lambda ratio: ratio >= 2.5)
    against("p99 at 10 changes a second at most 1.0x", "low_rate_p99", "controller-runtime", lambda ratio: ratio <= 1)
    against("p99 at 50 changes a second at most 1.0x", "p99", "controller-runtime", lambda ratio: ratio <= 1)
    against("peak memory at most 1.0x", "peak", "controller-runtime", lambda ratio: ratio <= 1)
    for column, text in (("restart_writes", "after a restart"), ("steady_writes", "in steady state")):
        if column in ours:
            result.target(f"no write {text} ({ours[column]:.0f})", ours[column] == 0)
    if "steady_cpu" in ours:
        cpu = ours["steady_cpu"]
        result.target(
            f"at most {STEADY_CPU:g} s of CPU in a minute of steady state ({cpu:.2f} s)", round(cpu, 2) <= STEADY_CPU
        )


PLOTTED = ("equal_rate", "equal_cpu", "low_rate_p99", "p99", "peak", "steady_cpu")


def main(args: argparse.Namespace) -> None:
    if args.rounds:
        measure(args)
    metrics = measured(args.metrics)
    result = Result(
        "controller",
        f"{args.count:,} shops. Median of the rounds (their number in brackets), ± half of the spread. Other programs"
        f" used {max(one['busy'].median for one in metrics.values()):.2f} cores at most.",
    )
    result.text("### converge\n\n" + table(metrics, "rate", "requests", "cpu", "server_cpu", "peak"))
    result.text(
        "The speed of the processor changes from round to round. It is measured beside each run (how often a piece of"
        " work fits into a millisecond); the other two columns are as if it had been the median in all rounds.\n\n"
        + table(metrics, "speed", "equal_rate", "equal_cpu")
    )
    latencies = ("low_rate_p50", "low_rate_p99", "low_rate_after_p99", "p50", "p99", "after_p99")
    result.text("### latency from a change to its reconcile\n\n" + table(metrics, *latencies))
    if min((one["p50"].median for one in metrics.values() if "p50" in one), default=0.0) > BACKLOG:
        result.text(
            "At 50 changes per second every operator fell behind on this machine: the values show the length of the"
            " backlog, not the latency of an idle operator.\n"
        )
    names = (name for name in COLUMNS if name.startswith(("restart", "steady")))
    result.text("### restart, and 60 seconds in which nothing changes\n\n" + table(metrics, *names))
    for column in PLOTTED:
        shown = {name: one[column] for name, one in metrics.items() if column in one}
        if len(shown) > 1:
            title, unit, _ = COLUMNS[column]
            scaled = {name: Measurement(name, [x * unit for x in one.rounds], one.busy) for name, one in shown.items()}
            better: Better = "higher" if column == "equal_rate" else "lower"
            against = "controller-runtime" if "controller-runtime" in shown else next(iter(shown))
            result.compare(title, title, scaled, against=against, better=better)
    add_targets(result, metrics)
    result.save()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="0: only show the runs in the file of metrics")
    parser.add_argument(
        "--metrics", type=Path, default=BUILT / "controller.jsonl", help="file to which runs are appended"
    )
    parser.add_argument("--no-steady", action="store_true", help="skip the minute of steady state")
    parser.add_argument(
        "--converge-only",
        action="store_true",
        help="only the first part: many short rounds, where the speed of the machine varies",
    )
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1, help="seed of the order in which the contenders run")
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=DEFAULT_CONTENDERS)
    args: Any = parser.parse_args()
    return args  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(arguments())
