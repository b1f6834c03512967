"""The limits and the statistics of a transport."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

__all__ = ["Limits", "TransportStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a transport. Times are in seconds.

    `connections` limits concurrent requests; further ones wait, within their timeout. Streams are not counted, so
    watches never delay a request. `body` limits the decompressed body of a response in bytes, but not that of a stream,
    which is read in parts: collections are large, 256 MiB are about 50,000 pods. `connect` is the timeout of one
    connection attempt to one address, with TLS. `idle` is how long an unused connection stays open; the default is
    below the 60 s of common load balancers. `peer_timeout` is how long a peer may acknowledge nothing before its
    connection is closed. `link_local` permits link-local addresses, where clouds serve the credentials of a machine.
    """

    connections: int = 100
    body: int = 256 << 20
    connect: float = 10.0
    idle: float = 30.0
    peer_timeout: float = 30.0
    link_local: bool = True


class TransportStats(Struct, frozen=True):
    """Counts of requests with a response, of requests without one, and of 401s that led to new credentials."""

    completed: int
    failed: int
    credential_retries: int
