"""Where the CPU time of an operator goes: the shop operator under a profiler, of this tree and of an earlier commit.

Run by `make bench-profile`; BEFORE=<commit> profiles that commit too, in the same run. Each version makes the children
and the statuses of some hundred shops on a real server. The profiler measures the time between calls and costs each
call about as much, so parts with many small functions look larger than they are: compare a part with itself. The time
in `poll` is left out, since it is waiting. The start of the operator is included: with 500 shops a tenth of the calls.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pstats
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

from measurement import save_result
from operator_process import OperatorProcess
from shop_load import NAMESPACE, SHOP, load, prepare

from konverge.client import Client, load_config
from konverge.testing import ControlPlane

ROOT = Path(__file__).parent.parent
PACKAGE = "packages/konverge/src/konverge/"
BUILT_IN = {
    "msgspec": ("msgspec",),
    "TLS and sockets": ("_ssl", "_socket", "ssl."),
}
"""The parts of functions in C, by what their names contain."""
LIBRARIES = ("asyncio", "aiohttp", "ssl.py", "logging")
FLAGS = ("--service-cluster-ip-range=10.96.0.0/16",)  # each Service needs an address
WORKERS = "1"  # with more of them the server takes the processor from the operator, and the profiler counts that
LIMIT = 120.0


def part_of(function: tuple[str, int, str]) -> str:
    """Return the part that a function of a profile belongs to."""
    path, _, name = function
    if PACKAGE in path:
        first = path.partition(PACKAGE)[2].split("/")[0]
        return f"konverge.{first.removesuffix('.py')}"
    if path == "~":
        return next((part for part, words in BUILT_IN.items() if any(word in name for word in words)), "built-in")
    return next((library for library in LIBRARIES if library in path), "other modules").removesuffix(".py")


def parts_of(profile: Path, count: int) -> dict[str, tuple[float, float]]:
    """Return the microseconds and the calls of each part for one object."""
    seconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    stats: dict[tuple[str, int, str], Any] = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
    for function, (_, number, own, _, _) in stats.items():
        if "'poll' of 'select" in function[2]:
            continue
        seconds[part_of(function)] += own
        calls[part_of(function)] += number
    return {part: (seconds[part] * 1e6 / count, calls[part] / count) for part in seconds}


def unpack(commit: str, directory: Path) -> Path:
    """Write the tree of a commit into the directory, and return the directory."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=False, capture_output=True)
    if archive.returncode != 0:
        raise SystemExit(f"--before {commit}: {archive.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(directory, filter="data")
    return directory


def profile(tree: Path, count: int) -> dict[str, tuple[float, float]]:
    """Run the operator of a tree until all shops are done; return what its parts cost for one object."""
    with ControlPlane(extra_flags=FLAGS) as plane, tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        os.environ["SHOP_PROFILE"] = str(directory / "profile")
        os.environ["PYTHONPATH"] = str(tree / "packages" / "konverge" / "src")
        command = [sys.executable, str(tree / "bench" / "peers" / "konverge_operator.py"), WORKERS]
        operator = OperatorProcess(command, kubeconfig=plane.kubeconfig, resync=3600, directory=directory)
        asyncio.run(_converge(plane, operator, count))
        return parts_of(next(directory.glob("profile-*")), count)


async def _converge(plane: ControlPlane, operator: OperatorProcess, count: int) -> None:
    async with Client.connect(load_config(kubeconfig=str(plane.kubeconfig))) as client:
        await prepare(client)
        await load(client, count)
        with operator:
            end = time.monotonic() + LIMIT
            while not await _all_done(client):
                operator.check()
                if time.monotonic() > end:
                    raise SystemExit(f"the operator is not done after {LIMIT:g} s")
                await asyncio.sleep(1)


async def _all_done(client: Client) -> bool:
    shops = await client.list(SHOP, namespace=NAMESPACE)
    return all(shop.get("status", {}).get("observedGeneration") for shop in shops)


def table(profiles: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return the parts as rows, the most expensive of the first version first."""
    first = next(iter(profiles.values()))
    every = sorted({part for one in profiles.values() for part in one}, key=lambda part: -first.get(part, (0.0, 0))[0])
    lines = [
        "| |" + "".join(f" us, {version} | calls, {version} |" for version in profiles),
        "|---|" + "--:|--:|" * len(profiles),
    ]
    for part in every:
        cells = [one.get(part, (0.0, 0.0)) for one in profiles.values()]
        if max(microseconds for microseconds, _ in cells) >= 1:
            lines.append(f"| {part} |" + "".join(f" {spent:,.0f} | {calls:,.0f} |" for spent, calls in cells))
    sums = [[sum(values) for values in zip(*one.values(), strict=True)] for one in profiles.values()]
    lines.append("| all |" + "".join(f" {spent:,.0f} | {calls:,.0f} |" for spent, calls in sums))
    return "\n".join(lines)


def main() -> None:
    """Profile the versions one after the other, and save the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", metavar="COMMIT", help="an earlier version to profile too")
    parser.add_argument("--shops", type=int, default=500, help="how many objects the operator makes, 500 by default")
    arguments = parser.parse_args()
    if arguments.shops < 1:
        parser.error(f"--shops {arguments.shops}: write a number above 0")
    profiles: dict[str, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        if arguments.before:
            tree = unpack(arguments.before, Path(directory))
            profiles[arguments.before] = profile(tree, arguments.shops)
        profiles["now"] = profile(ROOT, arguments.shops)
    text = f"One of {arguments.shops} shops with two children and a status, under cProfile, without waiting.\n\n"
    save_result("profile", text + table(profiles) + "\n")


if __name__ == "__main__":
    main()
