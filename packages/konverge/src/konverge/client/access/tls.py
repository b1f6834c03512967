"""TLS to an API server: whom we trust, and who we say we are.

Contexts behave as Go's do, since kubeconfig files are written for Go programs: every certificate of the CA bundle is a
trust anchor, also an intermediate one; old CAs without the extensions of strict mode are accepted; a host name is
looked for in the alternative names only, never in the subject.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from konverge.client.access.files import Rotating
from konverge.client.access.places import Place

__all__ = ["CertificatePair", "Tls", "check_authority", "check_pair"]


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A client certificate (with its chain) and its private key, as PEM; neither is ever shown."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make a context identify itself with this pair.

        Raises: ssl.SSLError when the two do not form a pair.
        """
        with pem_file(self.certificate.rstrip() + b"\n" + self.key) as path:
            # An empty passphrase fails for an encrypted key; none at all would ask on the terminal.
            context.load_cert_chain(path, password=b"")


class Tls:
    """What a connection trusts and which name it expects.

    `ca` is PEM, fixed or rotating; without one the system's own authorities are trusted. `server_name` replaces the
    host name of the server, both when it is asked for and when its certificate is checked.

    Promise: `context` returns the same object until the CA or the pair changes, so a connection made with an older
    context is told apart by `is`.
    """

    def __init__(
        self, *, ca: bytes | Rotating[bytes] | None = None, server_name: str | None = None, insecure: bool = False
    ) -> None:
        if insecure and ca is not None:
            raise ValueError("Tls: insecure=True takes no ca: give one of the two")
        self.server_name = server_name
        self.insecure = insecure
        self._ca = Rotating([ca], _checked) if isinstance(ca, bytes) else ca
        self._built: tuple[bytes | None, CertificatePair | None, ssl.SSLContext] | None = None

    def __repr__(self) -> str:
        return f"Tls(ca={self._ca!r}, server_name={self.server_name!r}, insecure={self.insecure!r})"

    def ca(self) -> bytes | None:
        """The trusted authorities as PEM, read again when their file rotated; None means the system's own."""
        return None if self._ca is None else self._ca.get()

    def context(self, pair: CertificatePair | None = None) -> ssl.SSLContext:
        """Return the context for new connections that identify themselves with this pair, or with none."""
        ca = self.ca()
        if self._built is None or self._built[0] is not ca or self._built[1] != pair:
            self._built = (ca, pair, self._build(ca, pair))
        return self._built[2]

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
                raise Place("client certificate").error("it and its private key do not form a pair") from None
        return context


def _checked(ca: bytes) -> bytes:
    return check_authority(ca, Place("Tls", "ca"))


def check_authority(ca: bytes, place: Place) -> bytes:
    """Return the bundle when every certificate in it can be read, and there is one."""
    try:
        _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca)
    except ssl.SSLError:
        raise place.error("expected PEM certificates", "-----BEGIN CERTIFICATE----- ...") from None
    return ca


def check_pair(certificate: bytes, key: bytes, *, at: Place, key_at: Place) -> CertificatePair:
    """Return the pair when the certificate can be read and the key is its own."""
    check_authority(certificate, at)
    if b"ENCRYPTED" in key:
        raise key_at.error("the private key is encrypted", "kubectl takes no passphrase either: decrypt it")
    pair = CertificatePair(certificate, key)
    try:
        pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise key_at.error("the private key does not belong to the client certificate") from None
        raise key_at.error("expected a PEM private key", "-----BEGIN PRIVATE KEY----- ...") from None
    return pair


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    # Bundles carry comments in any script between the certificates; the library takes ASCII only.
    context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))


def pem_file(content: bytes) -> AbstractContextManager[str]:
    """Lend a file of that content: the TLS library reads private keys from files only.

    In memory where the system can (the key never touches a disk, and the root file system may be read-only), else a
    temporary file that only its owner can read and that is deleted at once.
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
    with tempfile.NamedTemporaryFile(prefix="konverge-", suffix=".pem") as file:
        file.write(content)
        file.flush()
        yield file.name
