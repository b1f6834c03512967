"""Runnables and shared objects: an operator's own async functions, and what they and its reconcilers work with.

async def poll(ctx: RunnableContext) -> None:
    session = ctx.shared(ClientSession)
    while True:
        for key in await changed_orders(session):
            ctx.channel("orders").put(key)
        await asyncio.sleep(30)

@asynccontextmanager
async def http_session(client: Client) -> AsyncGenerator[ClientSession]:
    async with ClientSession() as session:  # at start-up
        yield session  # closed at shutdown, after the last reconcile

operator = Operator(name="orders", controllers=(orders,), runnables=(poll,), shared=(http_session,))
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, overload

from konverge.cache import Cache
from konverge.client import Client
from konverge.reconcile.shared import find_shared
from konverge.telemetry import ContextLogger, RequestRecord
from konverge.triggers import Channel

__all__ = ["InterruptedWrites", "OpenShared", "Runnable", "RunnableContext", "RunnableFunction"]

T = TypeVar("T")

_READS = frozenset({"get", "list", "watch"})


class RunnableContext:
    """What a runnable works with.

    Promises: `client` has the manager's name as its field manager, and for a runnable that runs only on the leader it
    sends no write after the lease has expired. Reads from `cache` include the writes of `client` that have returned.
    """

    def __init__(
        self, name: str, client: Client, cache: Cache, *, channels: Mapping[str, Channel], shared: tuple[object, ...]
    ) -> None:
        self.client = client
        self.cache = cache
        self.log = ContextLogger(runnable=name)
        self._channels = channels
        self._shared = shared

    def channel(self, name: str) -> Channel:
        """Return the channel of a controller, by its name.

        Raises: ValueError when no controller of this manager has a channel of that name.
        """
        channel = self._channels.get(name)
        if channel is None:
            names = ", ".join(sorted(self._channels)) or "none"
            raise ValueError(
                f"no controller has a channel {name!r}: add .channel(Channel({name!r})) (there are: {names})"
            )
        return channel

    @overload
    def shared(self, type_: type[T]) -> T: ...
    @overload
    def shared(self, type_: Callable[..., T]) -> T: ...
    def shared(self, type_: Any) -> Any:
        """Return the shared object of a type, or of a protocol that is `runtime_checkable`.

        Raises: ValueError when there is none.
        """
        return find_shared(self._shared, type_)


RunnableFunction: TypeAlias = Callable[[RunnableContext], Awaitable[None]]

OpenShared: TypeAlias = Callable[[Client], AbstractAsyncContextManager[object]]
"""Returns a context manager that is entered at start-up, on every replica, and exited at shutdown.

Reconcilers and runnables get what it yields with `ctx.shared(type)`; one that yields None is a start-up and shutdown
hook. The client is that of the manager; it may write whether this process leads or not.
"""


@dataclass(frozen=True)
class Runnable:
    """An async function that runs as long as the manager, or until it returns.

    With `leader_only` it runs only on the leader. It starts when all caches are synced, those of kinds that the server
    does not serve aside. It is cancelled at stop, before the last reconciles, and when the lease is lost. An error of
    it stops the manager, which raises the error.
    """

    function: RunnableFunction
    leader_only: bool = True

    def __post_init__(self) -> None:
        function: Any = self.function
        if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(type(function).__call__):
            raise TypeError(f"a runnable is an async function of its context, got {self.function!r:.80}")

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)


class InterruptedWrites:
    """Observes the requests of runnables: a write that was cancelled may still be in flight."""

    def __init__(self) -> None:
        self.any = False

    def __call__(self, record: RequestRecord) -> None:
        if record.cancelled and record.verb not in _READS:
            self.any = True
