"""TLS of a client, without I/O.

asyncio's own TLS passes each read and write through a protocol and a transport of its own, and keeps 256 kB of buffer
for each connection. That is a third of the CPU of a small request (designs/0018); OpenSSL itself needs little.
"""

from __future__ import annotations

import ssl

__all__ = ["TlsSession"]

_RECORD_BYTES = 16 << 10
"""The largest content of a TLS record: OpenSSL returns one record at a time."""


class TlsSession:
    """One TLS session: bytes of the peer go in, plain text comes out, and the other way round.

    The certificate of the peer is verified by OpenSSL during the handshake, as the context demands. After any method,
    `pending_output` returns what has to be sent to the peer.
    """

    __slots__ = ("_incoming", "_outgoing", "_tls", "ended", "incomplete")

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self.ended = False
        """True when the peer has announced that it sends nothing more."""
        self.incomplete = False
        """True if the last bytes of the peer ended in the middle of a record, or with one that has no text."""

    def advance_handshake(self, data: bytes | memoryview = b"") -> bool:
        """Continue the handshake with bytes of the peer; return True when it is done.

        Raises: ssl.SSLError.
        """
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes to send for this plain text.

        Raises: ssl.SSLError.
        """
        self._tls.write(data)
        return self._outgoing.read()

    def decrypt(self, data: bytes | memoryview) -> bytes:
        """Return the plain text of the records that these bytes of the peer complete.

        Raises: ssl.SSLError.
        """
        incoming, read = self._incoming, self._tls.read
        incoming.write(data)
        parts: list[bytes] = []
        try:
            while incoming.pending and not self.ended:
                text = read(_RECORD_BYTES)
                self.ended = not text
                parts.append(text)
            self.incomplete = False
        except ssl.SSLWantReadError:
            self.incomplete = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def pending_output(self) -> bytes:
        """Return what OpenSSL itself has to send: parts of the handshake, alerts, new keys."""
        return self._outgoing.read() if self._outgoing.pending else b""
