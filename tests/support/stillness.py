"""When nothing happens any more on a real server: its watches say so, and nobody asks again and again."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from konverge.client import Client
from konverge.telemetry import RequestRecord

__all__ = ["Stillness"]

READS = ("get", "list", "watch")
STILL = 2.0
STEPS = 4


class Stillness:
    """Since when nothing has happened in each namespace; what has no namespace is in "".

    Promises: a change of a followed kind, by whomever, ends the stillness of its namespace, and so does any write of a
    client that `disturbed_by` gave, before the write returns.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = tuple(kinds)
        self._since: defaultdict[str, float] = defaultdict(asyncio.get_running_loop().time)
        self._seen_still: dict[str, float] = {}

    @asynccontextmanager
    async def followed(self, client: Client) -> AsyncGenerator[Stillness]:
        """Watch the kinds in all namespaces while the block runs."""
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(self._follow(client, kind)) for kind in self._kinds]
            yield self
            for watch in watches:
                watch.cancel()

    def disturbed_by(self, client: Client, namespace: str) -> Client:
        """Give a client whose writes count as something that happens in that namespace."""

        def notice(record: RequestRecord) -> None:
            if record.verb not in READS:
                self._disturb(namespace)

        return client.observed(notice)

    async def wait(self, client: Client, *namespaces: str) -> None:
        """Wait until nothing has happened in any of these namespaces for two seconds.

        On a slow machine it takes longer: the server must have answered some requests meanwhile, and whoever still has
        something to do there is as slow as these.
        """
        while any(self._since[one] != self._seen_still.get(one) for one in namespaces):
            before = {one: self._since[one] for one in namespaces}
            for _ in range(STEPS):
                await asyncio.sleep(STILL / STEPS)
                await client.list(self._kinds[0], namespace=namespaces[0])
                if any(self._since[one] != moment for one, moment in before.items()):
                    break
            else:
                self._seen_still |= before

    async def _follow(self, client: Client, kind: str) -> None:
        while True:  # a stream that ends is opened again, and tells first what is there
            async for event in client.watch(kind):
                self._disturb(event.object.namespace or "")

    def _disturb(self, namespace: str) -> None:
        self._since[namespace] = asyncio.get_running_loop().time()
