"""What went wrong between us and the server, in plain words: from the errors of sockets, TLS and name resolution."""

from __future__ import annotations

import errno
import os
import socket
import ssl

from konverge.client.connection.socks import SocksError

__all__ = ["words_of"]

_UNKNOWN_ISSUERS = {18, 19, 20, 21}
_OTHER_NAMES = {62, 64}
"""Verification codes of OpenSSL: self-signed or unknown issuer; host name or IP address mismatch."""

_ADVICE_TLS = {
    "WRONG_VERSION_NUMBER": " (does the server speak plain http there?)",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": " (the server asks for a client certificate)",
}


def words_of(error: BaseException) -> str:
    """Say what an error means; nothing of what was sent or received is in it."""
    match error:
        case ssl.SSLCertVerificationError():
            return _certificate(error)
        case ssl.SSLError():
            reason = error.reason or "UNKNOWN"
            return f"TLS failed: {reason.lower().replace('_', ' ')}{_ADVICE_TLS.get(reason, '')}"
        case socket.gaierror():
            return f"the name cannot be resolved: {(error.strerror or 'unknown reason').lower()}"
        case SocksError():
            return f"the SOCKS proxy failed: {error}"
        case ConnectionRefusedError():
            return "connection refused"
        case ConnectionResetError() | BrokenPipeError() | ConnectionAbortedError():
            return "the connection was reset"
        case OSError():
            return _system(error)
    return f"{type(error).__name__}"


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    advice = ""
    if error.verify_code in _UNKNOWN_ISSUERS:
        advice = " (is the configured CA that of this server?)"
    elif error.verify_code in _OTHER_NAMES:
        advice = " (tls-server-name sets the name to expect)"
    why = error.verify_message or error.reason or "verification failed"
    return f"TLS failed: the certificate is not accepted, {why[:1].lower()}{why[1:].rstrip('.')}{advice}"


def _system(error: OSError) -> str:
    if error.errno == errno.ETIMEDOUT:
        return "the peer does not answer any more"
    if error.errno:
        return os.strerror(error.errno).lower()
    return (str(error) or type(error).__name__)[:300]
