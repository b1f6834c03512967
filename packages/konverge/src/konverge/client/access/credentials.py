"""Who we are to an API server, now.

Tokens and certificates change while a process runs, so a transport holds none: it asks for an `Identity` before each
request, and when the server says 401 it asks for a better one, once.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from konverge.client.access.files import Rotating
from konverge.client.access.places import Place
from konverge.client.access.tls import CertificatePair
from konverge.errors import ConfigError

__all__ = ["ANONYMOUS", "Credentials", "Identity", "StaticCredentials", "StoredCredentials", "basic", "bearer"]

T = TypeVar("T")

_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """How one request identifies itself: the value of its Authorization header, the certificate of its connection.

    Nothing of either is shown.
    """

    authorization: str | None = field(default=None, repr=False)
    certificate: CertificatePair | None = field(default=None, repr=False)


class Credentials(Protocol):
    """A source of identities. It may be asked from several event loops.

    Both methods raise ConfigError when the source is of no use (a plugin that fails, a token file that is gone).
    """

    async def identity(self) -> Identity:
        """Return the identity for the next request; it is the same object until something changes."""
        ...

    async def renew(self, rejected: Identity) -> Identity | None:
        """Return another identity than the one that the server did not accept, None when there is no other."""
        ...


class StaticCredentials:
    """An identity that never changes."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    @classmethod
    def of_token(cls, token: str) -> StaticCredentials:
        """Return the credentials of a bearer token."""
        return cls(Identity(authorization=bearer(token, Place("token"))))

    async def identity(self) -> Identity:
        """Return the identity."""
        return self._identity

    async def renew(self, rejected: Identity) -> Identity | None:
        """There is no other."""
        return self._identity if self._identity != rejected else None


ANONYMOUS = StaticCredentials(Identity())
"""No credentials: the server sees system:anonymous."""


class StoredCredentials:
    """An identity kept in files, or partly so: a token, a certificate with its key, or both. All may rotate.

    `authorization` is a fixed header value; when a token file is given too, it stands in until the file can be read.
    """

    def __init__(
        self,
        *,
        authorization: str | None = None,
        token: Rotating[str] | None = None,
        certificate: Rotating[CertificatePair] | None = None,
    ) -> None:
        self._authorization = authorization
        self._token = token
        self._certificate = certificate
        self._identity = Identity()

    def __repr__(self) -> str:
        return f"StoredCredentials(token={self._token!r}, certificate={self._certificate!r})"

    def current(self, *, look_now: bool = False) -> Identity:
        """Return the identity as the files have it, seen some seconds ago at the latest."""
        certificate = _value(self._certificate, look_now) if self._certificate is not None else None
        authorization = self._header(look_now)
        held = self._identity
        if held.authorization != authorization or held.certificate is not certificate:
            self._identity = held = Identity(authorization, certificate)
        return held

    async def identity(self) -> Identity:
        """Return the identity as the files have it."""
        return self.current()

    async def renew(self, rejected: Identity) -> Identity | None:
        """Look at the files at once: the rejected token may have been replaced a moment ago."""
        renewed = self.current(look_now=True)
        return renewed if renewed != rejected else None

    def _header(self, look_now: bool) -> str | None:
        if self._token is None:
            return self._authorization
        try:
            return _value(self._token, look_now)
        except ConfigError:
            if self._authorization is None:
                raise
            return self._authorization


def _value(source: Rotating[T], look_now: bool) -> T:
    return source.renew() if look_now else source.get()


def bearer(token: str | bytes, place: Place) -> str:
    """Return the Authorization header for a token, which must be able to stand in a header."""
    text = token if isinstance(token, str) else token.strip().decode("latin-1")
    if not _HEADER_SAFE.fullmatch(text):
        raise place.error("the token has characters that cannot stand in a header")
    return f"Bearer {text}"


def basic(username: str, password: str) -> str:
    """Return the Authorization header for a user name and password."""
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
