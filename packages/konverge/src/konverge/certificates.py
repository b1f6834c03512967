"""Certificates: self-signed authorities, and certificates signed by them.

Keys are elliptic (P-256): one takes a millisecond to generate, an RSA key a tenth of a second, and every API server
accepts them. Only code that imports this module loads the cryptography library.
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
    "KeyPair",
    "Subject",
    "make_authority",
    "make_key",
    "private_pem",
    "sign_certificate",
]

LEEWAY: Final = timedelta(hours=1)
"""How long before now a certificate becomes valid: the clocks of other machines may be slow."""

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
    """The subject of a certificate: a user in groups or a server with hosts (names, addresses), and its purposes."""

    name: str
    groups: Sequence[str] = ()
    hosts: Sequence[str] = ()
    purposes: Sequence[x509.ObjectIdentifier] = (SERVER,)


def make_key() -> ec.EllipticCurvePrivateKey:
    """Generate a private key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, not encrypted."""
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def make_authority(name: str, *, now: datetime, until: datetime) -> Identity:
    """Create a self-signed authority. A peer that trusts it accepts the certificates that it signs, and no others."""
    key = make_key()
    subject = _name(name)
    builder = _builder(subject, subject, key.public_key(), now, until)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(authority=True), critical=True)
    return Identity(builder.sign(key, hashes.SHA256()), key)


def sign_certificate(authority: Identity, subject: Subject, *, now: datetime, until: datetime) -> Identity:
    """Create a key and a certificate signed by the authority."""
    key = make_key()
    name = _name(subject.name, subject.groups)
    builder = _builder(name, authority.certificate.subject, key.public_key(), now, until)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(subject.purposes), critical=False)
    if subject.hosts:
        names = x509.SubjectAlternativeName([_alternative_name(host) for host in subject.hosts])
        builder = builder.add_extension(names, critical=False)
    # OpenSSL's strict mode, the default of Python 3.13, rejects a leaf certificate without this extension.
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(signer, critical=False)
    return Identity(builder.sign(authority.key, hashes.SHA256()), key)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """A certificate authority. A peer that trusts `certificate` accepts what `sign` returns, and nothing else."""

    def __init__(self, name: str) -> None:
        now = datetime.now(UTC)
        self._identity = make_authority(name, now=now, until=now + _LIFETIME)
        self.certificate = self._identity.certificate_pem

    @property
    def identity(self) -> Identity:
        """The certificate and the key of the authority."""
        return self._identity

    def sign(self, name: str, *, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> KeyPair:
        """Return a new certificate: for a server if there are hosts, else for a client of that name in those groups."""
        now, server_hosts = datetime.now(UTC), tuple(hosts)
        purposes = (SERVER if server_hosts else CLIENT,)
        subject = Subject(name, groups=tuple(groups), hosts=server_hosts, purposes=purposes)
        signed = sign_certificate(self._identity, subject, now=now, until=now + _LIFETIME)
        return KeyPair(signed.certificate_pem, signed.key_pem)


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


def _alternative_name(host: str) -> x509.GeneralName:
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
