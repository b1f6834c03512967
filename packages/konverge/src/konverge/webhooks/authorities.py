"""Certificates of webhooks: a certificate authority for them alone, and the certificates that it signs.

No I/O, and no clock of its own.
"""

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

__all__ = ["LEEWAY", "KeyPair", "make_authority", "read_key_pair", "service_hosts", "sign_serving", "split_bundle"]


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its key, as PEM, and its attributes."""

    certificate: bytes
    key: bytes = field(repr=False)
    created: datetime
    expires: datetime
    hosts: frozenset[str] = frozenset()

    def has_signed(self, other: KeyPair) -> bool:
        """Report whether this authority signed `other`."""
        try:
            _load(other.certificate).verify_directly_issued_by(_load(self.certificate))
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True


def service_hosts(name: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service; API servers use the one that ends in `.svc`."""
    short = f"{name}.{namespace}.svc"
    return (short, f"{short}.cluster.local")


def make_authority(name: str, *, now: datetime, lifetime: timedelta) -> KeyPair:
    """Create a self-signed authority."""
    # With a number: API servers find the issuer by name, so two of our authorities need different names.
    numbered = f"{name[:40]}-{secrets.randbelow(10**12):012}"
    return _key_pair(certificates.make_authority(numbered, now=now, until=now + lifetime))


def sign_serving(
    authority: KeyPair, hosts: Iterable[str], *, now: datetime, lifetime: timedelta, for_clients: bool = False
) -> KeyPair:
    """Create a serving certificate for these hosts, names or addresses; it never outlives the authority.

    With `for_clients` it is accepted from clients too.
    """
    names = tuple(hosts)
    signer = Identity(_load(authority.certificate), _private_key(authority.key))
    # The common name has at most 64 characters and is not used: hosts are subject alternative names.
    purposes = (certificates.SERVER, certificates.CLIENT) if for_clients else (certificates.SERVER,)
    subject = Subject(names[0][:64], hosts=names, purposes=purposes)
    until = min(now + lifetime, authority.expires)
    return _key_pair(certificates.sign_certificate(signer, subject, now=now, until=until))


def read_key_pair(certificate: bytes, key: bytes) -> KeyPair | None:
    """Read a pair from PEM; return None when one cannot be read or they do not belong together."""
    try:
        loaded, private = _load(certificate), _private_key(key)
        if loaded.public_key() != private.public_key():
            return None
    except (ValueError, TypeError):
        return None
    return KeyPair(certificate, key, _created(loaded), _expires(loaded), _hosts(loaded))


def split_bundle(bundle: bytes) -> list[tuple[bytes, datetime]]:
    """Split a bundle into its certificates, each as PEM with its expiry; return none when it cannot be read."""
    try:
        loaded = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []
    return [(each.public_bytes(serialization.Encoding.PEM), _expires(each)) for each in loaded]


def _key_pair(identity: Identity) -> KeyPair:
    loaded = identity.certificate
    return KeyPair(identity.certificate_pem, identity.key_pem, _created(loaded), _expires(loaded), _hosts(loaded))


def _load(certificate: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate)


def _private_key(key: bytes) -> ec.EllipticCurvePrivateKey:
    private = serialization.load_pem_private_key(key, None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not an elliptic curve key")
    return private


def _created(certificate: x509.Certificate) -> datetime:
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
