"""A remote service: a protocol for the reconcilers, and a fake of it for tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from konverge import Client


@runtime_checkable
class Delivery(Protocol):
    async def deliver(self, name: str) -> bool: ...


@dataclass
class PostOffice:
    """A fake of the service."""

    letters: list[str] = field(default_factory=list[str])

    async def deliver(self, name: str) -> bool:
        if name not in self.letters:
            self.letters.append(name)
        return True

    @asynccontextmanager
    async def open(self, client: Client) -> AsyncGenerator[Delivery]:
        yield self
