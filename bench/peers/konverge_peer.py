"""The cache of konverge, measured in its own process.

Usage: konverge_peer.py <kubeconfig> <pods|widgets> <count> [compressed]. Prints one line of JSON; bench/bench_cache.py
explains the metrics.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from process_stats import cpu_seconds, memory, per_second, trim_memory
from widgets import Widget

from konverge.cache import Cache, CacheOptions, Lister, by_path
from konverge.client import Client, load_config
from konverge.k8s.core.v1 import Pod


async def main(kubeconfig: str, what: str, count: int, compress: bool) -> dict[str, float]:
    async with (
        Client.connect(load_config(kubeconfig=kubeconfig)) as client,
        Cache(client.collection) as cache,
    ):
        await asyncio.sleep(1)
        trim_memory()
        base, start, cpu_before = memory("VmRSS"), time.perf_counter(), cpu_seconds()
        options = CacheOptions(compress=compress, indexes=(("node", by_path(".spec.nodeName")),))
        lister: Lister[Pod] | Lister[Widget] = cache.declare(Pod if what == "pods" else Widget, options)
        await cache.wait_for_sync(timeout=600)
        wall, cpu, peak = time.perf_counter() - start, cpu_seconds() - cpu_before, memory("VmHWM")
        assert len(lister.entries()) == count, len(lister.entries())
        await asyncio.sleep(2)
        trim_memory()
        metrics = {"wall": wall, "cpu": cpu, "base": base, "peak": peak, "settled": memory("VmRSS")}
        return metrics | (read_rates(lister) if count else {})


def read_rates(lister: Lister[Pod] | Lister[Widget]) -> dict[str, float]:
    keys = [entry.key for entry in lister.entries()]
    choose = random.Random(1).choice
    return {
        "get": per_second(lambda: lister.get(choose(keys))),
        "list": per_second(lambda: lister.list(labels="app=app-7")),
        "index": per_second(lambda: lister.find("node", "node-7")),
    }


if __name__ == "__main__":
    metrics = asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), "compressed" in sys.argv[4:]))
    sys.stdout.write(json.dumps(metrics) + "\n")
