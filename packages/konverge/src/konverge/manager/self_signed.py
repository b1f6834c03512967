"""A serving certificate that nobody has to provide: made at the start, kept in memory, renewed before it expires.

It encrypts, and proves nothing about the server: clients must skip verification, as Prometheus does for operators that
kubebuilder creates. `TlsFiles` serves a certificate that clients can verify.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from konverge.client.access.tls import CertificatePair

__all__ = ["SelfSignedCertificate"]

_LIFETIME: Final = timedelta(days=365)
_RENEW_BEFORE: Final = timedelta(days=30)


class SelfSignedCertificate:
    """A certificate for `host`, signed by an authority whose key is dropped at once.

    Promises: `refresh`, called for each connection, replaces it for new connections a month before it expires. The key
    is never written to a file that outlives the call.
    """

    def __init__(self, host: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._host = host
        self._clock = clock

    def context(self) -> ssl.SSLContext:
        """Make the certificate and return the TLS context."""
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._renew()
        return self._context

    def refresh(self) -> None:
        """Make a new certificate if the current one is about to expire."""
        if self._clock() > self._expires - _RENEW_BEFORE:
            self._renew()

    def _renew(self) -> None:
        # Imported here, so that only processes that serve HTTPS load the cryptography library.
        from konverge.certificates import Subject, make_authority, sign_certificate

        now = self._clock()
        self._expires = now + _LIFETIME
        authority = make_authority(f"{self._host}-ca", now=now, until=self._expires)
        leaf = sign_certificate(authority, Subject(self._host, hosts=(self._host,)), now=now, until=self._expires)
        CertificatePair(leaf.certificate_pem, leaf.key_pem).load_into(self._context)
