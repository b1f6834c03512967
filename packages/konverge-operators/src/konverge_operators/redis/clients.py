"""Clients of one server, by redis-py. Nothing is retried or parsed behind our back: see designs/0020-redis-py.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from konverge_operators.redis.servers import PORT

__all__ = ["Reply", "Word", "call_all", "new_client"]

Word: TypeAlias = str | int | bytes
Reply: TypeAlias = bytes | int | list["Reply"] | None


def new_client(host: str, password: str, *, timeout: float = 5.0) -> Redis:
    """Return a client of one server, which connects with its first command and replies as the server does."""
    client = Redis(
        host=host,
        port=PORT,
        password=password or None,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    client.response_callbacks.clear()
    return client


async def call_all(client: Redis, commands: Sequence[Sequence[Word]]) -> list[Reply]:
    """Send commands at once, on one connection, and return the replies.

    Raises: RedisError when the server does not reply, or refuses a command; the others still have their effect.
    """
    pipeline: Any = client.pipeline(transaction=False)
    for words in commands:
        pipeline.execute_command(*words)
    replies: list[object] = await pipeline.execute(raise_on_error=False)  # else its message has the words: passwords
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return cast("list[Reply]", replies)
