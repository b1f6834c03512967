"""Detection of quiet namespaces on a real server, by watches instead of polling."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from konverge.client import Client
from konverge.telemetry import RequestRecord

__all__ = ["QuietNamespaces"]

READS = ("get", "list", "watch")
QUIET = 2.0
CHECKS = 4


class QuietNamespaces:
    """The time of the last activity in each namespace; cluster-scoped objects count for "".

    Promises: a change of a watched kind, by any client, is activity in its namespace, and so is any write of a client
    that `observed` returned, before the write returns.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = tuple(kinds)
        self._since: defaultdict[str, float] = defaultdict(asyncio.get_running_loop().time)
        self._quiet_since: dict[str, float] = {}

    @asynccontextmanager
    async def watched(self, client: Client) -> AsyncGenerator[QuietNamespaces]:
        """Watch the kinds in all namespaces while the block runs."""
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(self._watch(client, kind)) for kind in self._kinds]
            yield self
            for watch in watches:
                watch.cancel()

    def observed(self, client: Client, namespace: str) -> Client:
        """Return a client whose writes count as activity in that namespace."""

        def observe(record: RequestRecord) -> None:
            if record.verb not in READS:
                self._record_activity(namespace)

        return client.with_observers(observe)

    async def wait(self, client: Client, *namespaces: str) -> None:
        """Wait until there was no activity in any of these namespaces for two seconds.

        On a slow machine it takes longer: the server must also have answered some requests, since controllers that are
        still active there are as slow as these.
        """
        while any(self._since[one] != self._quiet_since.get(one) for one in namespaces):
            before = {one: self._since[one] for one in namespaces}
            for _ in range(CHECKS):
                await asyncio.sleep(QUIET / CHECKS)
                await client.list(self._kinds[0], namespace=namespaces[0])
                if any(self._since[one] != since for one, since in before.items()):
                    break
            else:
                self._quiet_since |= before

    async def _watch(self, client: Client, kind: str) -> None:
        while True:  # a stream that ends is opened again, and begins with the existing objects
            async for event in client.watch(kind):
                self._record_activity(event.object.namespace or "")

    def _record_activity(self, namespace: str) -> None:
        self._since[namespace] = asyncio.get_running_loop().time()
