"""Certificates of an embedded control plane: an authority of its own, made anew each time, kept in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from konverge.wire.certificates import CLIENT, SERVER, Subject, issue, make_authority

__all__ = ["Authority", "Pair"]

_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """A certificate authority. Whoever trusts `certificate` accepts what `issue` makes, and nothing else."""

    def __init__(self, name: str) -> None:
        now = datetime.now(UTC)
        self._identity = make_authority(name, now=now, until=now + _LIFETIME)
        self.certificate = self._identity.certificate_pem

    def issue(self, name: str, *, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """Make a certificate: of a server when it has hosts, else of a client of that name in those groups."""
        now, served = datetime.now(UTC), tuple(hosts)
        subject = Subject(name, groups=tuple(groups), hosts=served, purposes=(SERVER if served else CLIENT,))
        made = issue(self._identity, subject, now=now, until=now + _LIFETIME)
        return Pair(made.certificate_pem, made.key_pem)
