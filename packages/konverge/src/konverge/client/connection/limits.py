"""What a transport allows itself, and what it has done."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits", "TransportStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of what a transport allows itself. Times are in seconds.

    `connections` bounds ordinary requests; the rest wait their turn, within their timeout. Streams are not counted, so
    that watches never keep a request from being sent. `body` bounds the unpacked body of an ordinary answer: whole
    collections are large, 256 MiB are about 50,000 pods. `connect` is for one address: reaching it, and TLS. `idle` is
    below the 60 s after which common load balancers close a connection. `dead_peer` is when a peer that acknowledges
    nothing counts as gone.
    """

    connections: int = 100
    body: int = 256 << 20
    connect: float = 10.0
    idle: float = 30.0
    dead_peer: float = 30.0


@dataclass(frozen=True, slots=True)
class TransportStats:
    """What a transport has done: requests that got an answer, that got none, and 401s that led to new credentials."""

    answered: int
    failed: int
    renewed: int
