"""The engine on real servers: Redis 6.2 and later, Valkey."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Literal

from konverge_operators.redis.cluster.engine import NodeState, Peer, Server, Unreachable
from konverge_operators.redis.resp import Connection, Reply, ServerError
from konverge_operators.redis.servers import PORT

__all__ = ["RedisEngine", "parse_nodes"]

_KEYS_AT_A_TIME = 100
_MIGRATE_MILLISECONDS = 5000


def parse_nodes(text: str) -> NodeState:
    """Parse the reply of CLUSTER NODES: what a node knows of itself and of the others.

    Raises: ValueError when no line is the node's own.
    """
    peers: dict[str, Peer] = {}
    own: NodeState | None = None
    for line in text.splitlines():
        id_, address, flags, primary, _, _, epoch, _, *slots = line.split(" ")
        words, primary = flags.split(","), "" if primary == "-" else primary
        if "myself" in words:
            migrating, importing = _marks(slots, "->-"), _marks(slots, "-<-")
            own = NodeState(
                id_, epoch=int(epoch), primary=primary, slots=_slots(slots), migrating=migrating, importing=importing
            )
        elif "handshake" not in words:
            peers[id_] = Peer(address.rpartition(":")[0], primary, _slots(slots), failed="fail" in words)
    if own is None:
        raise ValueError("CLUSTER NODES has no line of the node itself")
    return replace(own, peers=peers)


def _slots(words: Iterable[str]) -> frozenset[int]:
    """Return the slots in words such as "0-5460" and "7"."""
    ranges = [word.split("-") for word in words if word and not word.startswith("[")]
    return frozenset(slot for bounds in ranges for slot in range(int(bounds[0]), int(bounds[-1]) + 1))


def _marks(words: Iterable[str], arrow: str) -> dict[int, str]:
    """Return the half-open slots in words such as "[93-<-<id>]", with the id of the other side."""
    pairs = [word.strip("[]").split(arrow) for word in words if word.startswith("[") and arrow in word]
    return {int(slot): node for slot, node in pairs}


def _text(reply: Reply) -> str:
    return reply.decode() if isinstance(reply, bytes) else ""


def _names(reply: Reply) -> list[bytes]:
    return [key for key in reply if isinstance(key, bytes)] if isinstance(reply, list) else []


class RedisEngine:
    """Sends the commands of the engine protocol. It keeps a connection to each server until one fails."""

    def __init__(self) -> None:
        self._connections: dict[Server, Connection] = {}

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    async def state(self, server: Server) -> NodeState:
        nodes = parse_nodes(_text(await self._call(server, "CLUSTER", "NODES")))
        info = _text(await self._call(server, "INFO"))
        values = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        if values.get("loading") == "1":
            raise Unreachable(f"{server.pod} is loading its data")
        keys = await self._call(server, "DBSIZE")
        return replace(
            nodes,
            keys=keys if isinstance(keys, int) else 0,
            memory=int(values.get("used_memory", "0")),
            synced=values.get("role") == "master" or values.get("master_link_status") == "up",
            persisted=values.get("aof_last_write_status") == "ok" and values.get("rdb_last_bgsave_status") == "ok",
        )

    async def meet(self, server: Server, other: Server) -> None:
        await self._call(server, "CLUSTER", "MEET", other.host, PORT)

    async def add_slots(self, server: Server, slots: Collection[int]) -> None:
        await self._call(server, "CLUSTER", "ADDSLOTS", *sorted(slots))

    async def set_slots(
        self, server: Server, slots: Collection[int], state: Literal["migrating", "importing", "node"], node: str
    ) -> None:
        await self._call_all(server, [("CLUSTER", "SETSLOT", slot, state.upper(), node) for slot in slots])

    async def close_slots(self, server: Server, slots: Collection[int]) -> None:
        await self._call_all(server, [("CLUSTER", "SETSLOT", slot, "STABLE") for slot in slots])

    async def migrate(self, server: Server, slots: Collection[int], target: Server) -> None:
        pending = list(slots)
        options = ("REPLACE", *(("AUTH", target.password) if target.password else ()), "KEYS")
        while pending:
            found = await self._call_all(
                server, [("CLUSTER", "GETKEYSINSLOT", slot, _KEYS_AT_A_TIME) for slot in pending]
            )
            pending = [slot for slot, keys in zip(pending, found, strict=True) if keys]
            start = ("MIGRATE", target.host, PORT, "", 0, _MIGRATE_MILLISECONDS, *options)
            await self._call_all(server, [(*start, *_names(keys)) for keys in found if keys])

    async def slots_with_keys(self, server: Server, slots: Collection[int]) -> frozenset[int]:
        every = sorted(slots)
        counts = await self._call_all(server, [("CLUSTER", "COUNTKEYSINSLOT", slot) for slot in every])
        return frozenset(slot for slot, count in zip(every, counts, strict=True) if count)

    async def replicate(self, server: Server, primary: str) -> None:
        await self._call(server, "CLUSTER", "REPLICATE", primary)

    async def fail_over(self, server: Server) -> None:
        await self._call(server, "CLUSTER", "FAILOVER")

    async def forget(self, server: Server, node: str) -> None:
        try:
            await self._call(server, "CLUSTER", "FORGET", node)
        except Unreachable as error:
            if "Unknown node" not in str(error):
                raise

    async def reset(self, server: Server) -> None:
        await self._call(server, "CLUSTER", "RESET", "HARD")

    # Connections

    async def _call(self, server: Server, *words: str | int | bytes) -> Reply:
        return (await self._call_all(server, [words]))[0]

    async def _call_all(self, server: Server, commands: list[tuple[str | int | bytes, ...]]) -> list[Reply]:
        connection = self._connections.get(server)
        if connection is None:
            connection = self._connections[server] = Connection(server.host, PORT, server.password)
        try:
            return await connection.call_all(commands)
        except (ServerError, OSError) as error:
            self._connections.pop(server, None)
            await connection.close()
            raise Unreachable(f"{server.pod}: {error or type(error).__name__}") from error
