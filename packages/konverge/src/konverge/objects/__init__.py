"""Kubernetes objects: keys, kinds, metadata, typed models and their value types. No I/O."""

from konverge.objects.codec import (
    decode,
    decode_list,
    decode_unstructured,
    decode_with_document,
    decoder_for,
    encode,
    from_wire,
    to_wire,
)
from konverge.objects.conditions import (
    Condition,
    HasConditions,
    find_condition,
    is_true,
    remove_condition,
    set_condition,
)
from konverge.objects.durations import Duration
from konverge.objects.edits import (
    difference,
    full_object,
    full_object_bytes,
    full_object_from,
    is_changed,
    is_same,
    merge_patch,
)
from konverge.objects.fields import FieldSelector
from konverge.objects.int_or_string import IntOrString, scaled
from konverge.objects.keys import Key
from konverge.objects.kinds import Kind, Scope, api_version_of, split_api_version
from konverge.objects.labels import LabelSelector
from konverge.objects.metadata import ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference
from konverge.objects.models import Model, field, replace
from konverge.objects.names import safe_name
from konverge.objects.quantities import Quantity, QuantityText
from konverge.objects.readiness import ObjectStatus, is_ready, object_status
from konverge.objects.resources import AnyObject, Resource, Unstructured, kind_of, labels_of, same_object
from konverge.objects.times import MicroTime, Time, now, wall_clock

__all__ = [
    "AnyObject",
    "Condition",
    "Duration",
    "FieldSelector",
    "HasConditions",
    "IntOrString",
    "Key",
    "Kind",
    "LabelSelector",
    "ListMeta",
    "ManagedFieldsEntry",
    "MicroTime",
    "Model",
    "ObjectMeta",
    "ObjectStatus",
    "OwnerReference",
    "Quantity",
    "QuantityText",
    "Resource",
    "Scope",
    "Time",
    "Unstructured",
    "api_version_of",
    "decode",
    "decode_list",
    "decode_unstructured",
    "decode_with_document",
    "decoder_for",
    "difference",
    "encode",
    "field",
    "find_condition",
    "from_wire",
    "full_object",
    "full_object_bytes",
    "full_object_from",
    "is_changed",
    "is_ready",
    "is_same",
    "is_true",
    "kind_of",
    "labels_of",
    "merge_patch",
    "now",
    "object_status",
    "remove_condition",
    "replace",
    "safe_name",
    "same_object",
    "scaled",
    "set_condition",
    "split_api_version",
    "to_wire",
    "wall_clock",
]
