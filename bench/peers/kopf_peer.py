"""kopf with a handler that stores every object in dicts, measured in its own process.

Usage: kopf_peer.py <kubeconfig> <pods|widgets> <count>. Prints one line of JSON; bench/bench_cache.py explains the
metrics. kopf has no cache. Its in-memory indices are not used here: with 10,000 objects, filling them takes minutes of
CPU time. Readers get the stored object, not a copy.
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

from process_stats import cpu_seconds, memory, per_second, trim_memory

RESOURCES = {"pods": ("v1", "pods"), "widgets": ("bench.example.com/v1", "widgets")}


def main(kubeconfig: str, what: str, count: int) -> None:
    store = ObjectStore(count)
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return connection(kubeconfig)

    @kopf.on.event(*RESOURCES[what], registry=registry)
    async def save_result(namespace: str, name: str, body: kopf.Body, **_: object) -> None:
        store.save_result((namespace, name), body)

    asyncio.run(measure(registry, store))


class ObjectStore:
    """The dicts that an operator author would write: objects by name, names by app and by node."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.complete = asyncio.Event()
        self.bodies: dict = {}
        self.apps: dict = {}
        self.nodes: dict = {}

    def save_result(self, key: tuple, body: kopf.Body) -> None:
        self.bodies[key] = body
        self.apps.setdefault(body["metadata"]["labels"]["app"], set()).add(key)
        self.nodes.setdefault(body["spec"]["nodeName"], set()).add(key)
        if len(self.bodies) == self.count:
            self.complete.set()


async def measure(registry: kopf.OperatorRegistry, store: ObjectStore) -> None:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    trim_memory()
    base, start, cpu_before = memory("VmRSS"), time.perf_counter(), cpu_seconds()
    operator = asyncio.create_task(
        kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True)
    )
    if store.count:
        await store.complete.wait()
    wall, cpu, peak = time.perf_counter() - start, cpu_seconds() - cpu_before, memory("VmHWM")
    await asyncio.sleep(10)
    trim_memory()
    metrics = {"wall": wall, "cpu": cpu, "base": base, "peak": peak, "settled": memory("VmRSS")}
    if store.count:
        metrics |= read_rates(store)
    sys.stdout.write(json.dumps(metrics) + "\n")
    sys.stdout.flush()
    operator.cancel()
    await asyncio.wait([operator], timeout=5)


def read_rates(store: ObjectStore) -> dict:
    keys, choose = list(store.bodies), random.Random(1).choice
    return {
        "get": per_second(lambda: store.bodies[choose(keys)]),
        "list": per_second(lambda: [store.bodies[key] for key in store.apps["app-7"]]),
        "index": per_second(lambda: [store.bodies[key] for key in store.nodes["node-7"]]),
    }


def connection(kubeconfig: str) -> kopf.ConnectionInfo:
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]

    def file(section: dict, name: str) -> str | None:
        if name in section:
            return section[name]
        if f"{name}-data" not in section:
            return None
        with tempfile.NamedTemporaryFile(delete=False) as file_:
            file_.write(base64.b64decode(section[f"{name}-data"]))
        return file_.name

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
