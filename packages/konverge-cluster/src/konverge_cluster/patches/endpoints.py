"""The endpoint of a write: the kind, its versions, the subresource, and the fields that cannot be owned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge_cluster.patches.field_sets import FieldSet, make_set
from konverge_cluster.patches.topology import Node, Topology
from konverge_cluster.patches.validation import validate

__all__ = ["UNOWNED_FIELDS", "Endpoint", "with_api_version", "without_managed_fields"]

UNOWNED_FIELDS = make_set(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
"""The fields that no manager owns."""


def with_api_version(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Convert as the conversion strategy `None` does: only the version changes."""
    return {**obj, "apiVersion": api_version}


@dataclass(frozen=True)
class Endpoint:
    """One resource (or subresource) in one version.

    `topologies` has every version of the kind, including the request's own (for a CRD also those that are not served).
    `reset` has, by version, the fields that the endpoint resets, so that a write through it does not own them
    (`make_set("status")` on the main resource). `convert` converts an object to another version.
    """

    api_version: str
    kind: str
    topologies: Mapping[str, Topology]
    subresource: str = ""
    reset: Mapping[str, FieldSet] = field(default_factory=dict)
    convert: Callable[[dict[str, Any], str], dict[str, Any]] = with_api_version

    @property
    def topology(self) -> Topology:
        """The topology of the request's own version."""
        return self.topologies[self.api_version]

    def root(self, version: str) -> Node:
        """Return the root node of a version."""
        return self.topologies[version].root

    def at(self, obj: dict[str, Any], version: str) -> dict[str, Any]:
        """Return the object in a version of the kind.

        Raises: ValidationError when it must be converted and has duplicate list items, which only its own version
        allows.
        """
        if obj.get("apiVersion", self.api_version) == version:
            return obj
        converted = self.convert(obj, version)
        validate(self.root(version), converted)
        return converted


def without_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object without its managedFields."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
