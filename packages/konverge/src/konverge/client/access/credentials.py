"""Credentials for an API server.

Tokens and certificates rotate while a process runs, so a transport stores none: it gets an `Identity` before each
request, and once more after a 401.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from konverge.client.access.files import RotatingValue
from konverge.client.access.locations import Location
from konverge.client.access.tls import CertificatePair
from konverge.errors import ConfigError

__all__ = ["ANONYMOUS", "Credentials", "Identity", "StaticCredentials", "StoredCredentials", "basic", "bearer"]

T = TypeVar("T")

_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of one request: its Authorization header and the client certificate of its connection.

    The repr shows neither.
    """

    authorization: str | None = field(default=None, repr=False)
    certificate: CertificatePair | None = field(default=None, repr=False)


class Credentials(Protocol):
    """A source of identities. It may be used from several event loops.

    Both methods raise ConfigError when the source is unusable (a plugin fails, a token file is missing). A source whose
    identity needs no waiting may have a method `current` that returns it, or None when it has to be awaited.
    """

    async def identity(self) -> Identity:
        """Return the identity for the next request: the same object until something changes."""
        ...

    async def renew(self, rejected: Identity) -> Identity | None:
        """Return another identity than the one that the server rejected, None if there is no other."""
        ...


class StaticCredentials:
    """An identity that never changes."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    @classmethod
    def of_token(cls, token: str) -> StaticCredentials:
        """Return the credentials of a bearer token."""
        return cls(Identity(authorization=bearer(token, Location("token"))))

    def current(self) -> Identity:
        """Return the identity."""
        return self._identity

    async def identity(self) -> Identity:
        """Return the identity."""
        return self._identity

    async def renew(self, rejected: Identity) -> Identity | None:
        """Return None: there is no other identity."""
        return self._identity if self._identity != rejected else None


ANONYMOUS = StaticCredentials(Identity())
"""No credentials: the server sees system:anonymous."""


class StoredCredentials:
    """An identity from files: a token, a certificate with its key, or both. All may rotate.

    `authorization` is a fixed header value; with a token file too, it is used while that file cannot be read.
    """

    def __init__(
        self,
        *,
        authorization: str | None = None,
        token: RotatingValue[str] | None = None,
        certificate: RotatingValue[CertificatePair] | None = None,
    ) -> None:
        self._authorization = authorization
        self._token = token
        self._certificate = certificate
        self._identity = Identity()

    def __repr__(self) -> str:
        return f"StoredCredentials(token={self._token!r}, certificate={self._certificate!r})"

    def current(self, *, reload: bool = False) -> Identity:
        """Return the identity in the files, which were read some seconds ago at most; with `reload` read them now."""
        certificate = _value(self._certificate, reload) if self._certificate is not None else None
        authorization = self._header(reload)
        current = self._identity
        if current.authorization != authorization or current.certificate is not certificate:
            self._identity = current = Identity(authorization, certificate)
        return current

    async def identity(self) -> Identity:
        """Return the identity in the files."""
        return self.current()

    async def renew(self, rejected: Identity) -> Identity | None:
        """Read the files now: the rejected token may just have been replaced."""
        renewed = self.current(reload=True)
        return renewed if renewed != rejected else None

    def _header(self, reload: bool) -> str | None:
        if self._token is None:
            return self._authorization
        try:
            return _value(self._token, reload)
        except ConfigError:
            if self._authorization is None:
                raise
            return self._authorization


def _value(source: RotatingValue[T], reload: bool) -> T:
    return source.renew() if reload else source.get()


def bearer(token: str | bytes, location: Location) -> str:
    """Return the Authorization header for a token; raise ConfigError if it has characters that a header cannot have."""
    text = token if isinstance(token, str) else token.strip().decode("latin-1")
    if not _HEADER_SAFE.fullmatch(text):
        raise location.error("the token has characters that a header cannot contain")
    return f"Bearer {text}"


def basic(username: str, password: str) -> str:
    """Return the Authorization header for a user name and password."""
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
