"""Certificates of webhooks: an authority that only they trust, and what it issues. No I/O, no clock of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from konverge import certificates
from konverge.certificates import LEEWAY, Identity, Subject

__all__ = ["LEEWAY", "Certified", "certificates_in", "issue", "make_authority", "read_certified", "service_hosts"]


@dataclass(frozen=True)
class Certified:
    """A certificate with its key, as PEM, and what they say."""

    certificate: bytes
    key: bytes = field(repr=False)
    made: datetime
    expires: datetime
    hosts: frozenset[str] = frozenset()

    def issued(self, other: Certified) -> bool:
        """Tell whether `other` was signed by this authority."""
        try:
            _load(other.certificate).verify_directly_issued_by(_load(self.certificate))
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True


def service_hosts(name: str, namespace: str) -> tuple[str, ...]:
    """Give the names under which a Service is called; API servers use the one that ends in `.svc`."""
    short = f"{name}.{namespace}.svc"
    return (short, f"{short}.cluster.local")


def make_authority(name: str, *, now: datetime, lifetime: timedelta) -> Certified:
    """Make an authority that signs itself."""
    # A number in the name: API servers look for the issuer by name, and two of ours must be told apart.
    numbered = f"{name[:40]}-{secrets.randbelow(10**12):012}"
    return _certified(certificates.make_authority(numbered, now=now, until=now + lifetime))


def issue(authority: Certified, hosts: Iterable[str], *, now: datetime, lifetime: timedelta) -> Certified:
    """Make a server's certificate for these hosts, names or addresses; it never outlives the authority."""
    names = tuple(hosts)
    signer = Identity(_load(authority.certificate), _private(authority.key))
    # The common name has 64 letters at most, and nobody reads it: hosts are alternative names.
    subject = Subject(names[0][:64], hosts=names)
    return _certified(certificates.issue(signer, subject, now=now, until=min(now + lifetime, authority.expires)))


def read_certified(certificate: bytes, key: bytes) -> Certified | None:
    """Read a pair from PEM; None when one cannot be read or they do not belong together."""
    try:
        read, private = _load(certificate), _private(key)
        if read.public_key() != private.public_key():
            return None
    except (ValueError, TypeError):
        return None
    return Certified(certificate, key, _made(read), _expires(read), _hosts(read))


def certificates_in(bundle: bytes) -> list[tuple[bytes, datetime]]:
    """Split a bundle into its certificates, each as PEM with its expiry; none when it cannot be read."""
    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []
    return [(each.public_bytes(serialization.Encoding.PEM), _expires(each)) for each in found]


def _certified(identity: Identity) -> Certified:
    read = identity.certificate
    return Certified(identity.certificate_pem, identity.key_pem, _made(read), _expires(read), _hosts(read))


def _load(certificate: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate)


def _private(key: bytes) -> ec.EllipticCurvePrivateKey:
    private = serialization.load_pem_private_key(key, None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not elliptic")
    return private


def _made(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc.astimezone(UTC) + LEEWAY


def _expires(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc.astimezone(UTC)


def _hosts(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = names.get_values_for_type(x509.IPAddress)
    return frozenset([*names.get_values_for_type(x509.DNSName), *map(str, addresses)])
