"""Objects that own each other, on the embedded server with our garbage collector or on a real one with its own.

A family is drawn as plain data (`Family`) and created in a namespace of a server (`raise_family`). Some of its
members are deleted by some policy, and what is left is read (`what_is_left`) in a form that two servers share.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from konverge import Client, CustomResource, Spec, Status, crd_for
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import NotFound
from konverge.objects import Unstructured
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.garbage import GarbageCollector

Policy = Literal["Background", "Foreground", "Orphan"]

START = 1_800_000_000.0


class SprocketSpec(Spec):
    size: int = 1


class SprocketStatus(Status):
    pass


class Sprocket(CustomResource[SprocketSpec, SprocketStatus], group="own.konverge.dev", version="v1"):
    """A namespaced kind that owns and is owned."""


class Depot(CustomResource[SprocketSpec, SprocketStatus], group="own.konverge.dev", version="v1", scope="Cluster"):
    """A cluster-scoped kind that owns and is owned."""


API_VERSIONS = {
    "ConfigMap": "v1",
    "Secret": "v1",
    "Sprocket": "own.konverge.dev/v1",
    "Depot": "own.konverge.dev/v1",
}
CLUSTER_SCOPED = ("Depot",)
PLURALS = {
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Sprocket": "sprockets.own.konverge.dev",
    "Depot": "depots.own.konverge.dev",
}


@dataclass(frozen=True)
class Tie:
    """A reference to the member with a number, or (`wrong`) to its name with another uid."""

    owner: int
    blocks: bool | None = None
    wrong: bool = False


@dataclass(frozen=True)
class Member:
    kind: str
    ties: tuple[Tie, ...] = ()
    held: bool = False  # by a finalizer of its own


@dataclass(frozen=True)
class Family:
    """Members by number, and which are deleted, in order, by which policy."""

    members: tuple[Member, ...]
    deaths: tuple[tuple[int, Policy], ...]


def family_from(random: Random, *, most: int = 8) -> Family:
    """Draw a family: any member may refer to any other, later ones included, so there are cycles."""
    count = random.randint(2, most)
    kinds = [random.choice(sorted(API_VERSIONS)) for _ in range(count)]
    members = []
    for number, kind in enumerate(kinds):
        possible = [one for one in range(count) if kind not in CLUSTER_SCOPED or kinds[one] in CLUSTER_SCOPED]
        possible = [one for one in possible if one != number]
        owners = random.sample(possible, min(len(possible), random.randint(0, 3)))
        ties = tuple(Tie(owner, random.choice((None, True, False)), random.randint(0, 9) == 9) for owner in owners)
        members.append(Member(kind, ties, held=random.randint(0, 7) == 7))
    chosen = random.sample(range(count), random.randint(1, min(count, 3)))
    policies: list[Policy] = ["Background", "Foreground", "Orphan"]
    return Family(tuple(members), tuple((one, random.choice(policies)) for one in chosen))


def name_of(prefix: str, number: int) -> str:
    return f"{prefix}-{number}"


async def raise_family(client: Client, family: Family, namespace: str, prefix: str = "m") -> list[Unstructured]:
    """Create the members, and then set their references: all must have a uid first."""
    made = []
    for number, member in enumerate(family.members):
        metadata: dict[str, Any] = {"name": name_of(prefix, number), "finalizers": ["own.konverge.dev/hold"]}
        if member.kind not in CLUSTER_SCOPED:
            metadata["namespace"] = namespace
        wish = {"apiVersion": API_VERSIONS[member.kind], "kind": member.kind, "metadata": metadata}
        made.append(await client.create(Unstructured(wish)))
    # The finalizer of all members holds them until all references are set: a wrong one would be acted on at once.
    for number, member in enumerate(family.members):
        patch = {"metadata": {"ownerReferences": [_reference(made[tie.owner], tie) for tie in member.ties]}}
        made[number] = await client.patch(await _kind(client, made[number]), made[number].key, patch)
    return made


async def act(client: Client, family: Family, made: list[Unstructured], step: int) -> None:
    """Do one step: delete one of those to be deleted, and after those, remove a finalizer that must not hold."""
    if step < len(family.deaths):
        number, policy = family.deaths[step]
        await client.delete(await _kind(client, made[number]), made[number].key, propagation=policy, missing_ok=True)
        return
    free = [number for number, member in enumerate(family.members) if not member.held]
    for number in free[step - len(family.deaths) :][:1]:
        await release(client, made[number])


def steps_of(family: Family) -> int:
    return len(family.deaths) + sum(not member.held for member in family.members)


async def release(client: Client, obj: Unstructured) -> None:
    """Remove our finalizer from an object, whatever else it has."""
    kind = await _kind(client, obj)
    while True:
        try:
            now = await client.get(kind, obj.key)
        except NotFound:
            return
        finalizers = now.metadata.get("finalizers", [])
        if "own.konverge.dev/hold" not in finalizers:
            return
        index = finalizers.index("own.konverge.dev/hold")
        where = f"/metadata/finalizers/{index}"
        try:
            await client.patch(
                kind,
                obj.key,
                [{"op": "test", "path": where, "value": "own.konverge.dev/hold"}, {"op": "remove", "path": where}],
                patch_type="json",
            )
        except Exception as error:
            if getattr(error, "status", 0) not in (404, 409, 422):
                raise


async def _kind(client: Client, obj: Unstructured) -> Any:
    return await client.discovery.kind(obj.api_version, obj.kind)


def _reference(owner: Unstructured, tie: Tie) -> dict[str, Any]:
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name}
    reference["uid"] = "00000000-0000-4000-8000-000000000000" if tie.wrong else owner.uid
    return reference if tie.blocks is None else {**reference, "blockOwnerDeletion": tie.blocks}


async def what_is_left(client: Client, made: list[Unstructured]) -> dict[int, Any]:
    """Return for each member that is left its finalizers, whether it is being deleted, and if not, its owners.

    The references of a member that is being deleted depend on the processing order.
    """
    numbers = {one.uid: number for number, one in enumerate(made)}
    left: dict[int, Any] = {}
    for number, one in enumerate(made):
        try:
            now = await client.get(await _kind(client, one), one.key)
        except NotFound:
            continue
        references = now.metadata.get("ownerReferences", [])
        owners = [(numbers.get(owner["uid"], "wrong"), owner.get("blockOwnerDeletion")) for owner in references]
        deleting = "deletionTimestamp" in now.metadata
        left[number] = (sorted(now.metadata.get("finalizers", [])), deleting, [] if deleting else owners)
    return left


def virtual_clock() -> float:
    return START + asyncio.get_running_loop().time()


def client_of(server: EmbeddedServer) -> Client:
    return Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default"))


@asynccontextmanager
async def collected_server() -> AsyncGenerator[tuple[EmbeddedServer, Client]]:
    """Run an embedded server with our garbage collector, and the kinds of this module."""
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    client = client_of(server)
    await client.create(crd_for(Sprocket))
    await client.create(crd_for(Depot))
    async with GarbageCollector(client_of(server)).running():
        yield server, client
