"""Object metadata, which all kinds share: decoding, validation on create, validation on update.

`decode_metadata` returns metadata in the form that the server stores: known fields only, in the server's order, empty
ones omitted, times in UTC with whole seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from konverge.objects.kinds import split_api_version
from konverge.objects.names import dns_label_errors, label_key_errors, label_value_errors
from konverge_cluster.api.field_errors import FieldError, forbidden, invalid, quote, required, too_long
from konverge_cluster.api.options import field_manager_errors

__all__ = [
    "FIELDS",
    "FieldTypeError",
    "decode_metadata",
    "json_type",
    "metadata_errors",
    "metadata_update_errors",
    "remove_duplicate_owners",
]

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")

_TEXT: Final = "string"
_NUMBER: Final = "int64"
_FLAG: Final = "bool"
_TIME: Final = "time"
_MAP: Final = "map[string]string"
_LIST: Final = "[]string"

FIELDS: Final[dict[str, Any]] = {
    "name": _TEXT,
    "generateName": _TEXT,
    "namespace": _TEXT,
    "selfLink": _TEXT,
    "uid": _TEXT,
    "resourceVersion": _TEXT,
    "generation": _NUMBER,
    "creationTimestamp": _TIME,
    "deletionTimestamp": _TIME,
    "deletionGracePeriodSeconds": _NUMBER,
    "labels": _MAP,
    "annotations": _MAP,
    "ownerReferences": (
        "OwnerReference",
        {"apiVersion": _TEXT, "kind": _TEXT, "name": _TEXT, "uid": _TEXT, "controller": _FLAG}
        | {"blockOwnerDeletion": _FLAG},
    ),
    "finalizers": _LIST,
    "managedFields": (
        "ManagedFieldsEntry",
        {"manager": _TEXT, "operation": _TEXT, "apiVersion": _TEXT, "time": _TIME, "fieldsType": _TEXT}
        | {"fieldsV1": None, "subresource": _TEXT},
    ),
}
# Pointers in the server's types: their zero is a value and is not omitted.
_MAX_PRINTED_OWNERS: Final = 10_000
_POINTERS: Final = frozenset({"deletionGracePeriodSeconds", "controller", "blockOwnerDeletion"})
# These strings are written even when they are empty.
_ALWAYS: Final = frozenset({("OwnerReference", name) for name in ("apiVersion", "kind", "name", "uid")})


class FieldTypeError(ValueError):
    """A value has a type that its field cannot hold; the message is that of Go's decoder."""


def json_type(value: Any) -> str:
    """Return the name of a value's type in the messages of Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _unmarshal(value: Any, field_path: str, field_type: str) -> FieldTypeError:
    return FieldTypeError(
        f"json: cannot unmarshal {json_type(value)} into Go struct field {field_path} of type {field_type}"
    )


def decode_metadata(
    metadata: Mapping[str, Any], path: str = "metadata", *, custom: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return metadata in the form that the server stores, with the strict decoding errors.

    The server decodes metadata of a custom resource separately, so the error names the field without its parent.

    Raises: FieldTypeError.
    """
    prefix = "ObjectMeta" if custom else f"ObjectMeta.{path}"
    decoded: dict[str, Any] = {}
    for name, field_type in FIELDS.items():
        value = metadata.get(name)
        if value is None:
            continue
        if field_type is _TEXT and type(value) is str:
            if value:
                decoded[name] = value
            continue
        shaped = _shape(value, field_type, f"{prefix}.{name}")
        # An empty list resets the managed fields, so tracking has to see it. For custom resources the real server
        # drops it here.
        if shaped or name in _POINTERS or (name == "managedFields" and not custom):
            decoded[name] = shaped
    return decoded, _unknown(metadata, path)


def _shape(value: Any, field_type: Any, field_path: str) -> Any:
    if field_type is _MAP:
        return _shape_map(value, field_path)
    if field_type is _LIST:
        return [_shape(each, _TEXT, field_path) or "" for each in _expect_list(value, field_path, "[]string")]
    if isinstance(field_type, tuple):
        return _shape_structs(value, field_type, field_path)
    return _shape_scalar(value, field_type, field_path)


def _shape_scalar(value: Any, field_type: Any, field_path: str) -> Any:
    if field_type is None or value is None:
        return value
    if field_type is _TIME:
        return _shape_time(value, field_path)
    if field_type is _NUMBER and (isinstance(value, float) or (type(value) is int and not -(2**63) <= value < 2**63)):
        raise FieldTypeError(f"json: cannot unmarshal number {value} into Go struct field {field_path} of type int64")
    expected = {_TEXT: str, _NUMBER: int, _FLAG: bool}[field_type]
    if type(value) is not expected:
        raise _unmarshal(value, field_path, field_type)
    return value


def _shape_time(value: Any, field_path: str) -> str | None:
    if not isinstance(value, str):
        raise _unmarshal(value, field_path, "string")
    if len(value) == 20 and value.endswith("Z"):
        _parse_time(value)
        return value
    # Unlike strftime, isoformat writes the year with four digits.
    return _parse_time(value).isoformat(timespec="seconds").replace("+00:00", "Z")


def _parse_time(value: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or value[10:11] not in ("T", "t"):
            raise ValueError(value)
        return time.astimezone(UTC)
    except (OverflowError, ValueError):
        text = f'parsing time {quote(value)} as "2006-01-02T15:04:05Z07:00": cannot parse {quote(value)} as "2006"'
        raise FieldTypeError(text) from None


def _shape_map(value: Any, field_path: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _unmarshal(value, field_path, _MAP)
    for each in value.values():
        if type(each) is not str:
            return {key: _shape(each, _TEXT, field_path) or "" for key, each in value.items()}
    return value


def _expect_list(value: Any, field_path: str, field_type: str) -> list[Any]:
    if not isinstance(value, list):
        raise _unmarshal(value, field_path, field_type)
    return value


def _shape_structs(value: Any, field_type: tuple[str, dict[str, Any]], field_path: str) -> list[dict[str, Any]]:
    struct, fields = field_type
    path = field_path.partition(".")[2]
    shaped = []
    for each in _expect_list(value, field_path, f"[]v1.{struct}"):
        if each is not None and not isinstance(each, dict):
            raise _unmarshal(each, field_path, f"v1.{struct}")
        found = {}
        for name, kind in fields.items():
            field = _shape((each or {}).get(name), kind, f"{struct}.{path}.{name}")
            if field or (field is not None and name in _POINTERS):
                found[name] = field
            elif (struct, name) in _ALWAYS:
                found[name] = ""
        shaped.append(found)
    return shaped


def _unknown(metadata: Mapping[str, Any], path: str) -> list[str]:
    errors = [f'unknown field "{path}.{name}"' for name in metadata if name not in FIELDS]
    for name in ("ownerReferences", "managedFields"):
        fields = FIELDS[name][1]
        items: Sequence[Mapping[str, Any]] = metadata.get(name) or ()
        for index, each in enumerate(items):
            errors += [f'unknown field "{path}.{name}[{index}].{key}"' for key in each or () if key not in fields]
    return errors


def remove_duplicate_owners(metadata: dict[str, Any]) -> list[str]:
    """Remove duplicate owner references; return their uids."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return []
    unique: dict[tuple[Any, ...], dict[str, Any]] = {}
    duplicates: list[str] = []
    for owner in owners:
        fields = tuple(sorted(owner.items()))
        if unique.setdefault(fields, owner) is not owner:
            duplicates.append(owner["uid"])
    metadata["ownerReferences"] = list(unique.values())
    return duplicates


NameRule = Callable[..., list[str]]


def metadata_errors(
    metadata: Mapping[str, Any], *, namespaced: bool, name_rule: NameRule, custom: bool
) -> list[FieldError]:
    """Return the errors in the metadata of a new object."""
    errors: list[FieldError] = []
    name, generate_name = metadata.get("name", ""), metadata.get("generateName", "")
    if generate_name:
        errors += [
            invalid("metadata.generateName", generate_name, text) for text in name_rule(generate_name, prefix=True)
        ]
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, text) for text in name_rule(name, prefix=False)]
    errors += _namespace_errors(metadata.get("namespace", ""), namespaced=namespaced)
    errors += _shared_errors(metadata)
    return errors if custom else errors + _finalizer_errors(metadata.get("finalizers", ()))


def _namespace_errors(namespace: str, *, namespaced: bool) -> list[FieldError]:
    if namespaced:
        if not namespace:
            return [required("metadata.namespace")]
        return [invalid("metadata.namespace", namespace, text) for text in _label_texts(namespace)]
    return [forbidden("metadata.namespace", "not allowed on this type")] if namespace else []


_label_texts = lru_cache(maxsize=1024)(dns_label_errors)
_key_texts = lru_cache(maxsize=4096)(label_key_errors)
_value_texts = lru_cache(maxsize=4096)(label_value_errors)


def _shared_errors(metadata: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    if metadata.get("generation", 0) < 0:
        errors.append(invalid("metadata.generation", metadata["generation"], "must be greater than or equal to 0"))
    for key, value in metadata.get("labels", {}).items():
        errors += [invalid("metadata.labels", key, text) for text in _key_texts(key)]
        errors += [invalid("metadata.labels", value, text) for text in _value_texts(value)]
    if "annotations" in metadata:
        errors += _annotation_errors(metadata["annotations"])
    if "ownerReferences" in metadata:
        errors += _owner_errors(metadata["ownerReferences"])
    if "finalizers" in metadata:
        errors += _shared_finalizer_errors(metadata["finalizers"])
    for index, entry in enumerate(metadata.get("managedFields", ())):
        errors += _managed_fields_errors(entry, f"metadata.managedFields[{index}]")
    return errors


def _annotation_errors(annotations: Mapping[str, str]) -> list[FieldError]:
    errors = []
    size = 0
    for key, value in annotations.items():
        errors += [invalid("metadata.annotations", key, text) for text in _key_texts(key.lower())]
        size += len(key) + len(value) if value.isascii() else len(key) + len(value.encode("utf-8", "surrogatepass"))
    return [*errors, too_long("metadata.annotations", _ANNOTATIONS_LIMIT)] if size > _ANNOTATIONS_LIMIT else errors


def _owner_errors(owners: list[dict[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    path = "metadata.ownerReferences"
    controller = ""
    printed = 0
    for owner in owners:
        errors += _single_owner_errors(owner, path)
        # Each error prints all references: thousands of controllers would make a response of gigabytes.
        if owner.get("controller") and printed < _MAX_PRINTED_OWNERS:
            this = f"{owner['kind']}/{owner['name']}"
            if controller:
                text = 'Only one reference can have Controller set to true. Found "true" in references for'
                references = [
                    {name: each[name] for name in FIELDS["ownerReferences"][1] if name in each} for each in owners
                ]
                errors.append(invalid(path, references, f"{text} {controller} and {this}"))
                printed += len(owners)
            else:
                controller = this
    return errors


def _single_owner_errors(owner: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    group, version = split_api_version(owner["apiVersion"])
    if not version:
        errors.append(invalid(f"{path}.apiVersion", owner["apiVersion"], "version must not be empty"))
    errors += [
        invalid(f"{path}.{name}", owner[name], "must not be empty")
        for name in ("kind", "name", "uid")
        if not owner[name]
    ]
    if (group, version, owner["kind"]) == ("", "v1", "Event"):
        errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _shared_finalizer_errors(finalizers: list[str]) -> list[FieldError]:
    path = "metadata.finalizers"
    errors = [invalid(path, name, text) for name in finalizers for text in _key_texts(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, finalizers, text))
    return errors


def _finalizer_errors(finalizers: Iterable[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(finalizers):
        path = f"metadata.finalizers[{index}]"
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(path, name, text))
    return errors


def _managed_fields_errors(entry: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    operation = entry.get("operation", "")
    if operation not in ("Apply", "Update"):
        errors.append(invalid(f"{path}.operation", operation, "must be `Apply` or `Update`"))
    if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
        errors.append(invalid(f"{path}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
    errors += field_manager_errors(entry.get("manager", ""), f"{path}.manager")
    if len(entry.get("subresource", "")) > 256:
        errors.append(too_long(f"{path}.subresource", 256))
    return errors


_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def metadata_update_errors(new: Mapping[str, Any], old: Mapping[str, Any], *, custom: bool) -> list[FieldError]:
    """Return the errors in an update of metadata."""
    errors: list[FieldError] = []
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            listed = "[]string{" + ", ".join(quote(name) for name in added) + "}"
            text = "no new finalizers can be added if the object is being deleted, found new finalizers"
            errors.append(forbidden("metadata.finalizers", f"{text} {listed}"))
    if not new.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if new.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid("metadata.generation", new.get("generation", 0), "must not be decremented"))
    for name in _IMMUTABLE:
        if new.get(name) != old.get(name):
            missing = "" if name in ("name", "namespace", "uid") else None
            errors.append(invalid(f"metadata.{name}", new.get(name, missing), "field is immutable"))
    shared = {name: value for name, value in new.items() if name not in ("generation", "finalizers")}
    errors += _shared_errors(shared)
    return errors if custom else errors + _finalizer_errors(new.get("finalizers", ()))
