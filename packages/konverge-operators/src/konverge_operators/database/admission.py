"""What the API server warns of when a Database is written. Nothing is denied: the rules are in the CRD."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from konverge.objects import now
from konverge.webhooks import AdmissionRequest, ValidatingWebhook, validating
from konverge_operators.database.api import Database
from konverge_operators.database.engine import Engine
from konverge_operators.database.names import backup_claim
from konverge_operators.database.versions import find_major, is_supported

__all__ = ["find_warnings", "warning_webhook"]


def warning_webhook(engines: Sequence[Engine]) -> ValidatingWebhook[Database]:
    """Return a webhook that only warns; without it, or while the operator is away, everything is written as well."""
    by_name = {engine.name: engine for engine in engines}

    @validating(Database, operations=("CREATE", "UPDATE"), failure_policy="Ignore")
    def warn(database: Database, old: Database | None, request: AdmissionRequest) -> Iterator[str]:  # noqa: ARG001
        changed = old is None or old.spec != database.spec
        engine = by_name.get(database.spec.engine)
        if engine is not None and changed and database.metadata.deletion_timestamp is None:
            yield from find_warnings(database, engine, now().date())

    return warn


def find_warnings(database: Database, engine: Engine, today: date) -> Iterator[str]:
    """Yield what is allowed and dangerous in a spec."""
    spec = database.spec
    if spec.replicas == 1:
        yield "1 replica: without a second one there is no failover; set .spec.replicas"
    if not spec.backup.enabled:
        yield "there are no backups"
    elif spec.backup.destination is None:
        yield f"backups go to the claim {backup_claim(database)}: it does not survive the loss of the cluster; use s3"
    major = find_major(engine.majors, spec.version)
    if major is not None and not is_supported(major, today):
        yield f"version {major.name} gets no fixes any more since {major.supported_until}"
