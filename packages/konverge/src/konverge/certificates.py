"""Certificates, made here and nowhere else: an authority that signs itself, and what it issues. No I/O, no clock.

Keys are elliptic (P-256): made in a millisecond, where RSA takes a tenth of a second, and every API server accepts
them. Who loads this module pays for the library of cryptography; `konverge.wire` itself does not.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = [
    "CLIENT",
    "LEEWAY",
    "SERVER",
    "Authority",
    "Identity",
    "Pair",
    "Subject",
    "issue",
    "make_authority",
    "make_key",
    "private_pem",
]

LEEWAY: Final = timedelta(hours=1)
"""How much earlier than now a certificate begins: clocks of other machines may be behind ours."""

_LIFETIME: Final = timedelta(days=365)
SERVER: Final = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT: Final = ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as PEM, not encrypted."""
        return private_pem(self.key)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate is about: a user in groups, a server of hosts (names, addresses), and what it is good for."""

    name: str
    groups: Sequence[str] = ()
    hosts: Sequence[str] = ()
    purposes: Sequence[x509.ObjectIdentifier] = (SERVER,)


def make_key() -> ec.EllipticCurvePrivateKey:
    """Make a private key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Give a private key as PEM, not encrypted."""
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def make_authority(name: str, *, now: datetime, until: datetime) -> Identity:
    """Make an authority that signs itself; whoever trusts it accepts what `issue` makes of it, and nothing else."""
    key = make_key()
    subject = _name(name)
    builder = _builder(subject, subject, key.public_key(), now, until)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(authority=True), critical=True)
    return Identity(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Identity, subject: Subject, *, now: datetime, until: datetime) -> Identity:
    """Make a certificate that an authority signs."""
    key = make_key()
    name = _name(subject.name, subject.groups)
    builder = _builder(name, authority.certificate.subject, key.public_key(), now, until)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(subject.purposes), critical=False)
    if subject.hosts:
        alternatives = x509.SubjectAlternativeName([_alternative(host) for host in subject.hosts])
        builder = builder.add_extension(alternatives, critical=False)
    # OpenSSL's strict mode, the default of Python 3.13's contexts, refuses a leaf without this pointer.
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(signer, critical=False)
    return Identity(builder.sign(authority.key, hashes.SHA256()), key)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """A certificate authority. Whoever trusts `certificate` accepts what `issue` makes, and nothing else."""

    def __init__(self, name: str) -> None:
        now = datetime.now(UTC)
        self._identity = make_authority(name, now=now, until=now + _LIFETIME)
        self.certificate = self._identity.certificate_pem

    def issue(self, name: str, *, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """Make a certificate: of a server when it has hosts, else of a client of that name in those groups."""
        now, served = datetime.now(UTC), tuple(hosts)
        subject = Subject(name, groups=tuple(groups), hosts=served, purposes=(SERVER if served else CLIENT,))
        made = issue(self._identity, subject, now=now, until=now + _LIFETIME)
        return Pair(made.certificate_pem, made.key_pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - LEEWAY).not_valid_after(until)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _name(name: str, groups: Iterable[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


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
