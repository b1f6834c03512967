"""The same servers twice, for scripts of cluster commands: in memory, and real ones as processes.

Both are driven by the engine protocol of the operator. What they report is compared by pod names: a server that starts
without its data has another id, and is called by its pod and the number of its life.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from redis.exceptions import AskError, ClusterDownError, MovedError, RedisError

from konverge_operators.redis.clients import call_all, new_client
from konverge_operators.redis.cluster.engine import Engine, NodeState, Server, Unreachable
from konverge_operators.redis.cluster.redis_engine import RedisEngine
from konverge_operators.redis.local_images import find_programs
from redis_bus import slot_of
from redis_engine import MemoryEngine

__all__ = ["Both", "both", "key_in"]

LIMIT = 20.0
_addresses = count(1)
_OPTIONS = {
    "cluster-enabled": "yes",
    "cluster-node-timeout": "1500",
    "cluster-require-full-coverage": "no",
    "cluster-migration-barrier": "100",
    "cluster-replica-no-failover": "yes",  # replicas are promoted by the script only
    "appendonly": "yes",
    "appendfsync": "no",
    "save": "",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",
}


class NodeView(NamedTuple):
    """What a server reports, by names: its primary, slots, marks, number of keys, and what it knows of others."""

    primary: str
    slots: frozenset[int]
    migrating: dict[int, str]
    importing: dict[int, str]
    keys: int
    synced: bool
    peers: dict[str, tuple[str, str, frozenset[int]]]


class Rig(Protocol):
    """Servers of one kind."""

    @property
    def engine(self) -> Engine: ...

    async def start(self, pod: str, host: str) -> None: ...

    async def stop(self, pod: str) -> None: ...

    async def ask(self, server: Server, *words: str) -> str:
        """Send a command of a client; return the value, "" for none, or the redirection with its address."""
        ...


class MemoryRig:
    """Servers in memory."""

    def __init__(self) -> None:
        self.engine = MemoryEngine(seed=0)

    async def start(self, pod: str, host: str) -> None:
        self.engine.start(pod, host)

    async def stop(self, pod: str) -> None:
        self.engine.stop(pod)

    async def ask(self, server: Server, *words: str) -> str:
        return self.engine.ask(server, *words)


class ProcessRig:
    """Processes of redis-server, each with a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.engine = RedisEngine()
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    async def start(self, pod: str, host: str) -> None:
        self._processes[pod] = self._spawn(self._directory / pod, host)
        async with asyncio.timeout(LIMIT):
            while not await self._replies(Server(pod, host)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def _spawn(self, home: Path, host: str) -> subprocess.Popen[bytes]:
        home.mkdir(exist_ok=True)
        options = {**_OPTIONS, "bind": host, "cluster-announce-ip": host, "dir": str(home)}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (home / "log").open("ab") as log:
            return subprocess.Popen([str(find_programs() / "redis-server"), *words], stdout=log, stderr=log)

    async def _replies(self, server: Server) -> bool:
        try:
            await self.engine.state(server)
        except Unreachable:
            return False
        return True

    async def stop(self, pod: str) -> None:
        process = self._processes.pop(pod)
        process.kill()
        process.wait()

    async def ask(self, server: Server, *words: str) -> str:
        """Send a command of a client, again while the server does not know yet that its cluster is complete."""
        async with asyncio.timeout(LIMIT):
            while (reply := await self._ask(server, words)) == "CLUSTERDOWN":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return reply

    async def _ask(self, server: Server, words: Sequence[str]) -> str:
        async with new_client(server.host, "") as client:
            before = [("ASKING",)] if words[0] == "ASKING" else []
            rest = words[1:] if before else words
            try:
                reply = (await call_all(client, [*before, rest]))[-1]
            except AskError as error:
                return f"{'MOVED' if isinstance(error, MovedError) else 'ASK'} {error.host}"
            except ClusterDownError:
                return "CLUSTERDOWN"
            except RedisError as error:
                return str(error).split(" ", maxsplit=1)[0]
        return reply.decode() if isinstance(reply, bytes) else ""

    async def close(self) -> None:
        for pod in list(self._processes):
            await self.stop(pod)
        await self.engine.close()


class Both:
    """Both rigs. Each command goes to both, and both must accept or refuse it; `agree` waits for the same views."""

    def __init__(self, directory: Path) -> None:
        self.real = ProcessRig(directory)
        self.rigs: tuple[Rig, ...] = (MemoryRig(), self.real)
        self._servers: dict[str, Server] = {}
        self._names: dict[str, str] = {}
        self._ids: list[dict[str, str]] = [{}, {}]

    async def start(self, *pods: str) -> None:
        """Start servers at new addresses, with the data of their pods."""
        for pod in pods:
            host = f"127.{64 + os.getpid() % 64}.{os.getpid() // 64 % 250}.{next(_addresses)}"
            self._servers[pod] = Server(pod, host)
            for rig in self.rigs:
                await rig.start(pod, host)
        for pod in pods:
            await self._learn_id(pod)

    async def stop(self, *pods: str) -> None:
        for pod in pods:
            del self._servers[pod]
            for rig in self.rigs:
                await rig.stop(pod)

    async def run(self, command: str, pod: str, *arguments: Any, target: str = "", node: str = "") -> bool:
        """Send a command of the engine to a server of both; return whether both accepted it.

        `target` is the pod of a further argument that is a server, `node` of one that is an id.
        """
        accepted = []
        for rig, ids in zip(self.rigs, self._ids, strict=True):
            more = [self._servers[target]] if target else [ids[node]] if node else []
            call: Callable[..., Awaitable[None]] = getattr(rig.engine, command)
            accepted.append(await _refusal(partial(call, self._servers[pod], *arguments, *more)))
        assert bool(accepted[0]) == bool(accepted[1]), f"{command} at {pod}: in memory and really {accepted}"
        if command == "reset" and not accepted[0]:
            await self._learn_id(pod)
        return not accepted[0]

    async def ask(self, pod: str, *words: str) -> str:
        """Send a command of a client to a server of both; return the reply, with a pod for an address."""
        replies = [await rig.ask(self._servers[pod], *words) for rig in self.rigs]
        assert replies[0] == replies[1], f"{words} at {pod}: in memory and really {replies}"
        return self._named(replies[0])

    async def agree(
        self, what: str = "", *, for_seconds: float = 0.0, links: bool = True, epochs: bool = False
    ) -> dict[str, NodeView]:
        """Wait until both report the same, and still do after some time; return it.

        Without `links` a replica may or may not have a connection to its primary. With `epochs` the real servers that
        run know the epochs of each other.
        """
        end, since = time.monotonic() + LIMIT, time.monotonic()
        while True:
            memory, real = [await self._views(number) for number in range(2)]
            now = time.monotonic()
            if not links:
                memory, real = [{pod: one._replace(synced=True) for pod, one in it.items()} for it in (memory, real)]
            if memory != real or (epochs and not await self._know_epochs()):
                since = now
            elif now - since >= for_seconds:
                return real
            assert now < end, f"{what}: {_difference(memory, real)}"
            await asyncio.sleep(0.2)

    async def _know_epochs(self) -> bool:
        states = [await self.real.engine.state(server) for server in self._servers.values()]
        latest = {state.id: state.epoch for state in states}
        known = [(id_, peer.epoch) for state in states for id_, peer in state.peers.items() if id_ in latest]
        return all(latest[id_] == epoch for id_, epoch in known)

    async def _learn_id(self, pod: str) -> None:
        for rig, ids in zip(self.rigs, self._ids, strict=True):
            id_ = (await rig.engine.state(self._servers[pod])).id
            ids[pod] = id_
            lives = len({name for known, name in self._names.items() if name.split("'")[0] == pod and known != id_})
            self._names.setdefault(id_, pod + "'" * (lives // 2))

    async def _views(self, number: int) -> dict[str, NodeView]:
        found = {}
        for pod, server in self._servers.items():
            try:
                found[pod] = self._view(await self.rigs[number].engine.state(server))
            except Unreachable as error:
                raise AssertionError(f"no reply from {pod}: {error}") from None
        return found

    def _view(self, state: NodeState) -> NodeView:
        names = self._names
        peers = {
            names.get(id_, id_): (self._named(peer.host), names.get(peer.primary, peer.primary), peer.slots)
            for id_, peer in state.peers.items()
        }
        migrating, importing = (
            {slot: names[id_] for slot, id_ in marks.items()} for marks in (state.migrating, state.importing)
        )
        primary = names.get(state.primary, state.primary)
        return NodeView(primary, state.slots, migrating, importing, state.keys, state.synced, peers)

    def _named(self, text: str) -> str:
        """Return a text with pods instead of the addresses that they have now."""
        pods = {server.host: pod for pod, server in self._servers.items()}
        return re.sub(r"127[.\d]+", lambda found: pods.get(found[0], "an old address"), text)


async def _refusal(call: Callable[[], Awaitable[None]]) -> str:
    """Call an engine, again while a real server does not know yet that its cluster is complete; return the refusal."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            await call()
        except Unreachable as error:
            if "CLUSTERDOWN" not in str(error) or time.monotonic() > end:
                return f"refused ({error})"
        else:
            return ""
        await asyncio.sleep(0.05)


@asynccontextmanager
async def both(directory: Path) -> AsyncGenerator[Both]:
    """Run a pair of rigs."""
    found = Both(directory)
    try:
        yield found
    finally:
        await found.real.close()


def key_in(slot: int) -> str:
    """Return a key of a slot."""
    return next(key for number in range(10**6) if slot_of(key := f"key-{number}") == slot)


def _difference(memory: dict[str, NodeView], real: dict[str, NodeView]) -> str:
    lines = [
        f"{pod}.{name}: in memory {_short(one)}, really {_short(two)}"
        for pod in memory
        for name, one, two in zip(NodeView._fields, memory[pod], real[pod], strict=True)
        if one != two
    ]
    return "\n".join(["in memory and real servers differ:", *lines])


def _short(value: object) -> str:
    return re.sub(r"frozenset\(\{([^}]{0,24})[^}]*\}\)", r"{\1...}", str(value))
