"""JSON merge patch (RFC 7386), as the real server applies it.

Rules:

1. null removes a key; an object is merged into an object; any other value replaces the old one.
2. Where the old value is missing, null or not an object, nulls inside the new value are dropped, even inside objects in
   lists, where the RFC keeps them. Where a list replaces an object, they are kept.

The document and the patch are never changed; the result shares the parts that the patch did not change.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.errors import bad_request

__all__ = ["apply_merge_patch"]

_KINDS = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def apply_merge_patch(document: dict[str, Any], patch: Any, *, ignore_validation: bool = False) -> dict[str, Any]:
    """Apply a decoded merge patch; return the new document.

    `ignore_validation` is for requests with ``fieldValidation=Ignore``, where the error of the real server is shorter.

    Raises: PatchError 400 when the patch is not a JSON object.
    """
    if patch is None or (ignore_validation and not isinstance(patch, dict)):
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = _KINDS[type(patch)]
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merge(document, patch)


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(document)
    for key, value in patch.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif not isinstance(before, dict):
            result[key] = _without_nulls(value)
        elif isinstance(value, dict):
            result[key] = _merge(before, value)
        else:
            result[key] = value
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
