"""Names, labels and annotations of a Database and its children."""

from __future__ import annotations

from hashlib import sha256

from konverge_operators.database.api import Database
from konverge_operators.database.engine import SecretNames
from konverge_operators.manifests import labels, selector

__all__ = [
    "BACKUP",
    "MANAGED_BY",
    "OPERATOR",
    "RESTART",
    "RETRY_UPGRADE",
    "REVISION",
    "ROTATE_PASSWORD",
    "SWITCHOVER",
    "authority_map",
    "backup_claim",
    "backup_labels",
    "certificate_secret",
    "claim_name",
    "cron_job_name",
    "engine_config",
    "labels_of",
    "next_secret",
    "ordinal_of",
    "pod_name",
    "read_only_service",
    "read_write_service",
    "recovery_job",
    "secrets_of",
    "selector_of",
    "short_name",
]

OPERATOR = "database-operator"
MANAGED_BY = f"app.kubernetes.io/managed-by={OPERATOR}"
"""The selector of everything that belongs to a Database."""
SWITCHOVER = "example.com/switchover"
"""Annotation of a Database: the pod that becomes the primary, or "any". The operator removes it when that is done."""
RESTART = "example.com/restart"
"""Annotation of a Database: each new value, such as a time, replaces the pods one by one."""
ROTATE_PASSWORD = "example.com/rotate-password"
"""Annotation of a Database: each new value, such as a time, replaces the application's login."""
RETRY_UPGRADE = "example.com/retry-upgrade"
"""Annotation of a Database: each new value, such as a time, tries a failed major upgrade again."""
REVISION = "example.com/revision"
"""Annotation of pods: the hash of the template that they were created from."""
BACKUP = "backup"
"""The component of the Jobs, and of the claim for backups."""

_COMPONENT = "member"
_LONGEST = 52
"""The longest name of a CronJob; one of a Job leaves room for what is added to it."""


def selector_of(database: Database) -> dict[str, str]:
    """Return the labels of the members, and of their claims."""
    return {**selector(database.name, _COMPONENT), "app.kubernetes.io/managed-by": OPERATOR}


def labels_of(database: Database) -> dict[str, str]:
    """Return the labels of all children."""
    return labels(database.name, _COMPONENT, operator=OPERATOR)


def secrets_of(database: Database) -> SecretNames:
    return SecretNames(f"{database.name}-superuser", f"{database.name}-replication", f"{database.name}-app")


def next_secret(database: Database) -> str:
    """Return the name of the Secret with the next login, which exists while a password is being rotated."""
    return f"{database.name}-app-next"


def certificate_secret(database: Database) -> str:
    """Return the name of the Secret with the certificate of the members, and with the authority that signs it."""
    return f"{database.name}-tls"


def authority_map(database: Database) -> str:
    """Return the name of the ConfigMap with the authorities that clients trust."""
    return f"{database.name}-ca"


def engine_config(database: Database) -> str:
    """Return the name of the ConfigMap with the files of the engine."""
    return f"{database.name}-engine"


def read_write_service(database: Database) -> str:
    return f"{database.name}-rw"


def read_only_service(database: Database) -> str:
    return f"{database.name}-ro"


def pod_name(database: Database, ordinal: int) -> str:
    return f"{database.name}-{ordinal}"


def claim_name(database: Database, ordinal: int) -> str:
    return f"data-{pod_name(database, ordinal)}"


def ordinal_of(name: str) -> int:
    """Return the ordinal of a pod or a claim by its name."""
    return int(name.rpartition("-")[2])


def backup_labels(name: str) -> dict[str, str]:
    """Return the labels of the Jobs of a database, by its name."""
    return labels(name, BACKUP, operator=OPERATOR)


def backup_claim(database: Database) -> str:
    """Return the claim for backups if the spec names no destination."""
    return f"{database.name}-backup"


def cron_job_name(database: Database) -> str:
    return short_name(f"{database.name}-backup")


def recovery_job(database: Database) -> str:
    return short_name(f"{database.name}-recovery")


def short_name(name: str) -> str:
    """Return a name that a Job can have: a long one with a hash in place of its end."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}-{sha256(name.encode()).hexdigest()[:8]}"
