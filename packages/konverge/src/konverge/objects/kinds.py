"""Kinds: the collections of the API that objects belong to."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Kind", "Scope", "api_version_of", "split_api_version"]


class Scope(StrEnum):
    """The scope of a kind; the values are those of a CRD's `.spec.scope`."""

    NAMESPACED = "Namespaced"
    CLUSTER = "Cluster"

    __hash__ = str.__hash__  # that of Enum is a Python function, and each use of a kind as a key calls it


class Kind(NamedTuple):
    """A kind as the API server serves it: group, version, kind, plural and scope.

    It is hashable and equal by value, so it can be the key of a dict. `str()` is of the form `Deployment.apps/v1`.
    """

    group: str
    version: str
    kind: str
    plural: str
    scope: Scope = Scope.NAMESPACED

    @property
    def api_version(self) -> str:
        return api_version_of(self.group, self.version)

    @property
    def resource(self) -> str:
        """The name that RBAC and kubectl use: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def namespaced(self) -> bool:
        return self.scope is Scope.NAMESPACED

    def __str__(self) -> str:
        return f"{self.kind}.{self.api_version}"


def api_version_of(group: str, version: str) -> str:
    """Return group and version as an `apiVersion`; the core group has no name."""
    return f"{group}/{version}" if group else version


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split `apps/v1` into group and version; `v1` has the group ''."""
    group, _, version = api_version.rpartition("/")
    return group, version
