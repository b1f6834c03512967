"""An embedded cluster for tests: it runs whole operators, and waits until nothing changes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self

from konverge.client import Client, ClientOptions, InProcessTransport
from konverge.controller import Controller
from konverge.errors import WaitTimeout
from konverge.manager import Manager, Operator
from konverge.objects import Unstructured, wall_clock
from konverge.testing.virtual_time import START, VirtualTimeLoop
from konverge_cluster.embedded_cluster import EmbeddedCluster
from konverge_cluster.operator_accounts import AccountTransport, account_user, create_account
from konverge_cluster.testing.operators import (
    MissingPermission,
    install_operator,
    missing_declarations,
    whole_operator,
)

__all__ = ["TestCluster", "virtual_clock", "wall_clock"]


def virtual_clock() -> float:
    """Return the wall clock time on virtual time; the start time while no event loop runs."""
    try:
        return START + asyncio.get_running_loop().time()
    except RuntimeError:
        return START


@contextmanager
def _seeded(seed: int | None) -> Generator[None]:
    """Seed the random numbers of the runtime while the block runs: its delays, and the names of its events."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def _reported(missing: list[str]) -> Generator[None]:
    """Fail a test whose operator lacks rights; a test that fails for another reason gets them as notes."""
    try:
        yield
    except Exception as error:
        for line in missing:
            error.add_note(line)
        raise
    if missing:
        raise MissingPermission("\n".join(missing))


class TestCluster(EmbeddedCluster):
    """An embedded cluster with methods for tests.

    Promises: on virtual time `settle` is exact, and nothing sleeps in real time; a run with the same `seed` repeats,
    since the module `random` is seeded with it while the cluster runs. `listen` opens a socket, for tests on real time.
    """

    __test__ = False  # pytest would collect it because of its name
    enter_for_test = True

    def __init__(self, **options: Any) -> None:
        options = {"seed": 1, "heartbeat": 0.0, **options}
        self._seed = options["seed"]
        self._seeding = ExitStack()
        with _seeded(self._seed):
            super().__init__(**options)

    async def __aenter__(self) -> Self:
        self._seeding.enter_context(_seeded(self._seed))
        try:
            return await super().__aenter__()
        except BaseException:
            self._seeding.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._seeding:
            await super().__aexit__(kind, error, trace)

    @asynccontextmanager
    async def operator(
        self, *parts: Operator | Controller[Any], name: str = "operator", **options: Any
    ) -> AsyncGenerator[Manager]:
        """Run an operator on this cluster inside an `async with` block; `options` are those of `Manager`.

        An `Operator` is run whole: its CRDs and webhooks, with conversion, are installed first, and it runs under its
        own service account, with the rights that `konverge manifests` generates. Controllers run under `name` and may
        do everything.

        Raises: TypeError for an `Operator` together with anything else; after the block AssertionError when a
        controller applied a kind that it does not declare, and MissingPermission when a request of an `Operator` was
        denied.
        """
        operator = whole_operator(parts, name)
        missing: list[str] = []
        client = self.client()
        if any(part is operator for part in parts):
            await install_operator(self.server, client, operator)
            await create_account(client, operator)
            client = self._operator_client(operator, missing.append)
        manager = operator.manager(client, **options)
        with _reported(missing):
            async with manager.running() as running:
                yield manager
                if found := missing_declarations(running):
                    raise AssertionError("; ".join(found))

    def _operator_client(self, operator: Operator, on_missing: Callable[[str], None]) -> Client:
        """Return the client that an operator runs with: as its service account. Missing rules are reported."""
        transport = InProcessTransport(partial(self.server.handle, user=account_user(operator)))
        return Client(AccountTransport(transport, operator, on_missing), options=ClientOptions(namespace="default"))

    async def install(self, *crds: Unstructured) -> Client:
        """Create CRDs, which the embedded server serves at once; return a client."""
        client = self.client()
        for crd in crds:
            await client.create(crd)
        return client

    async def settle(self, *, quiet: float = 15.0, limit: float = 3600.0) -> None:
        """Wait until nothing has been written for `quiet` seconds.

        Raises: WaitTimeout when writes continue for `limit` seconds.
        """
        loop = asyncio.get_running_loop()
        storage = self.server.cluster.storage
        end, since, last = loop.time() + limit, loop.time(), -1
        while loop.time() - since < quiet:
            if isinstance(loop, VirtualTimeLoop):
                await loop.settle()
            if storage.next_revision != last:
                last, since = storage.next_revision, loop.time()
            if loop.time() > end:
                raise WaitTimeout(f"cluster not settled after {limit:g} s: objects are still written")
            await asyncio.sleep(0.5)
