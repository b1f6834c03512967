"""Certificates and callers for tests of the webhook server."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from konverge.webhooks import CertificatePair
from konverge.webhooks.authorities import Certified, issue, make_authority

LOOPBACK = ("127.0.0.1", "localhost")


def authority() -> Certified:
    """A new authority, valid from now."""
    return make_authority("test", now=datetime.now(UTC), lifetime=timedelta(days=7))


def pair_of(signer: Certified, hosts: Iterable[str] = LOOPBACK) -> CertificatePair:
    """A new serving certificate of an authority."""
    made = issue(signer, hosts, now=datetime.now(UTC), lifetime=timedelta(days=1))
    return CertificatePair(made.certificate, made.key)


def trusting(*signers: Certified) -> ssl.SSLContext:
    """A client's context that trusts these authorities and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    for signer in signers:
        context.load_verify_locations(cadata=signer.certificate.decode())
    return context
