"""Descriptions of connection failures: errors of sockets, TLS and name resolution."""

from __future__ import annotations

import errno
import os
import socket
import ssl

from konverge.client.connection.socks import SocksError

__all__ = ["describe_error"]

_UNKNOWN_ISSUERS = {18, 19, 20, 21}
_OTHER_NAMES = {62, 64}
"""Verification codes of OpenSSL: self-signed or unknown issuer; host name or IP address mismatch."""

_ADVICE_TLS = {
    "WRONG_VERSION_NUMBER": " (does the server use plain http on this port?)",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": " (the server requires a client certificate)",
}


def describe_error(error: BaseException) -> str:
    """Return a description of the error; it contains no data that was sent or received."""
    match error:
        case ssl.SSLCertVerificationError():
            return _certificate(error)
        case ssl.SSLError():
            reason = error.reason or "UNKNOWN"
            return f"TLS failed: {reason.lower().replace('_', ' ')}{_ADVICE_TLS.get(reason, '')}"
        case socket.gaierror():
            return f"the host name cannot be resolved: {(error.strerror or 'unknown reason').lower()}"
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
        advice = " (is the configured CA the one of this server?)"
    elif error.verify_code in _OTHER_NAMES:
        advice = " (set tls-server-name to the name in the certificate)"
    reason = error.verify_message or error.reason or "verification failed"
    return f"TLS failed: the certificate is not accepted, {reason[:1].lower()}{reason[1:].rstrip('.')}{advice}"


def _system(error: OSError) -> str:
    if error.errno == errno.ETIMEDOUT:
        return "the peer no longer responds"
    if error.errno:
        return os.strerror(error.errno).lower()
    return (str(error) or type(error).__name__)[:300]
