"""Certificates of webhooks: an authority that only they trust, and what it issues. No I/O, no clock of its own.

Keys are elliptic (P-256): made in a millisecond, and every API server accepts them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["LEEWAY", "Certified", "certificates_in", "issue", "make_authority", "read_certified", "service_hosts"]

LEEWAY: Final = timedelta(hours=1)
"""How much earlier than now a certificate begins: clocks of API servers may be behind ours."""


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
    key = ec.generate_private_key(ec.SECP256R1())
    # A serial in the name: API servers look for the issuer by name, and two of ours must be told apart.
    serial = x509.random_serial_number()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name[:40]}-{serial % 10**12:012}")])
    builder = _builder(subject, subject, key.public_key(), serial, (now, now + lifetime))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(authority=True), critical=True)
    return _certified(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Certified, hosts: Iterable[str], *, now: datetime, lifetime: timedelta) -> Certified:
    """Make a server's certificate for these hosts, names or addresses; it never outlives the authority."""
    names = list(hosts)
    key = ec.generate_private_key(ec.SECP256R1())
    signer = _load(authority.certificate)
    # The common name has 64 letters at most, and nobody reads it: hosts are alternative names.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    times = (now, min(now + lifetime, authority.expires))
    builder = _builder(subject, signer.subject, key.public_key(), x509.random_serial_number(), times)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(_private(authority.key).public_key())
    builder = builder.add_extension(identifier, critical=False)
    return _certified(builder.sign(_private(authority.key), hashes.SHA256()), key)


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


def _certified(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certified:
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    text = certificate.public_bytes(serialization.Encoding.PEM)
    return Certified(text, private, _made(certificate), _expires(certificate), _hosts(certificate))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    serial: int,
    times: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(serial).not_valid_before(times[0] - LEEWAY).not_valid_after(times[1])
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


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


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
