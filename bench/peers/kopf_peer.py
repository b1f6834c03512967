"""kopf with in-memory indices, measured from inside.

Called as: kopf_peer.py <kubeconfig> <pods|widgets> <count>. Prints one line of JSON; see bench/bench_cache.py for what
each figure means. kopf hands out what it holds, not a copy; an index is its only way to hold objects at all.
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
    seen: set[tuple[str, str]] = set()
    done = asyncio.Event()
    registry = kopf.OperatorRegistry()
    resource = RESOURCES[what]

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return connection(kubeconfig)

    @kopf.index(*resource, registry=registry, id="by_name")
    def by_name(namespace: str, name: str, body: kopf.Body, **_: object) -> dict:
        seen.add((namespace, name))
        if len(seen) == count:
            done.set()
        return {(namespace, name): body}

    @kopf.index(*resource, registry=registry, id="by_app")
    def by_app(namespace: str, name: str, labels: kopf.Labels, **_: object) -> dict:
        return {labels["app"]: (namespace, name)}

    @kopf.index(*resource, registry=registry, id="by_node")
    def by_node(namespace: str, name: str, spec: kopf.Spec, **_: object) -> dict:
        return {spec["nodeName"]: (namespace, name)}

    asyncio.run(measure(registry, done))


async def measure(registry: kopf.OperatorRegistry, done: asyncio.Event) -> None:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    memories = kopf.Memo()
    indexers = kopf._core.engines.indexing.OperatorIndexers()
    settle()
    base, began, cpu_before = memory("VmRSS"), time.perf_counter(), cpu_seconds()
    operator = asyncio.create_task(
        kopf.operator(
            registry=registry, settings=settings, memo=memories, indexers=indexers, standalone=True, clusterwide=True
        )
    )
    await done.wait()
    wall, cpu, peak = time.perf_counter() - began, cpu_seconds() - cpu_before, memory("VmHWM")
    await asyncio.sleep(5)
    settle()
    figures = {"wall": wall, "cpu": cpu, "base": base, "peak": peak, "settled": memory("VmRSS")}
    indices = indexers.indices
    names, apps, nodes = indices["by_name"], indices["by_app"], indices["by_node"]
    keys, choose = list(names), random.Random(1).choice
    figures["get"] = a_second(lambda: list(names[choose(keys)]))
    figures["list"] = a_second(lambda: [list(names[key]) for key in apps["app-7"]])
    figures["index"] = a_second(lambda: [list(names[key]) for key in nodes["node-7"]])
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    operator.cancel()
    await asyncio.wait([operator], timeout=5)


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
