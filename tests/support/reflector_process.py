"""A process that lists and watches one collection, to measure its memory: it prints one line of JSON.

Run as `python reflector_process.py <url of a server without TLS>`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState
from konverge.cache.store import Store
from konverge.client import Client, ClientConfig
from konverge.objects import Kind
from konverge.wire.list_watch import Selection

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


def memory() -> dict[str, int]:
    """Return the resident bytes of this process: now and at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return {"now": int(found["VmRSS"]) * 1024, "peak": int(found["VmHWM"]) * 1024}


async def measure(url: str) -> dict[str, int]:
    async with Client.connect(ClientConfig(server=url)) as client:
        store = Store(WIDGET)
        reflector = Reflector(client.collection(WIDGET), store, kind="Widget", selection=Selection(streaming=False))
        before = memory()["now"]
        task = asyncio.create_task(reflector.run())
        while reflector.stats().state is not ReflectorState.WATCHING:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)
        stats = reflector.stats()
        task.cancel()
        await asyncio.wait([task])
        return {"objects": store.stats().objects, "before": before, "pages": stats.pages, **memory()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1]))))  # noqa: T201
