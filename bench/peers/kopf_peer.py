"""kopf with a handler that keeps every object in dicts, measured from inside.

Called as: kopf_peer.py <kubeconfig> <pods|widgets> <count>. Prints one line of JSON; see bench/bench_cache.py for what
each figure means. kopf has no cache. Its own in-memory indices are not used here: with 10,000 objects their first
filling takes many minutes of CPU time. Readers get what is held, not a copy.
"""

import asyncio
import base64
import json
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

import kopf
import yaml

sys.path.insert(0, str(Path(__file__).parent.parent))

from process import a_second, cpu_seconds, memory, settle

RESOURCES = {"pods": ("v1", "pods"), "widgets": ("bench.example.com/v1", "widgets")}


def main(kubeconfig: str, what: str, count: int) -> None:
    held = Held(count)
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return connection(kubeconfig)

    @kopf.on.event(*RESOURCES[what], registry=registry)
    async def keep(namespace: str, name: str, body: kopf.Body, **_: object) -> None:
        held.keep((namespace, name), body)

    asyncio.run(measure(registry, held))


class Held:
    """What an author would write: objects by name, names by app and by node."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.complete = asyncio.Event()
        self.bodies: dict = {}
        self.apps: dict = {}
        self.nodes: dict = {}

    def keep(self, key: tuple, body: kopf.Body) -> None:
        self.bodies[key] = body
        self.apps.setdefault(body["metadata"]["labels"]["app"], set()).add(key)
        self.nodes.setdefault(body["spec"]["nodeName"], set()).add(key)
        if len(self.bodies) == self.count:
            self.complete.set()


async def measure(registry: kopf.OperatorRegistry, held: Held) -> None:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settle()
    base, began, cpu_before = memory("VmRSS"), time.perf_counter(), cpu_seconds()
    operator = asyncio.create_task(
        kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True)
    )
    if held.count:
        await held.complete.wait()
    wall, cpu, peak = time.perf_counter() - began, cpu_seconds() - cpu_before, memory("VmHWM")
    await asyncio.sleep(10)
    settle()
    figures = {"wall": wall, "cpu": cpu, "base": base, "peak": peak, "settled": memory("VmRSS")}
    if held.count:
        figures |= reading(held)
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    operator.cancel()
    await asyncio.wait([operator], timeout=5)


def reading(held: Held) -> dict:
    keys, choose = list(held.bodies), random.Random(1).choice
    return {
        "get": a_second(lambda: held.bodies[choose(keys)]),
        "list": a_second(lambda: [held.bodies[key] for key in held.apps["app-7"]]),
        "index": a_second(lambda: [held.bodies[key] for key in held.nodes["node-7"]]),
    }


def connection(kubeconfig: str) -> kopf.ConnectionInfo:
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]

    def file(holder: dict, name: str) -> str | None:
        if name in holder:
            return holder[name]
        if f"{name}-data" not in holder:
            return None
        with tempfile.NamedTemporaryFile(delete=False) as kept:
            kept.write(base64.b64decode(holder[f"{name}-data"]))
        return kept.name

    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_path=file(cluster, "certificate-authority"),
        certificate_path=file(user, "client-certificate"),
        private_key_path=file(user, "client-key"),
        token=user.get("token"),
    )


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
