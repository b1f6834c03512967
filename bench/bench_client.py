"""The client compared with its peers on one real API server: get, create, patch, list of 5,000, 10,000 watch events.

Run by `make bench-client`. Each contender runs in its own process, in shuffled rounds against the same server. The
measured value is the CPU time of that process (user and system), since the server's share is the same for all.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from measurement import Measurement, Result, measure_metrics

SHARE = float(os.environ.get("KONVERGE_BENCH_SHARE", "1"))
"""The part of the work that is done: a smoke test needs little."""
GETS, CREATES, PATCHES, LISTED, EVENTS = (max(1, int(one * SHARE)) for one in (2_000, 400, 400, 5_000, 10_000))
NAMESPACE = "bench"
PAYLOAD = {"config.yaml": "key: value\n" * 60, "mode": "fast"}

Rows = dict[str, float]


# Each contender is a function that runs all five jobs and returns the CPU microseconds per get, create, patch, listed
# object and watched event.


def cpu() -> float:
    return time.process_time() * 1e6


async def konverge(kubeconfig: str, tag: str) -> Rows:
    from konverge.client import Client, load_config
    from konverge.k8s.core.v1 import ConfigMap
    from konverge.objects import ObjectMeta

    async with Client.connect(load_config(kubeconfig=kubeconfig, namespace=NAMESPACE)) as client:

        async def get() -> None:
            await client.get(ConfigMap, "item-0")

        async def create(number: int) -> None:
            await client.create(ConfigMap(metadata=ObjectMeta(name=f"{tag}-{number}"), data=PAYLOAD))

        async def patch(number: int) -> None:
            await client.patch(ConfigMap, f"{tag}-0", {"data": {"mode": str(number)}})

        async def list_all() -> int:
            return len(await client.list(ConfigMap, namespace=NAMESPACE, labels="bench=item"))

        async def watch() -> int:
            seen = 0
            async for event in client.watch(ConfigMap, namespace="events", resource_version="0"):
                seen += len(event.object.data) > 0
                if seen >= EVENTS:
                    break
            return seen

        return await rows(get, create, patch, list_all, watch)


async def kubernetes_asyncio(kubeconfig: str, tag: str) -> Rows:
    from kubernetes_asyncio import client, config
    from kubernetes_asyncio.watch import Watch

    await config.load_kube_config(config_file=kubeconfig)
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)

        async def get() -> None:
            await core.read_namespaced_config_map("item-0", NAMESPACE)

        async def create(number: int) -> None:
            body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"{tag}-{number}"), data=PAYLOAD)
            await core.create_namespaced_config_map(NAMESPACE, body)

        async def patch(number: int) -> None:
            body = {"data": {"mode": str(number)}}
            await core.patch_namespaced_config_map(
                f"{tag}-0", NAMESPACE, body, _content_type="application/merge-patch+json"
            )

        async def list_all() -> int:
            return len((await core.list_namespaced_config_map(NAMESPACE, label_selector="bench=item")).items)

        async def watch() -> int:
            seen = 0
            async with Watch().stream(core.list_namespaced_config_map, "events", resource_version="0") as stream:
                async for event in stream:
                    seen += len(event["object"].data) > 0
                    if seen >= EVENTS:
                        break
            return seen

        return await rows(get, create, patch, list_all, watch)


async def lightkube(kubeconfig: str, tag: str) -> Rows:
    from lightkube import AsyncClient, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    client = AsyncClient(config=KubeConfig.from_file(kubeconfig), namespace=NAMESPACE)

    async def get() -> None:
        await client.get(ConfigMap, "item-0")

    async def create(number: int) -> None:
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"{tag}-{number}"), data=PAYLOAD))

    async def patch(number: int) -> None:
        await client.patch(ConfigMap, f"{tag}-0", {"data": {"mode": str(number)}}, patch_type=PatchType.MERGE)

    async def list_all() -> int:
        return len([item async for item in client.list(ConfigMap, namespace=NAMESPACE, labels={"bench": "item"})])

    async def watch() -> int:
        seen = 0
        async for _, item in client.watch(ConfigMap, namespace="events", resource_version="0"):
            seen += len(item.data or ()) > 0
            if seen >= EVENTS:
                break
        return seen

    return await rows(get, create, patch, list_all, watch)


async def kr8s(kubeconfig: str, tag: str) -> Rows:
    import kr8s as peer
    from kr8s.asyncio.objects import ConfigMap

    api = await peer.asyncio.api(kubeconfig=kubeconfig)

    async def get() -> None:
        await ConfigMap.get("item-0", namespace=NAMESPACE, api=api)

    async def create(number: int) -> None:
        body = {"metadata": {"name": f"{tag}-{number}", "namespace": NAMESPACE}, "data": PAYLOAD}
        await (await ConfigMap(body, api=api)).create()

    first: Any = None

    async def patch(number: int) -> None:
        nonlocal first
        first = first or await ConfigMap.get(f"{tag}-0", namespace=NAMESPACE, api=api)
        await first.patch({"data": {"mode": str(number)}})

    async def list_all() -> int:
        listing = api.get("configmaps", namespace=NAMESPACE, label_selector="bench=item")
        return len([item async for item in listing])

    async def watch() -> int:
        seen = 0
        async for _, item in api.watch("configmaps", namespace="events"):
            seen += len(item.raw["data"]) > 0
            if seen >= EVENTS:
                break
        return seen

    return await rows(get, create, patch, list_all, watch)


async def cloudcoil(kubeconfig: str, tag: str) -> Rows:
    """It has no patch: the object is updated instead, as it came from the last update."""
    from cloudcoil.apimachinery import ObjectMeta
    from cloudcoil.client import Config
    from cloudcoil.models.kubernetes.core.v1 import ConfigMap

    async with Config(kubeconfig=kubeconfig, namespace=NAMESPACE):

        async def get() -> None:
            await ConfigMap.async_get("item-0", NAMESPACE)

        async def create(number: int) -> None:
            metadata = ObjectMeta(name=f"{tag}-{number}", namespace=NAMESPACE)
            await ConfigMap(metadata=metadata, data=PAYLOAD).async_create()

        first: Any = None

        async def patch(number: int) -> None:
            nonlocal first
            first = first or await ConfigMap.async_get(f"{tag}-0", NAMESPACE)
            first.data["mode"] = str(number)
            first = await first.async_update()

        async def list_all() -> int:
            # In one page: it takes a page for the last one if the server does not count the rest, as with a selector.
            listing = await ConfigMap.async_list(namespace=NAMESPACE, label_selector="bench=item", limit=LISTED)
            return len([item async for item in listing])

        async def watch() -> int:
            seen = 0
            async for _, item in await ConfigMap.async_watch(namespace="events", resource_version="0"):
                seen += len(item.data) > 0
                if seen >= EVENTS:
                    break
            return seen

        return await rows(get, create, patch, list_all, watch)


CONTENDERS: dict[str, Callable[[str, str], Awaitable[Rows]]] = {
    "konverge": konverge,
    "kubernetes_asyncio": kubernetes_asyncio,
    "lightkube": lightkube,
    "kr8s": kr8s,
    "cloudcoil": cloudcoil,
}


async def rows(
    get: Callable[[], Awaitable[None]],
    create: Callable[[int], Awaitable[None]],
    patch: Callable[[int], Awaitable[None]],
    list_all: Callable[[], Awaitable[int]],
    watch: Callable[[], Awaitable[int]],
) -> Rows:
    """Run the five jobs and return CPU microseconds per unit."""
    for _ in range(10):
        await get()
    begin = cpu()
    for _ in range(GETS):
        await get()
    got = cpu()
    for number in range(CREATES):
        await create(number)
    created = cpu()
    for number in range(PATCHES):
        await patch(number)
    patched = cpu()
    listed = await list_all()
    done = cpu()
    seen = await watch()
    watched = cpu()
    assert (listed, seen) == (LISTED, EVENTS), (listed, seen)
    return {
        "get": (got - begin) / GETS,
        "create": (created - got) / CREATES,
        "patch": (patched - created) / PATCHES,
        "list": (done - patched) / LISTED,
        "watch": (watched - done) / EVENTS,
    }


def one_process(name: str, kubeconfig: str, tag: str) -> Rows:
    command = [sys.executable, "-W", "ignore", __file__, "--contender", name, "--kubeconfig", kubeconfig, "--tag", tag]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    metrics: Rows = json.loads(done.stdout.splitlines()[-1])
    return metrics


async def prepare(kubeconfig: str) -> None:
    """Create 5,000 objects to list, and 10,000 that a watch delivers as initial events."""
    from konverge.client import Client, load_config
    from konverge.k8s.core.v1 import ConfigMap, Namespace
    from konverge.objects import ObjectMeta

    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        limit = asyncio.Semaphore(32)

        async def put(namespace: str, number: int) -> None:
            metadata = ObjectMeta(name=f"item-{number}", namespace=namespace, labels={"bench": "item"})
            async with limit:
                await client.create(ConfigMap(metadata=metadata, data=PAYLOAD))

        for namespace, count in ((NAMESPACE, LISTED), ("events", EVENTS)):
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            async with asyncio.TaskGroup() as group:
                for number in range(count):
                    group.create_task(put(namespace, number))


def main(rounds: int, contenders: list[str]) -> None:
    from konverge.testing import ControlPlane

    with ControlPlane() as plane:
        asyncio.run(prepare(str(plane.kubeconfig)))
        numbers = itertools.count()

        def run(name: str) -> Rows:
            return one_process(name, str(plane.kubeconfig), f"{name.replace('_', '-')}-{next(numbers)}")

        report(measure_metrics({name: partial(run, name) for name in contenders}, rounds), rounds)


BARS = {"get": 0.25, "create": 0.3, "patch": 0.3, "list": 1.0, "watch": 1.0}
UNITS = {"list": "us per listed object", "watch": "us per event"}


def report(metrics: dict[str, dict[str, Measurement]], rounds: int) -> None:
    result = Result(
        "client", f"CPU time of the client process, median of {rounds} shuffled rounds; ConfigMaps of 0.9 kB."
    )
    for job, bar in BARS.items():
        measured = metrics[job]
        result.compare(job, UNITS.get(job, f"us per {job}"), measured, against="konverge")
        if others := [one.median for name, one in measured.items() if name != "konverge"]:
            ratio = measured["konverge"].median / min(others)
            result.target(f"{job}: at most {bar}x the best other client ({ratio:.2f}x)", ratio <= bar)
    result.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--contender", choices=CONTENDERS, help="run only this one, in this process")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--tag", default="")
    args = parser.parse_args()
    if args.contender:
        result: Any = asyncio.run(CONTENDERS[args.contender](args.kubeconfig, args.tag))  # type: ignore[arg-type]
        print(json.dumps(result))
    else:
        main(args.rounds, args.contenders)
