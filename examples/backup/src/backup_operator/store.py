"""The object store: PUT and DELETE of objects, which may be repeated."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Protocol

import aiohttp

TIMEOUT: Final = aiohttp.ClientTimeout(total=10)


class StoreError(Exception):
    """The store did not confirm a request, which may have been done or not."""


class Http(Protocol):
    """What the store needs of HTTP: the seam where tests have a fake service."""

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request and return the status code.

        Raises: aiohttp.ClientError, OSError (with ConnectionError and TimeoutError) when there is no response.
        """
        ...


class Session:
    """An `Http` on a session of aiohttp."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        async with self._session.request(method, path, data=body) as response:
            return response.status


class Store:
    """The client of the object store that reconcilers share."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def put(self, path: str, content: bytes) -> None:
        """Store the content; what was there before is replaced.

        Raises: StoreError when the store does not confirm it.
        """
        await self._send("PUT", path, content, expected=(200, 201, 204))

    async def delete(self, path: str) -> None:
        """Delete an object. One that does not exist is deleted already.

        Raises: StoreError when the store does not confirm it.
        """
        await self._send("DELETE", path, b"", expected=(200, 204, 404, 410))

    async def _send(self, method: str, path: str, body: bytes, expected: tuple[int, ...]) -> None:
        try:
            status = await self._http.request(method, path, body)
        except (aiohttp.ClientError, OSError) as error:
            raise StoreError(f"{method} {path}: {error or type(error).__name__}") from error
        if status not in expected:
            raise StoreError(f"{method} {path}: HTTP status {status}")


@asynccontextmanager
async def open_store(url: str) -> AsyncGenerator[Store]:
    """Open the store at a URL, with one HTTP session for all reconciles."""
    async with aiohttp.ClientSession(url, timeout=TIMEOUT) as session:
        yield Store(Session(session))
