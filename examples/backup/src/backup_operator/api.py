"""The custom resource Backup."""

from typing import Annotated

from konverge import Condition, CustomResource, Meta, Spec, Status, field
from konverge.schema import IMMUTABLE


class BackupSpec(Spec):
    """What is stored, and where."""

    source: Annotated[str, Meta(min_length=1)]
    """The name of a ConfigMap in the same namespace."""
    bucket: Annotated[str, Meta(pattern="^[a-z0-9-]+$"), IMMUTABLE]
    """The bucket of the object store. Another bucket is another Backup."""


class BackupStatus(Status):
    """What the object store has."""

    observed_generation: int = 0
    path: str = ""
    checksum: str = ""
    conditions: list[Condition] = field(default_factory=list[Condition])


class Backup(CustomResource[BackupSpec, BackupStatus], group="example.com", version="v1alpha1"):
    """A copy of a ConfigMap in an object store, which is deleted with the Backup."""
