from __future__ import annotations

import errno
import socket
import ssl

import pytest

from konverge.client.connection.failures import describe_error
from konverge.client.connection.sockets import set_keep_alive
from konverge.client.connection.socks import SocksError


def certificate_error(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "alert")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('::1', 1)"), "connection refused"),
        (ConnectionResetError(), "the connection was reset"),
        (BrokenPipeError(), "the connection was reset"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed"), "no route to host"),
        (TimeoutError(errno.ETIMEDOUT, "x"), "the peer no longer responds"),
        (OSError("Multiple exceptions: a, b"), "Multiple exceptions: a, b"),
        (OSError(), "OSError"),
        (
            socket.gaierror(-2, "Name or service not known"),
            "the host name cannot be resolved: name or service not known",
        ),
        (SocksError("not allowed"), "the SOCKS proxy failed: not allowed"),
        (
            certificate_error(20, "unable to get local issuer certificate"),
            "TLS failed: the certificate is not accepted, unable to get local issuer certificate "
            "(is the configured CA the one of this server?)",
        ),
        (
            certificate_error(62, "Hostname mismatch, certificate is not valid for 'a'."),
            "TLS failed: the certificate is not accepted, hostname mismatch, certificate is not valid for 'a' "
            "(set tls-server-name to the name in the certificate)",
        ),
        (
            certificate_error(10, "certificate has expired"),
            "TLS failed: the certificate is not accepted, certificate has expired",
        ),
        (tls_error("TLSV1_ALERT_INTERNAL_ERROR"), "TLS failed: tlsv1 alert internal error"),
        (
            tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            "TLS failed: tlsv13 alert certificate required (the server requires a client certificate)",
        ),
        (KeyError("secret"), "KeyError"),
    ],
)
def test_failures_are_described(error: Exception, words: str) -> None:
    assert describe_error(error) == words


def test_an_unreachable_peer_is_detected_by_the_system() -> None:
    with socket.socket() as link:
        set_keep_alive(link, 30.0)
        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
