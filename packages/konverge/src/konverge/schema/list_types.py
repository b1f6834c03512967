"""List types: the server's rules for lists that are sets or maps."""

from __future__ import annotations

from konverge.schema.primitives import Schema
from konverge.schema.schema_errors import unsupported_type

__all__ = ["check_list_type"]


def check_list_type(schema: Schema, path: str) -> None:
    """Check the items of a list against its list type.

    Raises: TypeError if the server would reject the combination.
    """
    kind = schema.get("x-kubernetes-list-type")
    items: Schema = schema["items"]
    if kind in ("set", "map") and items.get("nullable"):
        raise unsupported_type(f"{path}[]", f"the items of a list that is a {kind} cannot be null", "remove None")
    if kind == "set":
        _check_set(items, path)
    elif kind == "map":
        _check_map(schema["x-kubernetes-list-map-keys"], items, path)


def _check_set(items: Schema, path: str) -> None:
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        raise unsupported_type(
            f"{path}[]", "the structs in a set are compared as a whole", "make the struct atomic=True"
        )
    if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        raise unsupported_type(f"{path}[]", "the lists in a set are compared as a whole", "write Atomic() on them")
    if "type" not in items and "x-kubernetes-int-or-string" not in items:
        raise unsupported_type(f"{path}[]", "a set needs items of a known type", "write a list")


def _check_map(keys: list[str], items: Schema, path: str) -> None:
    if items.get("type") != "object" or "properties" not in items:
        raise unsupported_type(f"{path}[]", "a ListMap needs structs as items", "write list[...] of a Spec")
    if len(set(keys)) != len(keys):
        raise unsupported_type(path, f"ListMap{tuple(keys)} repeats a key", "list each key once")
    for key in keys:
        part = items["properties"].get(key)
        if part is None:
            raise unsupported_type(
                f"{path}[].{key}", f"the list-map key {key!r} is not a field", "write a wire name of the item"
            )
        if part.get("type") not in ("string", "integer", "number", "boolean"):
            raise unsupported_type(
                f"{path}[].{key}", "a list-map key must be a scalar", "write a field of type str, int or bool"
            )
        if part.get("nullable"):
            raise unsupported_type(f"{path}[].{key}", "a list-map key cannot be null", "remove None from its type")
        if key not in items.get("required", ()) and "default" not in part:
            raise unsupported_type(
                f"{path}[].{key}", "a list-map key must always be set", "make it required or add a default"
            )
