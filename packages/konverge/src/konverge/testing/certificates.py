"""Certificates for a control plane that runs during a test run.

Every authority and key is created for one control plane and never leaves its temporary directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from konverge.certificates import (
    CLIENT,
    SERVER,
    Identity,
    Subject,
    make_authority,
    make_key,
    private_pem,
    sign_certificate,
)

__all__ = ["Authority", "Pair", "write_signing_key"]

LIFETIME = timedelta(days=7)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority with its files in `directory`.

    Promises:

    - a peer that trusts `ca.cert` accepts certificates from `sign`, and none from another `Authority`;
    - private keys are readable by their owner only.
    """

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        now = datetime.now(UTC)
        self._identity = make_authority(f"{name}-ca", now=now, until=now + LIFETIME)
        self.ca = _write_pair(directory, f"{name}-ca", self._identity)

    def sign(self, name: str, *, file: str, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """Write `file`.crt and `file`.key for a client in these groups; with `hosts`, for a server too."""
        now, served = datetime.now(UTC), tuple(hosts)
        purposes = (CLIENT, SERVER) if served else (CLIENT,)
        subject = Subject(name, groups=tuple(groups), hosts=served, purposes=purposes)
        signed = sign_certificate(self._identity, subject, now=now, until=now + LIFETIME)
        return _write_pair(self.directory, file, signed)


def write_signing_key(directory: Path, file: str) -> Pair:
    """Write a key that signs service account tokens; `cert` is its public key."""
    key = make_key()
    pair = Pair(directory / f"{file}.pub", directory / f"{file}.key")
    pair.cert.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    _write_private(pair.key, private_pem(key))
    return pair


def _write_pair(directory: Path, file: str, identity: Identity) -> Pair:
    pair = Pair(directory / f"{file}.crt", directory / f"{file}.key")
    pair.cert.write_bytes(identity.certificate_pem)
    _write_private(pair.key, identity.key_pem)
    return pair


def _write_private(path: Path, text: bytes) -> None:
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
