"""The cache of konverge, measured from inside.

Called as: konverge_peer.py <kubeconfig> <pods|widgets> <count> [compressed]. Prints one line of JSON; see
bench/bench_cache.py for what each figure means.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from process import a_second, cpu_seconds, memory, settle
from widgets import Widget

from konverge.cache import Cache, CacheOptions, View, by_path
from konverge.client import Client, load_config
from konverge.k8s.core.v1 import Pod


async def main(kubeconfig: str, what: str, count: int, compress: bool) -> dict[str, float]:
    async with (
        Client.connect(load_config(kubeconfig=kubeconfig)) as client,
        Cache(client.collection) as cache,
    ):
        await asyncio.sleep(1)
        settle()
        base, began, cpu_before = memory("VmRSS"), time.perf_counter(), cpu_seconds()
        options = CacheOptions(compress=compress, indexes=(("node", by_path(".spec.nodeName")),))
        view: View[Pod] | View[Widget] = cache.declare(Pod if what == "pods" else Widget, options)
        await cache.wait_for_sync(timeout=600)
        wall, cpu, peak = time.perf_counter() - began, cpu_seconds() - cpu_before, memory("VmHWM")
        assert len(view.entries()) == count, len(view.entries())
        await asyncio.sleep(2)
        settle()
        held = {"wall": wall, "cpu": cpu, "base": base, "peak": peak, "settled": memory("VmRSS")}
        return held | (reading(view) if count else {})


def reading(view: View[Pod] | View[Widget]) -> dict[str, float]:
    keys = [entry.key for entry in view.entries()]
    choose = random.Random(1).choice
    return {
        "get": a_second(lambda: view.get(choose(keys))),
        "list": a_second(lambda: view.list(labels="app=app-7")),
        "index": a_second(lambda: view.find("node", "node-7")),
    }


if __name__ == "__main__":
    figures = asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), "compressed" in sys.argv[4:]))
    sys.stdout.write(json.dumps(figures) + "\n")
