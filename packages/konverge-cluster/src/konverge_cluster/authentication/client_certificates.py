"""The users of client certificates: the common name, with the organizations as groups."""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from konverge.objects import wall_clock
from konverge_cluster.api.authorization import AUTHENTICATED, UserInfo

__all__ = ["CREDENTIAL_ID", "ClientCertificates"]

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_UID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_CACHED: Final = 1000


class ClientCertificates:
    """Returns the users of client certificates whose signature was verified in the TLS handshake.

    A connection may outlive its certificate, so the end of its validity is checked for each request, in real time as in
    the handshake.
    """

    def __init__(self) -> None:
        self._users: dict[bytes, tuple[UserInfo, float] | None] = {}

    def user(self, certificate: bytes) -> UserInfo | None:
        """Return the user of a certificate (DER), None when it names none or is no longer valid."""
        if certificate not in self._users:
            if len(self._users) >= _CACHED:
                self._users.clear()
            self._users[certificate] = _read_user(certificate)
        found = self._users[certificate]
        if found is None or found[1] < wall_clock():
            return None
        return found[0]


def _read_user(certificate: bytes) -> tuple[UserInfo, float] | None:
    """Return the user and the end of the validity; None when the certificate names no user."""
    parsed = x509.load_der_x509_certificate(certificate)
    names = _values(parsed.subject, NameOID.COMMON_NAME)
    uids = _values(parsed.subject, _UID)
    if not names or not names[-1] or len(uids) > 1 or "" in uids:
        return None
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(certificate).hexdigest()}",)}
    groups = (*_values(parsed.subject, NameOID.ORGANIZATION_NAME), AUTHENTICATED)
    user = UserInfo(names[-1], groups, uids[0] if uids else "", extra)
    return user, parsed.not_valid_after_utc.timestamp()


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in subject.get_attributes_for_oid(oid)]
