"""JSON merge patch (RFC 7386), as the real server applies it.

Rules:

1. null removes a key; an object is merged into an object; anything else replaces.
2. Where nothing (or null, or no object) was, nulls inside the new value are dropped, also inside objects in lists.
   The RFC keeps the latter. Where an object was and a list comes, they stay.

The document and the patch are never changed; the result shares what the patch did not touch.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.errors import bad_request

__all__ = ["apply_merge_patch"]

_KINDS = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def apply_merge_patch(document: dict[str, Any], patch: Any, *, ignore_validation: bool = False) -> dict[str, Any]:
    """Apply a decoded merge patch and give the new document.

    `lenient` is for requests with ``fieldValidation=Ignore``, where the real server says less of what is no object.

    Raises: PatchError 400 when the patch is no JSON object.
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
        was = result.get(key)
        if value is None:
            result.pop(key, None)
        elif not isinstance(was, dict):
            result[key] = _without_nulls(value)
        elif isinstance(value, dict):
            result[key] = _merge(was, value)
        else:
            result[key] = value
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
