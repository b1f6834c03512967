"""TLS to an API server: trusted authorities and client certificates.

Contexts behave as in Go, since kubeconfig files are written for Go programs: every certificate of the CA bundle is a
trust anchor, even an intermediate one; old CAs without the extensions of strict mode are accepted; a host name must be
in the alternative names, the subject does not count.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from konverge.client.access.files import RotatingValue
from konverge.client.access.locations import Location

__all__ = ["CertificatePair", "Tls", "check_authority", "check_pair"]


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A client certificate (with its chain) and its private key, as PEM; the repr shows neither."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the pair into a TLS context.

        Raises: ssl.SSLError when key and certificate do not match.
        """
        with pem_file(self.certificate.rstrip() + b"\n" + self.key) as path:
            # An empty passphrase fails for an encrypted key; without one OpenSSL would prompt on the terminal.
            context.load_cert_chain(path, password=b"")


class Tls:
    """The TLS settings of a connection: trusted authorities and the expected server name.

    `ca` is PEM, fixed or rotating; without it the system's authorities are trusted. `server_name` replaces the host
    name of the server, both for SNI and for the check of its certificate.

    Promise: `context` returns the same object until the CA or the pair changes, so `is` detects a connection with an
    older context.
    """

    def __init__(
        self, *, ca: bytes | RotatingValue[bytes] | None = None, server_name: str | None = None, insecure: bool = False
    ) -> None:
        if insecure and ca is not None:
            raise ValueError("Tls: insecure=True and ca= exclude each other")
        self.server_name = server_name
        self.insecure = insecure
        self._ca = RotatingValue([ca], _check_ca) if isinstance(ca, bytes) else ca
        self._cached: tuple[bytes | None, CertificatePair | None, ssl.SSLContext] | None = None

    def __repr__(self) -> str:
        return f"Tls(ca={self._ca!r}, server_name={self.server_name!r}, insecure={self.insecure!r})"

    def ca(self) -> bytes | None:
        """Return the trusted authorities as PEM, reloaded when their file rotates; None means the system's."""
        return None if self._ca is None else self._ca.get()

    def context(self, pair: CertificatePair | None = None) -> ssl.SSLContext:
        """Return the TLS context for new connections with this client certificate, or without one."""
        ca = self.ca()
        if self._cached is None or self._cached[0] is not ca or self._cached[1] != pair:
            self._cached = (ca, pair, self._build(ca, pair))
        return self._cached[2]

    def _build(self, ca: bytes | None, pair: CertificatePair | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.hostname_checks_common_name = False
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            _trust(context, ca)
        if pair is not None:
            try:
                pair.load_into(context)
            except ssl.SSLError:
                raise Location("client certificate").error("it does not match its private key") from None
        return context


def _check_ca(ca: bytes) -> bytes:
    return check_authority(ca, Location("Tls", "ca"))


def check_authority(ca: bytes, location: Location) -> bytes:
    """Return the bundle if it has at least one certificate and all can be parsed; raise ConfigError otherwise."""
    try:
        _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca)
    except ssl.SSLError:
        raise location.error("expected PEM certificates", "-----BEGIN CERTIFICATE----- ...") from None
    return ca


def check_pair(
    certificate: bytes, key: bytes, *, certificate_location: Location, key_location: Location
) -> CertificatePair:
    """Return the pair if the certificate can be parsed and the key belongs to it; raise ConfigError otherwise."""
    check_authority(certificate, certificate_location)
    if b"ENCRYPTED" in key:
        raise key_location.error("the private key is encrypted", "decrypt it; kubectl accepts no passphrase either")
    pair = CertificatePair(certificate, key)
    try:
        pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise key_location.error("the private key does not belong to the client certificate") from None
        raise key_location.error("expected a PEM private key", "-----BEGIN PRIVATE KEY----- ...") from None
    return pair


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    # Bundles may have comments in any script between the certificates; the library accepts ASCII only.
    context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))


def pem_file(content: bytes) -> AbstractContextManager[str]:
    """Return a context manager for a file with that content: the TLS library reads private keys from files only.

    The file is in memory if the system supports it: the key is not written to a disk, and the root file system may be
    read-only. Otherwise it is a temporary file that only its owner can read and that is deleted on exit.
    """
    in_memory: Callable[[bytes], AbstractContextManager[str]] | None
    in_memory = _memory_file if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd") else None
    return (in_memory or _disk_file)(content)


@contextlib.contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    with open(os.memfd_create("konverge"), "wb", buffering=0) as file:
        file.write(content)
        yield f"/proc/self/fd/{file.fileno()}"


@contextlib.contextmanager
def _disk_file(content: bytes) -> Iterator[str]:
    import tempfile  # only needed for a certificate in memory

    with tempfile.NamedTemporaryFile(prefix="konverge-", suffix=".pem") as file:
        file.write(content)
        file.flush()
        yield file.name
