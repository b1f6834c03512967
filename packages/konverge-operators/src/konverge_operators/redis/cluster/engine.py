"""What the operator asks of the servers: the seam between its decisions and the protocol of Redis clusters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

__all__ = ["Engine", "NodeState", "Peer", "Server", "Unreachable"]


class Unreachable(Exception):
    """A server cannot be reached, or refuses a command."""


class Server(NamedTuple):
    """Where a server is reached. Its data belongs to the pod's name, its address to the pod's life.

    It accepts one of the passwords; the first is the one that servers use among each other.
    """

    pod: str
    host: str
    passwords: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peer:
    """What a node knows of another one; `epoch` is that of its slots."""

    host: str
    primary: str = ""
    slots: frozenset[int] = frozenset()
    failed: bool = False
    epoch: int = 0


@dataclass(frozen=True)
class NodeState:
    """What a node reports about itself. `primary` is the id of the node that it replicates, "" for a primary.

    `primary_host` is the address at which it replicates, which may be an old one of its primary; "" if unknown.
    `offset` counts what it has of the writes of its shard, since its primary or it started.
    `migrating` and `importing` are its half-open slots with the other side; `peers` are the other nodes that it knows.
    `passwords` are the hashes of those that it accepts, `primary_password` of the one that it uses as a replica.
    """

    id: str
    epoch: int = 0
    offset: int = 0
    keys: int = 0
    memory: int = 0
    primary: str = ""
    primary_host: str = ""
    synced: bool = True
    persisted: bool = True
    slots: frozenset[int] = frozenset()
    migrating: Mapping[int, str] = field(default_factory=dict[int, str])
    importing: Mapping[int, str] = field(default_factory=dict[int, str])
    peers: Mapping[str, Peer] = field(default_factory=dict[str, Peer])
    passwords: frozenset[str] = frozenset()
    primary_password: str = ""

    def claims(self, id_: str) -> frozenset[int]:
        """Return the slots that another node has, as this one knows."""
        return self.peers[id_].slots if id_ in self.peers else frozenset()


@runtime_checkable
class Engine(Protocol):
    """The commands of a cluster. Each raises Unreachable, and may have had its effect then."""

    async def state(self, server: Server) -> NodeState:
        """Return what a node reports about itself."""
        ...

    async def meet(self, server: Server, other: Server) -> None:
        """Introduce a node to another one, also to one that it knows by an old address."""
        ...

    async def add_slots(self, server: Server, slots: Collection[int]) -> None:
        """Assign slots without an owner to a node."""
        ...

    async def set_slots(
        self, server: Server, slots: Collection[int], state: Literal["migrating", "importing", "node"], node: str
    ) -> None:
        """Mark slots as moving to or from a node, or record their owner."""
        ...

    async def close_slots(self, server: Server, slots: Collection[int]) -> None:
        """Remove the marks of slots that were moving."""
        ...

    async def migrate(self, server: Server, slots: Collection[int], target: Server) -> None:
        """Move all keys of slots to another node."""
        ...

    async def slots_with_keys(self, server: Server, slots: Collection[int]) -> frozenset[int]:
        """Return those of some slots that have keys on a node, whether or not it owns them."""
        ...

    async def replicate(self, server: Server, primary: str) -> None:
        """Make a node without slots a replica of a primary."""
        ...

    async def fail_over(self, server: Server, how: Literal["", "FORCE", "TAKEOVER"] = "") -> None:
        """Make a replica the primary of its shard, without loss.

        FORCE does not ask a lost primary, only the other ones for their votes; TAKEOVER asks nobody.
        """
        ...

    async def raise_epoch(self, server: Server) -> None:
        """Make the slots that a primary claims the latest claim."""
        ...

    async def forget(self, server: Server, node: str) -> None:
        """Remove a node from what another one knows."""
        ...

    async def reset(self, server: Server) -> None:
        """Make a node without slots an empty one that knows no others, with a new id."""
        ...

    async def set_passwords(self, server: Server, accepted: Collection[str], current: str) -> None:
        """Set the passwords that a node accepts, and the one that it uses as a replica. Connections stay open."""
        ...
