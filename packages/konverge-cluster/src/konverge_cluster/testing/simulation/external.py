"""External services: a fake of the author's, whose methods are writes of the operator for the schedule."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

from konverge_cluster.testing.simulation.transports import ProcessTransport

__all__ = ["wrap_external"]

S = TypeVar("S")


def wrap_external(service: S, transport: ProcessTransport) -> S:
    """Return the service as one process sees it: its calls end with the process, fail, or lose their response."""
    return cast(S, _ExternalService(service, transport))


class _ExternalService:
    def __init__(self, service: Any, transport: ProcessTransport) -> None:
        self._service = service
        self._transport = transport

    # An instance of the service's class, for `ctx.shared(Billing)`.
    __class__ = property(lambda self: type(self._service))  # pyright: ignore[reportIncompatibleMethodOverride]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._service, name)
        if not inspect.iscoroutinefunction(value):
            return value

        async def call(*arguments: Any, **options: Any) -> Any:
            return await self._transport.call(lambda: value(*arguments, **options))

        return call
