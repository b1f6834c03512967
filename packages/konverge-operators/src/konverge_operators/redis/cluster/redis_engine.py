"""The engine on real servers: Redis 6.2 and later, Valkey."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError

from konverge_operators.redis.clients import Reply, Word, call_all, new_client
from konverge_operators.redis.cluster.engine import NodeState, Peer, Server, Unreachable
from konverge_operators.redis.servers import PORT, digest

__all__ = ["RedisEngine", "parse_nodes"]

_KEYS_AT_A_TIME = 100
_MIGRATE_MILLISECONDS = 5000
_QUESTIONS = (
    ("CLUSTER", "NODES"),
    ("INFO",),
    ("DBSIZE",),
    ("ACL", "GETUSER", "default"),
    ("CONFIG", "GET", "masterauth"),
)


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
            host, failed = address.rpartition(":")[0], "fail" in words
            peers[id_] = Peer(host, primary, _slots(slots), failed=failed, epoch=int(epoch))
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


def _pairs(reply: Reply) -> dict[str, Reply]:
    """Return a reply of names and values in turns as a mapping."""
    every = reply if isinstance(reply, list) else []
    return {_text(name): value for name, value in zip(every[::2], every[1::2], strict=False)}


def _passwords(reply: Reply) -> frozenset[str]:
    """Return the hashes of the passwords in the reply of ACL GETUSER."""
    return frozenset(name.decode() for name in _names(_pairs(reply).get("passwords")))


def _names(reply: Reply) -> list[bytes]:
    return [key for key in reply if isinstance(key, bytes)] if isinstance(reply, list) else []


class RedisEngine:
    """Sends the commands of the engine protocol. It keeps a client of each pod until a command fails."""

    def __init__(self) -> None:
        self._clients: dict[str, tuple[str, Redis]] = {}  # with the address of each

    async def close(self) -> None:
        """Close all connections."""
        for _, client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def state(self, server: Server) -> NodeState:
        nodes, info, keys, user, auth = await self._call_all(server, _QUESTIONS)
        values = dict(line.split(":", 1) for line in _text(info).splitlines() if ":" in line)
        if values.get("loading") == "1":
            raise Unreachable(f"{server.pod} is loading its data")
        return replace(
            parse_nodes(_text(nodes)),
            passwords=_passwords(user),
            primary_password=digest(_text(_pairs(auth).get("masterauth"))),
            keys=keys if isinstance(keys, int) else 0,
            memory=int(values.get("used_memory", "0")),
            offset=int(values.get("master_repl_offset", "0")),
            primary_host=values.get("master_host", "").strip(),
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
        options = ("REPLACE", *(("AUTH", target.passwords[0]) if target.passwords else ()), "KEYS")
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

    async def fail_over(self, server: Server, how: Literal["", "FORCE", "TAKEOVER"] = "") -> None:
        await self._call(server, "CLUSTER", "FAILOVER", *([how] if how else []))

    async def raise_epoch(self, server: Server) -> None:
        await self._call(server, "CLUSTER", "BUMPEPOCH")

    async def forget(self, server: Server, node: str) -> None:
        try:
            await self._call(server, "CLUSTER", "FORGET", node)
        except Unreachable as error:
            if "Unknown node" not in str(error):
                raise

    async def reset(self, server: Server) -> None:
        await self._call(server, "CLUSTER", "RESET", "HARD")

    async def set_passwords(self, server: Server, accepted: Collection[str], current: str) -> None:
        hashes = [f"#{digest(password)}" for password in accepted]
        set_user = ("ACL", "SETUSER", "default", "resetpass", *hashes)
        await self._call_all(server, [set_user, ("CONFIG", "SET", "masterauth", current)])

    # Connections

    async def _call(self, server: Server, *words: Word) -> Reply:
        return (await self._call_all(server, [words]))[0]

    async def _call_all(self, server: Server, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        """Send commands to a server, by the first of its passwords that it accepts."""
        error = ""
        for password in server.passwords or ("",):
            client = await self._take(server) or new_client(server.host, password)
            try:
                replies = await call_all(client, commands)
            except (RedisError, OSError) as failure:
                await client.aclose()
                error = str(failure) or type(failure).__name__
                if not isinstance(failure, AuthenticationError):
                    break
            except BaseException:
                await client.aclose()
                raise
            else:
                await self._keep(server, client)
                return replies
        raise Unreachable(f"{server.pod}: {error}")

    async def _take(self, server: Server) -> Redis | None:
        """Return the client that is kept for a pod, and keep it no longer; one of an old address is closed."""
        host, client = self._clients.pop(server.pod, ("", None))
        if client is not None and host != server.host:
            await client.aclose()
            return None
        return client

    async def _keep(self, server: Server, client: Redis) -> None:
        _, other = self._clients.pop(server.pod, ("", None))  # of a command that was sent at the same time
        self._clients[server.pod] = (server.host, client)
        if other is not None:
            await other.aclose()
