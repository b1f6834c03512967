"""Certificates and callers for tests of the webhook server."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from konverge.webhooks import CertificatePair
from konverge.webhooks.authorities import KeyPair, make_authority, sign_serving

LOOPBACK = ("127.0.0.1", "localhost")


def authority() -> KeyPair:
    """A new authority, valid from now."""
    return make_authority("test", now=datetime.now(UTC), lifetime=timedelta(days=7))


def pair_of(signer: KeyPair, hosts: Iterable[str] = LOOPBACK) -> CertificatePair:
    """A new serving certificate of an authority."""
    made = sign_serving(signer, hosts, now=datetime.now(UTC), lifetime=timedelta(days=1))
    return CertificatePair(made.certificate, made.key)


def trusting(*signers: KeyPair) -> ssl.SSLContext:
    """A client's context that trusts these authorities and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    for signer in signers:
        context.load_verify_locations(cadata=signer.certificate.decode())
    return context
