"""Strategic merge patch: a merge patch that merges lists by key, and supports directives.

    $patch: replace | delete                   in a map, or in an item of a list
    $retainKeys: [a, b]                        in a map: other keys are removed
    $deleteFromPrimitiveList/<field>: [x]      beside a list of scalars: these items are removed
    $setElementOrder/<field>: [x, y]           beside a list: the order of these items

Rules:

1. The kind defines which lists merge, and by which key (`x-kubernetes-patch-strategy`, `-merge-key`); all other lists
   are replaced. Maps always merge. null removes a key.
2. Items of the patch are in the patch's order and before items only in the live list, unless both are in the live list
   in the opposite order. An explicit order overrides this.
3. Where there is no live value, the patch's value is used without nulls, and without items and maps that have `$patch`.
4. Patches that the real server cannot decode fail with its texts: some with 400, others with 500.

Arguments are not changed; the result shares the parts that the patch did not change.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.errors import bad_request, internal
from konverge_cluster.patches.go_text import quote
from konverge_cluster.patches.strategic_lists import (
    DIRECTIVE,
    apply_list_directives,
    check_order,
    element_kind,
    in_order,
    merge_keyed,
    not_a_list,
    unknown_directive,
    without_duplicates,
)
from konverge_cluster.patches.topology import Field, MappingType, Node, Topology

__all__ = ["apply_strategic_patch"]

_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"


def apply_strategic_patch(document: dict[str, Any], patch: Any, *, topology: Topology) -> dict[str, Any]:
    """Apply a decoded strategic merge patch to an object of a built-in kind; return the new object.

    Raises: PatchError 400 or 500, as the real server.
    """
    if not isinstance(patch, dict | None):
        names = {list: "array", str: "string", bool: "bool"}
        kind = names.get(type(patch), "number")
        raise bad_request(f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
    return _merge_map(document, patch or {}, topology.root)


def _merge_map(original: dict[str, Any], patch: dict[str, Any], node: Node) -> dict[str, Any]:
    if DIRECTIVE in patch:
        return _apply_directive(patch)
    result, rest = _apply_retain_keys(original, patch)
    result, rest = _apply_element_order(result, rest, node)
    # Deletions first: an item that a patch both deletes and adds is then in the result.
    for key in sorted(rest, key=lambda name: not name.startswith(_DELETE)):
        if key.startswith(_DELETE):
            _delete_items(result, _field_of(key, _DELETE), rest[key], node)
        else:
            _merge_key(result, key, rest[key], node)
    return result


def _apply_directive(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise unknown_directive(directive, patch)


def _merge_key(result: dict[str, Any], key: str, value: Any, node: Node) -> None:
    before = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(before, dict) and isinstance(value, dict):
        field = _lookup(node, key)
        replaces = "replace" in field.strategies
        result[key] = value if replaces else _merge_map(before, value, field.node)
    elif isinstance(before, list) and isinstance(value, list):
        field = _lookup(node, key)
        result[key] = _merge_list(before, value, field) if "merge" in field.strategies else value
    elif _has_directive(value):
        result.pop(key, None)
    else:
        result[key] = _without_directives(_without_nulls(value))


def _delete_items(result: dict[str, Any], key: str, value: Any, node: Node) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(result.get(key), list) and isinstance(value, list):
        before = result[key]
        field = _lookup(node, key)
        if not before and not value:
            return
        if element_kind(before, value) == "map":
            result[key] = _merge_list(before, value, field)
        else:
            result[key] = [item for item in before if item not in value]


def _merge_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    if not original and not patch:
        return original
    if element_kind(original, patch) != "map":
        merged = without_duplicates([*original, *patch])
        return in_order(merged, desired=patch, live=original, key="")
    key = field.merge_key
    if not key:
        raise internal("cannot merge lists without merge key for struct")
    element = field.node.sequence.element if field.node.sequence is not None else field.node
    live, items = apply_list_directives(original, patch, key)
    merged = merge_keyed(live, items, key, lambda before, item: _merge_map(before, item, element))
    return in_order(merged, desired=items, live=live, key=key)


def _apply_retain_keys(original: dict[str, Any], patch: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Apply `$retainKeys`; return the retained object and the rest of the patch."""
    if _RETAIN not in patch:
        return dict(original), dict(patch)
    rest = {key: value for key, value in patch.items() if key != _RETAIN}
    keys = patch[_RETAIN]
    named = {key for key, value in rest.items() if value is not None and not key.startswith((_DELETE, _ORDER))}
    if not isinstance(keys, list) or not named.issubset(_hashable(keys)):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}, rest


def _hashable(items: list[Any]) -> set[str]:
    return {item for item in items if isinstance(item, str)}


def _apply_element_order(
    original: dict[str, Any], patch: dict[str, Any], node: Node
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge the lists that have a `$setElementOrder`; return the object and the rest of the patch."""
    for directive in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(directive)
        if not isinstance(order, list):
            raise not_a_list(order)
        key = _field_of(directive, _ORDER)
        live, items = _list_at(original, key), _list_at(patch, key)
        field = _lookup(node, key)
        if field.node.sequence is None:
            raise internal("expected slice or array type, but got: struct")
        check_order(items or [], order, field.merge_key)
        if live is None and items is None:
            continue
        merged = _merged_before_order(live, items, field)
        element_kind(live or [], items or [])
        original[key] = in_order(merged, desired=order, live=live or [], key=field.merge_key)
        patch.pop(key, None)
    return original, patch


def _merged_before_order(live: list[Any] | None, items: list[Any] | None, field: Field) -> list[Any]:
    if items is None:
        return live or []
    if live is None:
        return [_without_directives(item) for item in items if not _has_directive(item)]
    return _merge_list(live, items, field) if "merge" in field.strategies else items


def _list_at(container: dict[str, Any], key: str) -> list[Any] | None:
    value = container.get(key, [])
    if not isinstance(value, list):
        raise not_a_list(value)
    return value if key in container else None


def _field_of(directive: str, prefix: str) -> str:
    name, slash, key = directive.partition("/")
    if not slash or name != prefix:
        what = "primitive" if prefix == _DELETE else "setElementOrder"
        raise bad_request(f"invalid patch format of {what} list")
    return key


def _lookup(node: Node, key: str) -> Field:
    """Return the field with a name; ignore case if there is no exact match, as Go does."""
    mapping = node.mapping
    if mapping is None or not mapping.name:
        raise internal("merging an object in json but data type is not struct, instead is: map")
    return mapping.fields.get(key) or _lookup_ignoring_case(mapping, key)


def _lookup_ignoring_case(mapping: MappingType, key: str) -> Field:
    for name in sorted(mapping.fields):
        if name.casefold() == key.casefold():
            return mapping.fields[name]
    raise internal(f"unable to find api field in struct {mapping.name} for the json field {quote(key)}")


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_directives(inner) for key, inner in value.items() if not _has_directive(inner)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _has_directive(item)]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
