"""Patches, as pure functions over plain JSON values: JSON patch, merge patch, strategic merge patch, server-side apply.

    apply_json_patch(document, patch)                                  RFC 6902
    apply_merge_patch(document, patch)                                 RFC 7386
    apply_strategic_patch(document, patch, topology=...)               built-in kinds
    apply_patch(live, config, manager=..., endpoint=..., now=...)      server-side apply
    track_update(old, new, manager=..., endpoint=..., now=...)         managedFields of every other write
    keep_times(old, new)                                               managedFields of a write that changed nothing

Each returns a new value and never changes its arguments. None of them reads a clock, and none of them defaults,
validates or normalizes objects: that is up to the caller. Errors are `PatchError`, which has everything that a Status
needs.
"""

from __future__ import annotations

from konverge_cluster.patches.apply import Applied, apply_patch
from konverge_cluster.patches.endpoints import Endpoint, with_api_version
from konverge_cluster.patches.errors import PatchError
from konverge_cluster.patches.field_sets import FieldSet, make_set
from konverge_cluster.patches.json_patch import apply_json_patch, read_json_patch, unknown_operation_fields
from konverge_cluster.patches.managers import manager_name
from konverge_cluster.patches.merge_patch import apply_merge_patch
from konverge_cluster.patches.openapi import OPEN_CUSTOM_RESOURCE, Schemas, custom_resource_topology
from konverge_cluster.patches.scale import entries_of_object, entries_of_scale
from konverge_cluster.patches.strategic import apply_strategic_patch
from konverge_cluster.patches.topology import Topology
from konverge_cluster.patches.updates import keep_times, track_update

__all__ = [
    "OPEN_CUSTOM_RESOURCE",
    "Applied",
    "Endpoint",
    "FieldSet",
    "PatchError",
    "Schemas",
    "Topology",
    "apply_json_patch",
    "apply_merge_patch",
    "apply_patch",
    "apply_strategic_patch",
    "custom_resource_topology",
    "entries_of_object",
    "entries_of_scale",
    "keep_times",
    "make_set",
    "manager_name",
    "read_json_patch",
    "track_update",
    "unknown_operation_fields",
    "with_api_version",
]
