"""Loopback addresses: each runtime has a /16 of 127.0.0.0/8 for itself, half of it for pods and half for Services."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final

__all__ = ["LoopbackNetwork", "claim_network"]

_FIRST: Final = 64
_BLOCKS: Final = 128


@dataclass(frozen=True)
class LoopbackNetwork:
    """The addresses of one runtime: 127.`block`.0.0/16."""

    block: int

    def pods(self, node: int) -> IPv4Network:
        """Return the addresses of the pods of a node, by the index of the node.

        Raises: ValueError when there are too many nodes.
        """
        if not 0 <= node < 128:
            raise ValueError(f"process nodes have addresses for 128 nodes, not for node {node + 1}")
        return IPv4Network(f"127.{self.block}.{node}.0/24")

    def host(self, node: int) -> str:
        """Return the address of a node, by its index: the first one, which no pod gets.

        Raises: ValueError when there are too many nodes.
        """
        return str(self.pods(node)[1])

    @property
    def services(self) -> IPv4Network:
        """The addresses for Services."""
        return IPv4Network(f"127.{self.block}.128.0/17")


@contextmanager
def claim_network() -> Iterator[LoopbackNetwork]:
    """Claim a block of addresses that no other runtime on this machine uses.

    An abstract socket is the claim: it is unique on the machine, and gone with the process.

    Raises: OSError when all blocks are in use.
    """
    for block in range(_FIRST, _FIRST + _BLOCKS):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0konverge-processes-127.{block}")
        except OSError:
            claim.close()
            continue
        with claim:
            yield LoopbackNetwork(block)
        return
    raise OSError(f"all {_BLOCKS} blocks of loopback addresses are in use by other runtimes")
