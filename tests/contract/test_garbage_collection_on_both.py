"""Random families of owners, collected by our garbage collector and by the real one: what is left is the same.

Each family is acted on one step at a time, and everything comes to rest before the next. Families for which it matters
who is looked at first are left out: what becomes of those is a matter of luck on the real one, too.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from konverge import Client, crd_for
from konverge.client import is_deleted, load_config
from konverge.errors import WaitTimeout
from konverge.k8s.core.v1 import ConfigMap, Namespace
from konverge.objects import ObjectMeta, OwnerReference, Unstructured
from konverge.schema import to_yaml
from konverge.testing import ControlPlane, run_in_virtual_time, settle
from owner_worlds import is_determined
from ownerships import (
    API_VERSIONS,
    PLURALS,
    Depot,
    Family,
    Sprocket,
    act,
    collected_server,
    family_from,
    raise_family,
    steps_of,
    what_is_left,
)
from quiet_namespaces import QuietNamespaces

# A test that starts control planes of its own needs the real programs, as one that asks for the fixture does.
pytestmark = pytest.mark.usefixtures("control_plane")

FAMILIES = 24
PLACE = "families"


@pytest.fixture(scope="module")
def managed_plane() -> Iterator[ControlPlane]:
    with ControlPlane(controller_manager=True) as plane:
        # Its collector asks each half a minute which kinds there are: it comes to know ours while other tests run.
        for kind in (Sprocket, Depot):
            plane.kubectl("create", "-f", "-", input=to_yaml(crd_for(kind)))
        yield plane


async def play(client: Client, families: list[Family], at_rest: Callable[[], Any]) -> list[dict[int, Any]]:
    """Raise all families, act on them step by step, and give what is left of each."""
    await client.create(Namespace(metadata=ObjectMeta(name=PLACE)))
    raising = (raise_family(client, family, PLACE, f"f{number}") for number, family in enumerate(families))
    raised = await asyncio.gather(*raising)
    await at_rest()
    for step in range(max(map(steps_of, families))):
        acts = (act(client, family, made, step) for family, made in zip(families, raised, strict=True))
        await asyncio.gather(*acts)
        await at_rest()
    return [await what_is_left(client, made) for made in raised]


@asynccontextmanager
async def real_collection(plane: ControlPlane) -> AsyncGenerator[Client]:
    """Give a real server whose garbage collector knows our kinds."""
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        await asyncio.gather(is_collected(client, "Sprocket", "default"), is_collected(client, "Depot", ""))
        yield client


async def is_collected(client: Client, kind: str, namespace: str) -> None:
    """Wait until the child of an owner of that kind goes with it.

    A collector that does not know a kind yet tries again later and later: so each try has a child of its own.
    """
    for number in itertools.count():
        owner = await client.create(_member(kind, namespace, f"owner-{number}"))
        child = _member(kind, namespace, f"child-{number}")
        child.metadata["ownerReferences"] = [_refer(owner)]
        made = await client.create(child)
        await client.delete(owner)
        with suppress(WaitTimeout):
            await client.wait_for(PLURALS[kind], made.key, is_deleted(), timeout=2)
            return


def _member(kind: str, namespace: str, name: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return Unstructured({"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata})


def _refer(owner: Unstructured) -> dict[str, str]:
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}


async def embedded_outcome(families: list[Family]) -> list[dict[int, Any]]:
    async with collected_server() as (_, client):
        return await play(client, families, settle)


@pytest.mark.real_time(limit=300)
async def test_an_owner_in_another_namespace_is_told_in_the_same_words(managed_plane: ControlPlane) -> None:
    ours = await asyncio.to_thread(_virtually_told)
    async with Client.connect(load_config(kubeconfig=managed_plane.kubeconfig)) as client:
        theirs = await _told_of_wrong_namespace(client)

    assert ours == theirs


@pytest.mark.real_time(limit=900)
async def test_what_is_left_of_random_families_is_the_same_on_both(managed_plane: ControlPlane) -> None:
    drawn = (family_from(Random(seed)) for seed in itertools.count())
    families = list(itertools.islice(filter(is_determined, drawn), FAMILIES))
    ours = await asyncio.to_thread(_virtually, families)
    quiet_namespaces = QuietNamespaces(PLURALS.values())
    async with real_collection(managed_plane) as client, quiet_namespaces.watched(client):
        theirs = await play(
            quiet_namespaces.observed(client, PLACE), families, lambda: quiet_namespaces.wait(client, PLACE, "")
        )

    for family, our, their in zip(families, ours, theirs, strict=True):
        assert our == their, family


async def _told_of_wrong_namespace(client: Client) -> dict[str, Any]:
    owner = await client.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace="kube-public")))
    await asyncio.sleep(3)
    child = ConfigMap(metadata=ObjectMeta(name="child", namespace="default"))
    child.metadata.owner_references = [OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.uid)]
    child = await client.create(child)
    await client.wait_for(ConfigMap, child.key, lambda seen: seen is None, timeout=120)
    while True:
        events = await client.list("events", namespace="default")
        found = [one for one in events if one["reason"] == "OwnerRefInvalidNamespace"]
        if found:
            break
        await asyncio.sleep(0.5)
    event, about = found[0], found[0]["involvedObject"]
    words = {name: event[name] for name in ("type", "reason", "message")}
    words["message"] = words["message"].replace(owner.uid, "<uid>")
    same = {name: about[name] for name in ("kind", "apiVersion", "name", "namespace")}
    return {**words, **same, "reporter": event["reportingComponent"], "is_the_child": about["uid"] == child.uid}


def _virtually(families: list[Family]) -> list[dict[int, Any]]:
    return run_in_virtual_time(embedded_outcome(families), debug=False)


def _virtually_told() -> dict[str, Any]:
    async def told() -> dict[str, Any]:
        async with collected_server() as (_, client):
            return await _told_of_wrong_namespace(client)

    return run_in_virtual_time(told(), debug=False)
