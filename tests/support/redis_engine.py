"""A Redis cluster in memory: nodes with slots, keys, epochs and gossip, for the engine protocol of the operator.

It is as unhelpful as real servers: a node knows others by addresses that may be old, a command may fail before or after
its effect, and what was forgotten comes back when the ban of a node ends while others still know it.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from konverge import Client
from konverge_operators.redis.cluster.engine import Engine, NodeState, Peer, Server, Unreachable
from konverge_operators.redis.cluster.slots import SLOTS
from konverge_operators.redis.servers import digest
from redis_bus import FakeNode, assign, follow, hear, mark_foreign_keys, promote, raise_epoch, slot_of, votes_for


class Crash(BaseException):
    """The process of the operator ends in the middle of a command."""


class MemoryEngine:
    """The engine; `faults` is the probability that a command fails, `crashes` that the operator dies in it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes: dict[str, FakeNode] = {}
        self.faults = 0.0
        self.crashes = 0.0
        self.cut: set[str] = set()  # pods without links to the other servers
        self.hidden: set[str] = set()  # pods that the operator does not reach
        self.removed: set[str] = set()  # pods that do not exist; their claims do
        self.formed = 0
        self.memory = 0  # of each primary
        self.most_open = 0  # how many slots were half-open at a time
        self._ids = 0

    # What happens to servers

    def start(self, pod: str, host: str) -> None:
        """Start a server at an address, with the data of its pod."""
        node = self.nodes.get(pod)
        if node is None:
            node = self.nodes[pod] = self._new_node(pod)
        node.host, node.was_synced, node.offset = host, False, 0
        mark_foreign_keys(node)
        self.gossip()

    def stop(self, pod: str) -> None:
        self.nodes[pod].host = ""

    def lose_data(self, pod: str) -> None:
        """Replace the claim of a pod: its server starts again as an empty node."""
        host = self.nodes[pod].host
        self.nodes[pod] = self._new_node(pod)
        self.nodes[pod].host = host
        self.gossip()

    def is_copied(self, node: FakeNode) -> bool:
        """Report whether another running member of the shard has all keys that a node has."""
        others = [one for one in self.running() if node.id == one.primary or node.primary in (one.id, one.primary)]
        return any(one is not node and self._linked(one, node) and one.keys == node.keys for one in others)

    def elect(self) -> None:
        """Promote the best replica of every primary that the others do not reach, if they reach all its replicas."""
        reached = [node for node in self.running() if node.pod not in self.cut]
        lost = {node.primary for node in self.nodes.values() if node.primary} - {node.id for node in reached}
        for id_ in sorted(lost):
            replicas = [node for node in self.nodes.values() if node.primary == id_ and node.pod not in self.removed]
            if all(node in reached for node in replicas):
                candidates = [node for node in replicas if node.was_synced]
                if candidates:
                    self._elect(max(candidates, key=lambda node: (sum(map(len, node.keys.values())), node.pod)))
        self.gossip()

    def _elect(self, node: FakeNode) -> None:
        """Promote a replica, if most primaries vote for it."""
        if votes_for(node, [one for one in self.running() if not one.primary and self._linked(node, one)]):
            node.current_epoch = node.epoch = 1 + node.current_epoch
            self._promote(node)

    def _promote(self, node: FakeNode) -> None:
        """Promote a replica, which says so to all others at once."""
        promote(node)
        for one in self.running():
            if one is not node and self._linked(one, node):
                hear(one, node)

    def lift_bans(self) -> None:
        """Let the time limit of every forgotten node pass."""
        for node in self.nodes.values():
            node.banned.clear()
        self.gossip()

    def running(self) -> list[FakeNode]:
        return [node for node in self.nodes.values() if node.host]

    def write(self, slot: int, key: str) -> bool:
        """Write a key as a client; report whether a running owner and one replica acknowledged it (WAIT 1)."""
        node = self.owner(slot)
        if node is not None and slot in node.migrating:
            importing = (one for one in self.running() if one.id == node.migrating[slot] and slot in one.importing)
            node = next(importing, None)  # ASK
        return node is not None and self._write(node, slot, key)

    def _write(self, node: FakeNode, slot: int, key: str) -> bool:
        node.keys = {**node.keys, slot: node.keys.get(slot, frozenset()) | {key}}
        node.offset += 1
        replicas = [one for one in self.running() if one.primary == node.id and self._replicates(one, node)]
        for one in replicas:
            self._copy(one, node)
        return bool(replicas)

    def ask(self, server: Server, *words: str) -> str:
        """Reply to GET and SET of a client, perhaps after ASKING: a key is its own value; "" is none."""
        node, key = self._node(server), words[-1]
        slot, asking, writes = slot_of(key), words[0] == "ASKING", "SET" in words
        has_key = key in node.keys.get(slot, ())
        owner = next((id_ for id_, _, owned in node.owners() if slot in owned), "")
        if slot in node.migrating and owner == node.id and not has_key:
            return f"ASK {node.known[node.migrating[slot]].host}"
        if owner != node.id and not (asking and slot in node.importing):
            return f"MOVED {node.known[owner].host}" if owner else "CLUSTERDOWN"
        if writes:
            self._write(node, slot, key)
            return "OK"
        return key if has_key else ""

    def owner(self, slot: int) -> FakeNode | None:
        claims = [node for node in self.running() if slot in node.slots]
        return max(claims, key=lambda node: node.epoch, default=None)

    # The engine

    async def state(self, server: Server) -> NodeState:
        node = self._node(server)
        primary = next((one for one in self.running() if one.id == node.primary), None)
        return NodeState(
            id=node.id,
            epoch=node.claim()[1],
            offset=node.offset,
            keys=sum(map(len, node.keys.values())),
            memory=self.memory,
            primary=node.primary,
            primary_host=node.primary_host,
            synced=not node.primary or (primary is not None and self._replicates(node, primary)),
            slots=node.slots,
            migrating=dict(node.migrating),
            importing=dict(node.importing),
            peers=dict(node.known),
            passwords=node.passwords,
            primary_password=node.primary_password,
        )

    async def meet(self, server: Server, other: Server) -> None:
        node, met = self._command(server), self._node(other)
        for one, two in ((node, met), (met, node)):
            one.banned.discard(two.id)
            one.known[two.id] = replace(one.known.get(two.id, Peer("")), host=two.host)
        self._done()

    async def add_slots(self, server: Server, slots: Collection[int]) -> None:
        node = self._command(server)
        if any(owned & frozenset(slots) for _, _, owned in node.owners()):
            raise Unreachable(f"{node.pod}: a slot is busy")
        assert not any(slot in one.slots for one in self.nodes.values() for slot in slots), "a slot gets a second owner"
        if not any(one.slots for one in self.nodes.values()):
            assert not any(keys for one in self.nodes.values() for keys in one.keys.values()), "keys are left behind"
            self.formed += 1
        node.slots |= frozenset(slots)
        self._done()

    async def set_slots(
        self, server: Server, slots: Collection[int], state: Literal["migrating", "importing", "node"], node: str
    ) -> None:
        one = self._command(server)
        if node != one.id and node not in one.known:
            raise Unreachable(f"{one.pod}: unknown node {node}")
        part = self._part(slots)
        self._set_slots(one, part, state, node)
        self.most_open = max(self.most_open, len({slot for each in self.nodes.values() for slot in each.importing}))
        self._done(crash=len(part) < len(slots), news=state == "node")

    async def close_slots(self, server: Server, slots: Collection[int]) -> None:
        node = self._command(server)
        for slot in slots:
            node.migrating.pop(slot, None)
            node.importing.pop(slot, None)
        self._done(news=False)

    async def migrate(self, server: Server, slots: Collection[int], target: Server) -> None:
        source, node = self._command(server), self._node(target)
        part = self._part(slots)
        moved = {slot: source.keys[slot] for slot in part if source.keys.get(slot)}
        if refused := [slot for slot in moved if slot not in node.importing]:
            raise Unreachable(f"{node.pod}: slot {refused[0]} is not importing")
        merged = {slot: node.keys.get(slot, frozenset()) | keys for slot, keys in moved.items()}
        node.keys = {**node.keys, **merged}
        source.keys = {slot: keys for slot, keys in source.keys.items() if slot not in moved}
        source.offset, node.offset = source.offset + len(moved), node.offset + len(moved)
        self._done(crash=len(part) < len(slots), news=bool(moved))

    async def slots_with_keys(self, server: Server, slots: Collection[int]) -> frozenset[int]:
        node = self._node(server)
        return frozenset(slot for slot in slots if node.keys.get(slot))

    async def replicate(self, server: Server, primary: str) -> None:
        node = self._command(server)
        if primary not in node.known or node.known[primary].primary:
            raise Unreachable(f"{node.pod}: {primary} is no primary that it knows")
        if not node.primary and (node.slots or any(node.keys.values())):
            raise Unreachable(f"{node.pod} has slots or keys")
        follow(node, primary)
        self._done()

    async def fail_over(self, server: Server, how: Literal["", "FORCE", "TAKEOVER"] = "") -> None:
        node = self._command(server)
        if node.primary not in node.known:
            raise Unreachable(f"{node.pod} is not a replica")
        primary = next((one for one in self.running() if one.id == node.primary), None)
        if not how and (primary is None or not self._linked(node, primary)):
            raise Unreachable(f"{node.pod}: its primary does not reply")
        if how == "TAKEOVER":
            raise_epoch(node)
            self._promote(node)
        else:
            self._elect(node)
        self._done()

    async def raise_epoch(self, server: Server) -> None:
        raise_epoch(self._command(server))
        self._done()

    async def forget(self, server: Server, node: str) -> None:
        one = self._command(server)
        if node in (one.id, one.primary):
            raise Unreachable(f"{one.pod} does not forget itself or its primary")
        one.known.pop(node, None)
        one.banned.add(node)
        self._done()

    async def reset(self, server: Server) -> None:
        node = self._command(server)
        if not node.primary and any(node.keys.values()):
            raise Unreachable(f"{node.pod} is a primary with keys")
        assert not node.slots or not any(keys for one in self.nodes.values() for keys in one.keys.values()), (
            "a node with slots is reset"
        )
        empty = self._new_node(node.pod)
        empty.host = node.host
        self.nodes[node.pod] = empty
        self._done()

    async def set_passwords(self, server: Server, accepted: Collection[str], current: str) -> None:
        node = self._command(server)
        node.passwords, node.primary_password = frozenset(map(digest, accepted)), digest(current)
        self._done(news=False)

    # Inside

    def _new_node(self, pod: str) -> FakeNode:
        self._ids += 1
        return FakeNode(pod, f"{pod}-{self._ids}")

    def _node(self, server: Server) -> FakeNode:
        node = self.nodes.get(server.pod)
        lost = server.pod in self.hidden or self.random.random() < self.faults / 4
        if node is None or node.host != server.host or lost:
            raise Unreachable(f"{server.pod} does not reply")
        if node.passwords and not node.passwords & set(map(digest, server.passwords)):
            raise Unreachable(f"{server.pod} accepts none of the passwords")
        return node

    def _command(self, server: Server) -> FakeNode:
        if self.random.random() < self.crashes:
            raise Crash
        return self._node(server)

    def _part(self, slots: Collection[int]) -> list[int]:
        """Return the slots that a command reaches before the operator dies in it; mostly all."""
        every = sorted(slots)
        return every[: self.random.randrange(len(every))] if self.random.random() < self.crashes else every

    def _done(self, *, crash: bool = False, news: bool = True) -> None:
        if news:
            self.gossip()
        if crash:
            raise Crash
        if self.random.random() < self.faults:
            raise Unreachable("the response was lost")

    def _set_slots(self, one: FakeNode, slots: list[int], state: str, node: str) -> None:
        chosen = frozenset(slots)
        if one.primary:
            raise Unreachable(f"{one.pod} is a replica")
        if state == "importing":
            if chosen & one.slots:
                raise Unreachable(f"{one.pod} already owns slots")
            one.importing |= dict.fromkeys(slots, node)
        elif state == "migrating":
            if chosen - one.slots:
                raise Unreachable(f"{one.pod} does not own the slots")
            one.migrating |= dict.fromkeys(slots, node)
        elif node == one.id:
            if chosen & one.importing.keys():
                raise_epoch(one)
            for id_, peer in list(one.known.items()):
                if peer.slots & chosen:
                    one.known[id_] = replace(peer, slots=peer.slots - chosen)
            one.slots |= chosen
            one.importing = {slot: id_ for slot, id_ in one.importing.items() if slot not in chosen}
        else:
            if any(one.keys.get(slot) for slot in chosen & one.slots):
                raise Unreachable(f"{one.pod} has keys of the slots")
            one.slots -= chosen
            assign(one, node, chosen)
            one.migrating = {slot: id_ for slot, id_ in one.migrating.items() if slot not in chosen}

    def _linked(self, one: FakeNode, two: FakeNode) -> bool:
        """Report whether two nodes exchange messages: both know each other, one of them by the current address."""
        known, back = one.known.get(two.id), two.known.get(one.id)
        if known is None or back is None or not (one.host and two.host) or self.cut & {one.pod, two.pod}:
            return False
        return known.host == two.host or back.host == one.host

    def _replicates(self, one: FakeNode, primary: FakeNode) -> bool:
        """Report whether a replica gets the data of its primary, as if it connected now."""
        if one.primary_host not in ("", primary.host):
            return False
        return self._linked(one, primary) and (not primary.passwords or one.primary_password in primary.passwords)

    def gossip(self) -> None:
        """Let all nodes exchange messages until nothing changes: addresses, owners of slots, other nodes, data."""
        running, changed = self.running(), True
        self.random.shuffle(running)
        self._find_strangers(running)
        while changed:
            changed = False
            for two in running:
                for one in running:
                    if one is not two and self._linked(one, two):
                        changed |= hear(one, two)
                        changed |= one.primary == two.id and self._copy(one, two)
            for one in running:
                changed |= self._introduce(one, running)

    def _find_strangers(self, running: list[FakeNode]) -> None:
        """Remove the addresses of nodes at which another one replies now."""
        ids = {node.host: node.id for node in running if node.pod not in self.cut}
        for one in running:
            for id_, peer in list(one.known.items()) if one.pod not in self.cut else ():
                if ids.get(peer.host, id_) != id_:
                    one.known[id_] = replace(peer, host="")

    def _introduce(self, one: FakeNode, running: list[FakeNode]) -> bool:
        """Tell a node of the others that run, and of their new addresses; a handshake with any other one fails."""
        changed = False
        for node in running:
            known = one.known.get(node.id)
            if node is one or (known is not None and known.host == node.host) or self.cut & {one.pod, node.pod}:
                continue
            if not any(self._linked(one, two) and _knows(two, node) for two in running):
                continue
            if known is not None:
                one.known[node.id] = replace(known, host=node.host)
                if one.primary == node.id:
                    one.primary_host = one.primary_host or known.host  # Redis 6.2 goes on connecting there
                changed = True
            elif node.id not in one.banned:
                one.known[node.id] = Peer(node.host)
                node.known.setdefault(one.id, Peer(one.host))
                changed = True
        return changed

    def _copy(self, one: FakeNode, primary: FakeNode) -> bool:
        """Copy the data of a primary to its replica."""
        if not self._replicates(one, primary) or (one.keys is primary.keys and one.was_synced):
            return False
        one.keys, one.offset, one.was_synced = primary.keys, primary.offset, True
        return True


def _knows(one: FakeNode, two: FakeNode) -> bool:
    """Report whether a node knows another one by its current address."""
    return two.id in one.known and one.known[two.id].host == two.host


class PodEngine(MemoryEngine):
    """The servers of pods: one starts when the operator asks for it, at the address that the pod has then."""

    def __init__(self) -> None:
        super().__init__(seed=0)

    @asynccontextmanager
    async def opened(self, _client: Client) -> AsyncGenerator[Engine]:
        """Return itself, as what the reconcilers of an operator share."""
        yield self

    def clear(self) -> None:
        """Remove all servers with their data."""
        self.nodes.clear()
        self.formed = 0

    def _node(self, server: Server) -> FakeNode:
        node = self.nodes.get(server.pod)
        if server.pod not in self.hidden and (node is None or node.host != server.host):
            self.start(server.pod, server.host)
            if server.passwords:  # as in the Secret that the pod reads
                started = self.nodes[server.pod]
                started.passwords = frozenset(map(digest, server.passwords))
                started.primary_password = digest(server.passwords[0])
        return super()._node(server)

    def _new_node(self, pod: str) -> FakeNode:
        """Return an empty node, whose id does not depend on the order in which pods start."""
        lives = 1 + int(self.nodes[pod].id.rpartition("-")[2]) if pod in self.nodes else 1
        return FakeNode(pod, f"{pod}-{lives}")


def check_owners(engine: MemoryEngine) -> None:
    """Check that every slot has exactly one owner."""
    for slot in range(SLOTS):
        owners = [node.pod for node in engine.running() if slot in node.slots]
        assert len(owners) == 1, f"slot {slot} has the owners {owners}"
