"""The certificate of the members of a Database, and of the authority that signs it: created and renewed here.

One certificate serves all members. Its Secret has the authority too; only the certificate, its key and the trusted
authorities are mounted. A next authority is trusted for a day before it signs, so that clients which read the ConfigMap
`<name>-ca` daily never meet one that they do not trust. A deleted Secret is created again: unlike a password, a
certificate does not belong to the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Final

from konverge import Context, Key
from konverge.objects import now
from konverge.webhooks import ManagedCertificates, RotationPolicy
from konverge_operators.database.api import Database
from konverge_operators.database.credentials import find_secret
from konverge_operators.database.engine import Engine, Target
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import certificate_secret, read_only_service, read_write_service

__all__ = ["Certificate", "ensure_certificate", "hosts_of", "reload_certificate"]

_POLICY: Final = RotationPolicy(overlap=timedelta(days=1), for_clients=True)
"""Members of some engines show it to each other in both directions."""


@dataclass(frozen=True)
class Certificate:
    """The certificate that members have to serve, by its SHA-256, and the authorities to trust, as PEM."""

    digest: str
    authorities: str


def hosts_of(database: Database) -> tuple[str, ...]:
    """Return the names that clients and members connect to."""
    services = (read_write_service(database), read_only_service(database), database.name)
    suffixes = ("", f".{database.namespace}", f".{database.namespace}.svc", f".{database.namespace}.svc.cluster.local")
    names = [f"{service}{suffix}" for service in services for suffix in suffixes]
    return *names, *(f"*.{database.name}{suffix}" for suffix in suffixes[1:])


async def ensure_certificate(database: Database, ctx: Context) -> Certificate | None:
    """Create or renew the certificate if that is due; return it, or None without TLS."""
    if not database.spec.tls.enabled:
        return None
    name = certificate_secret(database)
    hosts = hosts_of(database)
    managed = ManagedCertificates(ctx.client, Key(database.namespace, name), hosts=hosts, policy=_POLICY, clock=now)
    await managed.rotate()
    secret = await find_secret(database, ctx, name)
    data = secret.data if secret is not None else {}
    return Certificate(sha256(data.get("tls.crt", b"")).hexdigest(), data.get("ca.crt", b"").decode())


async def reload_certificate(
    certificate: Certificate | None, ctx: Context, engine: Engine, target: Target, facts: Facts
) -> Database:
    """Let all members serve a certificate, and record it when they do; return the database as it is stored then.

    A member that starts later reads the new files by itself.
    """
    database = target.database
    if certificate is None or database.status.certificate == certificate.digest or not facts.healthy:
        return database
    serving = [await engine.reload_certificate(target, name, certificate.digest) for name in facts.healthy]
    if not all(serving) or len(serving) < facts.replicas:
        return database
    if database.status.certificate:
        ctx.event("CertificateRenewed", "all members serve the new certificate", action="RenewCertificate")
    database.status.certificate = certificate.digest
    return await ctx.update_status(database)
