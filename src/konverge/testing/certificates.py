"""Certificates for a control plane that lives as long as a test run.

Every authority and key is made anew for each control plane and never leaves its temporary directory. Elliptic keys:
they take a millisecond to make, RSA keys take a tenth of a second each.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "Pair", "write_signing_key"]

LIFETIME = datetime.timedelta(days=7)
# Machines whose clocks differ a little (a virtual machine that was suspended) still accept the certificate.
LEEWAY = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority whose files lie in `directory`.

    Promises:

    - whoever trusts `ca.cert` accepts what `issue` makes, and nothing that another `Authority` made;
    - private keys are readable by their owner only.
    """

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}-ca")])
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._cert = builder.add_extension(_usage(authority=True), critical=True).sign(self._key, hashes.SHA256())
        self.ca = _write_pair(directory, f"{name}-ca", self._cert, self._key)

    def issue(self, name: str, *, file: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """Write `file`.crt and `file`.key: a client of that name in those groups, and a server of those hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        builder = _builder(x509.Name(subject), self._name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        alternatives = [_alternative(host) for host in hosts]
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if alternatives:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        # OpenSSL's strict mode, the default of Python 3.13's contexts, refuses a leaf without this pointer.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        return _write_pair(self.directory, file, builder.sign(self._key, hashes.SHA256()), key)


def write_signing_key(directory: Path, file: str) -> Pair:
    """Write a key that signs service account tokens; `cert` is its bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    pair = Pair(directory / f"{file}.pub", directory / f"{file}.key")
    pair.cert.write_bytes(public)
    _write_private(pair.key, key)
    return pair


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - LEEWAY).not_valid_after(now + LIFETIME)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


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


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_pair(directory: Path, file: str, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pair = Pair(directory / f"{file}.crt", directory / f"{file}.key")
    pair.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    _write_private(pair.key, key)
    return pair


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
