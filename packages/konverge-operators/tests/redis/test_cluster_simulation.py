"""A RedisCluster on servers in memory, under seeded faults: crashes in mid-move, new addresses, cut links, lost data.

Each round is one reconcile: it observes the servers and does one step. A crash ends it anywhere, with what the status
would have said; a stale cache lets it begin with what was true some rounds ago. The servers go on between the rounds:
clients write, addresses change, replicas are elected.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace

import pytest

from konverge.testing import run_in_virtual_time
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster, RedisClusterSpec
from konverge_operators.redis.cluster.engine import Server
from konverge_operators.redis.cluster.forming import Step
from konverge_operators.redis.cluster.reconciler import replicas_to_run
from konverge_operators.redis.cluster.reports import record
from konverge_operators.redis.cluster.slots import SLOTS
from konverge_operators.redis.cluster.steps import advance
from konverge_operators.redis.cluster.views import Member, expected_members, observe
from redis_engine import Crash, MemoryEngine, check_owners


class World:
    """The pods, servers and clients of one cluster."""

    def __init__(self, seed: int) -> None:
        self.engine = MemoryEngine(seed)
        self.random = self.engine.random
        self.cluster = RedisCluster.new("store", RedisClusterSpec(shards=3, replicas_per_shard=1))
        self.sets: dict[int, int] = {}
        self.acknowledged: set[tuple[int, str]] = set()
        self._addresses = 0
        self._past: list[tuple[RedisCluster, list[Member], dict[int, int]]] = []
        self._formed = 0

    def pods(self) -> list[str]:
        return [f"store-shard-{shard}-{number}" for shard, count in self.sets.items() for number in range(count)]

    def start_pods(self) -> None:
        """Start the servers of pods that do not run, at new addresses, and stop those whose pods are gone."""
        for pod in self.pods():
            is_down = pod not in self.engine.nodes or not self.engine.nodes[pod].host
            if is_down and (self.engine.faults == 0 or self.random.random() < 0.6):
                self._addresses += 1
                self.engine.start(pod, f"10.0.0.{self._addresses}")
        self.engine.removed = self.engine.nodes.keys() - set(self.pods())
        for pod in self.engine.removed:
            self.engine.stop(pod)

    def members(self) -> list[Member]:
        spec = self.cluster.spec
        expected = expected_members(
            "store", shards=spec.shards, per_shard=1 + spec.replicas_per_shard, existing=self.sets
        )
        hosts = {node.pod: node.host for node in self.engine.running()}
        return [replace(one, server=Server(one.pod, hosts[one.pod]) if one.pod in hosts else None) for one in expected]

    async def reconcile(self) -> Step | None:
        """Reconcile once, perhaps with a stale cache. A crash loses the status, and mostly the StatefulSets."""
        cluster, members, sets, stale = self._cached()
        view = await observe(members, self.engine, shards=cluster.spec.shards)
        step = await advance(cluster, view, self.engine)
        record(cluster, view, step)
        kept = replicas_to_run(cluster, view, sets)
        self.sets = {shard: count for shard, count in self.sets.items() if shard not in sets} | kept
        if stale or self.random.random() < self.engine.crashes:
            raise Crash  # a stale status is refused by the server
        self.cluster.status = cluster.status
        return step

    def _cached(self) -> tuple[RedisCluster, list[Member], dict[int, int], bool]:
        """Return what the operator's cache has: mostly what is true, or what was some rounds ago (stale)."""
        now = (copy.deepcopy(self.cluster), self.members(), dict(self.sets))
        self._past = [*self._past[-2:], now]
        found = self.random.choice(self._past) if self.random.random() < self.engine.faults else now
        return copy.deepcopy(found[0]), *found[1:], found is not now

    def write(self) -> None:
        for _ in range(20):
            slot = self.random.randrange(SLOTS)
            key = f"key-{slot}-{self.random.randrange(1000)}"
            if self.engine.write(slot, key):
                self.acknowledged.add((slot, key))

    def disturb(self) -> None:
        """Let something happen to the servers, or change the spec."""
        running = [node.pod for node in self.engine.running()]
        event = self.random.randrange(10)
        if event == 0 and running:
            self.engine.stop(self.random.choice(running))
        elif event == 1:
            for pod in running:
                self.engine.stop(pod)
        elif event == 2:
            self.cluster.spec.shards = self.random.randrange(3, 7)
        elif event == 3:
            self.cluster.spec.replicas_per_shard = self.random.randrange(1, 3)
        elif event == 4 and running:
            self.engine.cut ^= {self.random.choice(running)}
        elif event == 5 and running:
            self.engine.hidden ^= {self.random.choice(running)}
        elif event == 6:
            self.engine.elect()
        elif event == 7 and (copied := [node.pod for node in self.engine.running() if self.engine.is_copied(node)]):
            self.engine.lose_data(self.random.choice(copied))
        elif event == 8:
            self.cluster.spec.rebalance.weights = [self.random.randrange(1, 4) for _ in range(3)]

    def calm(self) -> None:
        """End the faults."""
        self.engine.faults = self.engine.crashes = 0.0
        self.engine.cut.clear()
        self.engine.hidden.clear()
        self.engine.gossip()

    def check_formed(self) -> None:
        """Check that no cluster is formed again once one was."""
        if self._formed:
            assert self.engine.formed == self._formed, "a cluster was formed over another one"
        elif self.cluster.status.formed:
            self._formed = self.engine.formed

    def check(self) -> None:
        check_owners(self.engine)
        lost = [one for one in self.acknowledged if one[1] not in self._keys_of(one[0])]
        assert not lost, f"{len(lost)} acknowledged keys are lost, such as {lost[0]}"

    def _keys_of(self, slot: int) -> frozenset[str]:
        owner = self.engine.owner(slot)
        return owner.keys.get(slot, frozenset()) if owner is not None else frozenset()


async def live(seed: int) -> None:
    world = World(seed)
    world.engine.faults, world.engine.crashes = 0.05, 0.02
    for number in range(60):
        if number % 12 == 0:
            world.engine.lift_bans()  # after a minute
        if world.random.random() < 0.3:
            world.disturb()
        await one_round(world)
    world.calm()
    calm = 0
    for number in range(100):
        if number % 12 == 0:
            world.engine.lift_bans()
            world.engine.elect()
        calm = calm + 1 if await one_round(world) is None else 0
        if calm == 3:
            break
    assert calm == 3, world.cluster.status
    world.check()
    assert world.cluster.status.slots.assigned == SLOTS
    assert set(world.sets) == set(range(world.cluster.spec.shards))


async def one_round(world: World) -> Step | None:
    step: Step | None = None
    try:
        step = await world.reconcile()
    except Crash:
        step = None
    world.check_formed()
    world.start_pods()
    world.write()
    await asyncio.sleep(5)
    return step


async def settled(world: World) -> list[Step]:
    """Reconcile until nothing is under way; return the steps."""
    steps: list[Step] = []
    for _ in range(40):
        if (step := await one_round(world)) is not None:
            steps.append(step)
        elif world.sets:
            return steps
    raise AssertionError(steps[-1])


async def half_moved(world: World, slot: int, source: str, target: str) -> None:
    """Move the keys of a slot from one pod to another, as far as the target does not own it yet."""
    engine, nodes = world.engine, world.engine.nodes
    one, two = (Server(pod, nodes[pod].host) for pod in (source, target))
    await engine.set_slots(two, [slot], "importing", nodes[source].id)
    await engine.set_slots(one, [slot], "migrating", nodes[target].id)
    await engine.migrate(one, [slot], two)


async def _imported_keys_are_kept() -> None:
    world = World(0)
    world.cluster.spec.rebalance.auto = False
    await settled(world)
    world.cluster.spec.shards = 4
    await settled(world)
    assert world.engine.write(7, "key-7")
    world.acknowledged.add((7, "key-7"))
    await half_moved(world, 7, "store-shard-0-0", "store-shard-3-0")
    world.engine.lose_data("store-shard-3-0")
    world.engine.hidden = {"store-shard-1-1"}
    assert await one_round(world) == (ClusterPhase.SCALING, "introducing nodes")
    for _ in range(3):
        assert await one_round(world) == (ClusterPhase.DEGRADED, "the primary of store-shard-3-1 does not reply")
    world.engine.hidden = set()
    steps = await settled(world)
    assert steps[0] == (ClusterPhase.FAILING_OVER, "store-shard-3-1 keeps what a lost primary had imported")
    world.check()


def test_a_replica_keeps_what_its_lost_primary_imported_also_while_a_member_does_not_reply() -> None:
    run_in_virtual_time(_imported_keys_are_kept(), debug=False)


async def _no_stale_claim_is_made_the_latest() -> None:
    world = World(0)
    await settled(world)
    pods = ["store-shard-0-0", "store-shard-1-0", "store-shard-2-0"]
    own = [min(world.engine.nodes[pod].slots) for pod in pods]
    assert world.engine.write(own[1], "key")
    world.acknowledged.add((own[1], "key"))
    await half_moved(world, own[0], pods[0], pods[1])
    await half_moved(world, own[1], pods[1], pods[2])
    world.engine.cut = {pods[1]}
    target = world.engine.nodes[pods[2]]
    await world.engine.set_slots(Server(target.pod, target.host), [own[1]], "node", target.id)
    for _ in range(3):
        step = await one_round(world)
        assert step == (ClusterPhase.REBALANCING, "store-shard-1-0 does not know yet that slots were moved away")
    world.calm()
    await settled(world)
    assert own[1] in target.slots
    world.check()


def test_no_import_ends_on_a_primary_that_claims_slots_which_were_moved_away() -> None:
    run_in_virtual_time(_no_stale_claim_is_made_the_latest(), debug=False)


@pytest.mark.parametrize("seed", range(50))
def test_every_slot_has_one_owner_and_no_acknowledged_key_is_lost(seed: int) -> None:
    run_in_virtual_time(live(seed), debug=False)


@pytest.mark.campaigns
@pytest.mark.parametrize("seed", range(50, 1050))
def test_a_thousand_seeds(seed: int) -> None:
    run_in_virtual_time(live(seed), debug=False)
