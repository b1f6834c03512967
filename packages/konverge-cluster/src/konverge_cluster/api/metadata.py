"""Metadata, the part that all kinds share: read, checked on creation, checked on update.

`decode_metadata` gives every object's metadata the shape it has after passing through the server: known fields only, in
the server's order, empty ones left out, times in UTC with whole seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
# Pointers in the server's types: their zero is a value, not an absence.
_POINTERS: Final = frozenset({"deletionGracePeriodSeconds", "controller", "blockOwnerDeletion"})
# These texts are written even when they are empty.
_ALWAYS: Final = frozenset({("OwnerReference", name) for name in ("apiVersion", "kind", "name", "uid")})


class FieldTypeError(ValueError):
    """A value has a type that the field cannot hold; the message is the one of Go's decoder."""


def json_type(value: Any) -> str:
    """The name of a value's type in Go's messages."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _unmarshal(value: Any, where: str, wanted: str) -> FieldTypeError:
    return FieldTypeError(f"json: cannot unmarshal {json_type(value)} into Go struct field {where} of type {wanted}")


def decode_metadata(
    metadata: Mapping[str, Any], path: str = "metadata", *, custom: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return metadata in the server's shape, and what a strict reader objects to.

    Raises: FieldTypeError. Metadata of custom resources is read on its own, so the text names the field without its parent.
    """
    place = "ObjectMeta" if custom else f"ObjectMeta.{path}"
    decoded: dict[str, Any] = {}
    for name, wanted in FIELDS.items():
        value = metadata.get(name)
        if value is None:
            continue
        if wanted is _TEXT and type(value) is str:
            if value:
                decoded[name] = value
            continue
        shaped = _shape(value, wanted, f"{place}.{name}")
        # An empty list of managed fields is a wish to forget them, which whoever tracks them has to see. Custom
        # resources lose it on the way.
        if shaped or name in _POINTERS or (name == "managedFields" and not custom):
            decoded[name] = shaped
    return decoded, _unknown(metadata, path)


def _shape(value: Any, wanted: Any, where: str) -> Any:
    if wanted is _MAP:
        return _shape_map(value, where)
    if wanted is _LIST:
        return [_shape(each, _TEXT, where) or "" for each in _listed(value, where, "[]string")]
    if isinstance(wanted, tuple):
        return _shape_structs(value, wanted, where)
    return _shape_scalar(value, wanted, where)


def _shape_scalar(value: Any, wanted: Any, where: str) -> Any:
    if wanted is None or value is None:
        return value
    if wanted is _TIME:
        return _shape_time(value, where)
    if wanted is _NUMBER and isinstance(value, float):
        raise FieldTypeError(f"json: cannot unmarshal number {value} into Go struct field {where} of type int64")
    expected = {_TEXT: str, _NUMBER: int, _FLAG: bool}[wanted]
    if type(value) is not expected:
        raise _unmarshal(value, where, wanted)
    return value


def _shape_time(value: Any, where: str) -> str | None:
    if not isinstance(value, str):
        raise _unmarshal(value, where, "string")
    if len(value) == 20 and value.endswith("Z"):
        _moment(value)
        return value
    return _moment(value).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None or value[10:11] not in ("T", "t"):
            raise ValueError(value)
    except ValueError:
        text = f'parsing time {quote(value)} as "2006-01-02T15:04:05Z07:00": cannot parse {quote(value)} as "2006"'
        raise FieldTypeError(text) from None
    return moment


def _shape_map(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _unmarshal(value, where, _MAP)
    for each in value.values():
        if type(each) is not str:
            return {key: _shape(each, _TEXT, where) or "" for key, each in value.items()}
    return value


def _listed(value: Any, where: str, wanted: str) -> list[Any]:
    if not isinstance(value, list):
        raise _unmarshal(value, where, wanted)
    return value


def _shape_structs(value: Any, wanted: tuple[str, dict[str, Any]], where: str) -> list[dict[str, Any]]:
    struct, fields = wanted
    path = where.partition(".")[2]
    shaped = []
    for each in _listed(value, where, f"[]v1.{struct}"):
        if each is not None and not isinstance(each, dict):
            raise _unmarshal(each, where, f"v1.{struct}")
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
    problems = [f'unknown field "{path}.{name}"' for name in metadata if name not in FIELDS]
    for name in ("ownerReferences", "managedFields"):
        fields = FIELDS[name][1]
        for index, each in enumerate(metadata.get(name) or ()):
            problems += [f'unknown field "{path}.{name}[{index}].{key}"' for key in each or () if key not in fields]
    return problems


def remove_duplicate_owners(metadata: dict[str, Any]) -> list[str]:
    """Drop owner references that repeat another one; return their uids."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return []
    kept: list[dict[str, Any]] = []
    repeated: dict[str, None] = {}
    for owner in owners:
        if owner in kept:
            repeated[owner["uid"]] = None
        else:
            kept.append(owner)
    metadata["ownerReferences"] = kept
    return list(repeated)


NameRule = Callable[..., list[str]]


def metadata_errors(
    metadata: Mapping[str, Any], *, namespaced: bool, name_rule: NameRule, custom: bool
) -> list[FieldError]:
    """Say what is wrong with the metadata of a new object."""
    problems: list[FieldError] = []
    name, stem = metadata.get("name", ""), metadata.get("generateName", "")
    if stem:
        problems += [invalid("metadata.generateName", stem, text) for text in name_rule(stem, prefix=True)]
    if not name:
        problems.append(required("metadata.name", "name or generateName is required"))
    else:
        problems += [invalid("metadata.name", name, text) for text in name_rule(name, prefix=False)]
    problems += _namespace_problems(metadata.get("namespace", ""), namespaced=namespaced)
    problems += _shared_problems(metadata)
    return problems if custom else problems + _finalizer_problems(metadata.get("finalizers", ()))


def _namespace_problems(namespace: str, *, namespaced: bool) -> list[FieldError]:
    if namespaced:
        if not namespace:
            return [required("metadata.namespace")]
        return [invalid("metadata.namespace", namespace, text) for text in _label_texts(namespace)]
    return [forbidden("metadata.namespace", "not allowed on this type")] if namespace else []


_label_texts = lru_cache(maxsize=1024)(dns_label_errors)
_key_texts = lru_cache(maxsize=4096)(label_key_errors)
_value_texts = lru_cache(maxsize=4096)(label_value_errors)


def _shared_problems(metadata: Mapping[str, Any]) -> list[FieldError]:
    problems: list[FieldError] = []
    if metadata.get("generation", 0) < 0:
        problems.append(invalid("metadata.generation", metadata["generation"], "must be greater than or equal to 0"))
    for key, value in metadata.get("labels", {}).items():
        problems += [invalid("metadata.labels", key, text) for text in _key_texts(key)]
        problems += [invalid("metadata.labels", value, text) for text in _value_texts(value)]
    if "annotations" in metadata:
        problems += _annotation_problems(metadata["annotations"])
    if "ownerReferences" in metadata:
        problems += _owner_problems(metadata["ownerReferences"])
    if "finalizers" in metadata:
        problems += _shared_finalizer_problems(metadata["finalizers"])
    for index, entry in enumerate(metadata.get("managedFields", ())):
        problems += _managed_problems(entry, f"metadata.managedFields[{index}]")
    return problems


def _annotation_problems(annotations: Mapping[str, str]) -> list[FieldError]:
    problems = []
    size = 0
    for key, value in annotations.items():
        problems += [invalid("metadata.annotations", key, text) for text in _key_texts(key.lower())]
        size += len(key) + len(value) if value.isascii() else len(key) + len(value.encode("utf-8", "surrogatepass"))
    return [*problems, too_long("metadata.annotations", _ANNOTATIONS_LIMIT)] if size > _ANNOTATIONS_LIMIT else problems


def _owner_problems(owners: list[dict[str, Any]]) -> list[FieldError]:
    problems: list[FieldError] = []
    path = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        problems += _one_owner_problems(owner, path)
        if owner.get("controller"):
            this = f"{owner['kind']}/{owner['name']}"
            if controller:
                text = 'Only one reference can have Controller set to true. Found "true" in references for'
                shown = [{name: each[name] for name in FIELDS["ownerReferences"][1] if name in each} for each in owners]
                problems.append(invalid(path, shown, f"{text} {controller} and {this}"))
            else:
                controller = this
    return problems


def _one_owner_problems(owner: dict[str, Any], path: str) -> list[FieldError]:
    problems = []
    group, version = split_api_version(owner["apiVersion"])
    if not version:
        problems.append(invalid(f"{path}.apiVersion", owner["apiVersion"], "version must not be empty"))
    problems += [
        invalid(f"{path}.{name}", owner[name], "must not be empty")
        for name in ("kind", "name", "uid")
        if not owner[name]
    ]
    if (group, version, owner["kind"]) == ("", "v1", "Event"):
        problems.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return problems


def _shared_finalizer_problems(finalizers: list[str]) -> list[FieldError]:
    path = "metadata.finalizers"
    problems = [invalid(path, name, text) for name in finalizers for text in _key_texts(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        problems.append(invalid(path, finalizers, text))
    return problems


def _finalizer_problems(finalizers: Iterable[str]) -> list[FieldError]:
    problems: list[FieldError] = []
    for index, name in enumerate(finalizers):
        path = f"metadata.finalizers[{index}]"
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            problems.append(invalid(path, name, text))
    return problems


def _managed_problems(entry: Mapping[str, Any], path: str) -> list[FieldError]:
    problems = []
    operation = entry.get("operation", "")
    if operation not in ("Apply", "Update"):
        problems.append(invalid(f"{path}.operation", operation, "must be `Apply` or `Update`"))
    if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
        problems.append(invalid(f"{path}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
    problems += field_manager_errors(entry.get("manager", ""), f"{path}.manager")
    if len(entry.get("subresource", "")) > 256:
        problems.append(too_long(f"{path}.subresource", 256))
    return problems


_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def metadata_update_errors(new: Mapping[str, Any], old: Mapping[str, Any], *, custom: bool) -> list[FieldError]:
    """Say what is wrong with a change of metadata."""
    problems: list[FieldError] = []
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            listed = "[]string{" + ", ".join(quote(name) for name in added) + "}"
            text = "no new finalizers can be added if the object is being deleted, found new finalizers"
            problems.append(forbidden("metadata.finalizers", f"{text} {listed}"))
    if not new.get("resourceVersion"):
        problems.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if new.get("generation", 0) < old.get("generation", 0):
        problems.append(invalid("metadata.generation", new.get("generation", 0), "must not be decremented"))
    for name in _IMMUTABLE:
        if new.get(name) != old.get(name):
            missing = "" if name in ("name", "namespace", "uid") else None
            problems.append(invalid(f"metadata.{name}", new.get(name, missing), "field is immutable"))
    shared = {name: value for name, value in new.items() if name not in ("generation", "finalizers")}
    problems += _shared_problems(shared)
    return problems if custom else problems + _finalizer_problems(new.get("finalizers", ()))
