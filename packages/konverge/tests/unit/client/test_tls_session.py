"""TLS without I/O, against a server of OpenSSL in memory."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client.connection.tls_session import TlsSession
from konverge.testing.certificates import Authority


class Peer:
    """The other side of a session."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def advance_handshake(self, data: bytes) -> bytes:
        self.incoming.write(data)
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def encrypt(self, text: bytes) -> bytes:
        self.tls.write(text)
        return self.outgoing.read()

    def close(self) -> bytes:
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()  # waits for the other side to close too
        return self.outgoing.read()


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = Authority(tmp_path_factory.mktemp("tls"), "tls")
    pair = authority.sign("server", file="server", hosts=["api.example.com"])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair.cert, pair.key)
    return ssl.create_default_context(cafile=str(Path(authority.ca.cert))), server


def connected(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> tuple[TlsSession, Peer]:
    client, server = contexts
    session, peer = TlsSession(client, "api.example.com"), Peer(server)
    assert not session.advance_handshake()
    while not session.advance_handshake(peer.advance_handshake(session.pending_output())):
        pass
    assert session.decrypt(peer.advance_handshake(session.pending_output())) == b""  # tickets
    return session, peer


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


@given(st.lists(st.binary(min_size=1, max_size=40_000), max_size=4), st.sampled_from([1, 5, 17, 4096, 65536]))
def test_what_is_read_does_not_depend_on_how_the_bytes_are_split(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], texts: list[bytes], size: int
) -> None:
    session, peer = connected(contexts)
    sent = b"".join(peer.encrypt(text) for text in texts) + peer.outgoing.read()

    assert b"".join(session.decrypt(piece) for piece in pieces(sent, size)) == b"".join(texts)
    assert not session.ended


def test_what_the_session_encrypts_arrives(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    session, peer = connected(contexts)
    text = bytes(range(256)) * 1000

    peer.incoming.write(session.encrypt(text))
    received = b""
    while len(received) < len(text):
        received += peer.tls.read(1 << 20)

    assert received == text


def test_a_part_of_a_record_is_known(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    session, peer = connected(contexts)
    data, data_of_two = peer.encrypt(b"text"), peer.encrypt(b"first") + peer.encrypt(b"second")
    texts = [(session.decrypt(part), session.incomplete) for part in (data, data_of_two[:-1], data_of_two[-1:])]
    assert texts == [(b"text", False), (b"first", True), (b"second", False)]


def test_text_before_the_end_of_the_session_is_returned(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    session, peer = connected(contexts)

    assert session.decrypt(peer.encrypt(b"last words") + peer.close()) == b"last words"
    assert session.ended


def test_bytes_that_are_not_tls_are_an_error_with_an_alert_for_the_peer(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    session, _ = connected(contexts)

    with pytest.raises(ssl.SSLError):
        session.decrypt(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert session.pending_output()


def test_a_certificate_for_another_name_is_refused(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    client, server = contexts
    session, peer = TlsSession(client, "other.example.com"), Peer(server)
    session.advance_handshake()

    with pytest.raises(ssl.SSLCertVerificationError):
        session.advance_handshake(peer.advance_handshake(session.pending_output()))
    assert session.pending_output()  # the alert that names the reason
