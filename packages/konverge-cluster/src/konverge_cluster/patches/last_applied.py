"""Migration from kubectl's client-side apply, which stores its last configuration in an annotation.

1. The manager `kubectl` may take over fields of that configuration without a conflict, if their values are unchanged.
2. While the annotation exists, an apply by `kubectl` updates it with the new configuration, so that a later client-side
   apply works.
"""

from __future__ import annotations

import json
from typing import Any

from konverge_cluster.patches.comparison import compare, fields_of
from konverge_cluster.patches.elements import PathElementError
from konverge_cluster.patches.endpoints import Endpoint
from konverge_cluster.patches.field_sets import FieldSet, difference
from konverge_cluster.patches.go_text import compact_json
from konverge_cluster.patches.validation import ValidationError, validate

__all__ = ["ANNOTATION", "client_side_fields", "with_last_applied"]

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS = 256 * 1024


def client_side_fields(endpoint: Endpoint, live: dict[str, Any]) -> FieldSet:
    """Return the fields that client-side apply wrote, and whose values are unchanged since."""
    try:
        desired = json.loads(_annotations(live).get(ANNOTATION) or "null")
    except ValueError:
        return {}
    if not isinstance(desired, dict) or desired.get("apiVersion") != endpoint.api_version:
        return {}
    root = endpoint.topology.root
    try:
        validate(root, live)
        validate(root, desired)
        changed, removed = compare(root, desired, live)
        return difference(difference(fields_of(root, desired), changed), removed)
    except (ValidationError, PathElementError):
        return {}


def with_last_applied(obj: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return the object with its last-applied annotation, if it has one, updated to the new configuration."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    annotations = {**annotations, ANNOTATION: compact_json(_without_annotation(config)) + "\n"}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _without_annotation(config: dict[str, Any]) -> dict[str, Any]:
    annotations = _annotations(config)
    if ANNOTATION not in annotations:
        return config
    rest = {key: value for key, value in annotations.items() if key != ANNOTATION}
    return {**config, "metadata": {**config["metadata"], "annotations": rest}}


def _annotations(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
