"""Validation of the defaults in a schema: pruned, of the right type, within bounds, with valid metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.crds.defaulting import copy_json
from konverge_cluster.crds.embedded import EmbeddedResourceError, compile_embedded, embedded_errors, read_embedded
from konverge_cluster.crds.printable_values import printable_value
from konverge_cluster.crds.pruning import compile_pruning
from konverge_cluster.crds.structural import META_FIELDS, Structural
from konverge_cluster.crds.values import Checker, value_errors

__all__ = ["RuleCheck", "default_errors"]

RuleCheck = Callable[[Structural, Any, str, bool], list[FieldError]]
"""Checks a default against the rules of its schema: `check(schema, default, path, is_resource_root)`."""

_IDENTITY: Final = {"apiVersion": "validation/v1", "kind": "Validation"}


def default_errors(schema: Structural, path: str, check_rules: RuleCheck) -> list[FieldError]:
    """Return the errors of the defaults in a root schema."""
    resource = replace(schema, embedded=True)
    return list(_Walk(resource, check_rules).visit(resource, path, (), root=True))


class _Walk:
    """A walk through a resource. `steps` lead from the root of the resource to a schema; None is any item of a list."""

    def __init__(self, resource: Structural, check_rules: RuleCheck) -> None:
        self._resource = resource
        self._check_rules = check_rules

    def visit(
        self, schema: Structural, path: str, steps: tuple[str | None, ...], *, root: bool
    ) -> Iterator[FieldError]:
        if schema.embedded and not root:
            yield from _Walk(schema, self._check_rules).visit(schema, path, (), root=True)
            return
        if schema.default is not None:
            yield from self._default(schema, f"{path}.default", steps, root=root)
        if schema.items is not None:
            yield from self.visit(schema.items, f"{path}.items", (*steps, None), root=False)
        for name, each in schema.properties.items():
            yield from self.visit(each, f"{path}.properties[{name}]", (*steps, name), root=False)

    def _default(
        self, schema: Structural, path: str, steps: tuple[str | None, ...], *, root: bool
    ) -> Iterator[FieldError]:
        if steps and steps[0] in META_FIELDS:
            found = self._metadata_errors(schema, path, steps)
        else:
            found = []
            if not _is_pruned(schema, root=root):
                found.append(invalid(path, printable_value(schema.default), "must not have unknown fields"))
            found += _resource_errors(schema, path)
        yield from found
        bad = [each for each in found if each.detail != "must not have unknown fields"]
        if not bad:
            values = value_errors(Checker(schema.raw, root=True), schema.default, base=path)
            yield from values or self._check_rules(schema, schema.default, path, root)

    def _metadata_errors(self, schema: Structural, path: str, steps: tuple[str | None, ...]) -> list[FieldError]:
        """Validate the metadata of an otherwise empty resource that has the default in its place."""
        value: Any = copy_json(schema.default)
        for step in reversed(steps):
            value = [value] if step is None else {step: value}
        whole: dict[str, Any] = _IDENTITY | value
        find = compile_embedded(self._resource, with_root=True)
        assert find is not None
        try:
            read_embedded(find, whole)
        except EmbeddedResourceError as error:
            return [invalid(path, printable_value(schema.default), f"must result in valid metadata: {error.error}")]
        found = embedded_errors(find, whole)
        if not found:
            return []
        message = str(found[0]) if len(found) == 1 else f"[{', '.join(map(str, found))}]"
        return [invalid(path, printable_value(schema.default), f"must result in valid metadata: {message}")]


def _is_pruned(schema: Structural, *, root: bool) -> bool:
    value = copy_json(schema.default)
    if root:
        return not isinstance(value, dict) or not compile_pruning(schema)(value)
    return not compile_pruning(Structural(properties={"value": schema}))({"value": value})


def _resource_errors(schema: Structural, path: str) -> list[FieldError]:
    find = compile_embedded(schema, with_root=True)
    if find is None:
        return []
    value = copy_json(schema.default)
    try:
        read_embedded(find, value, (None, path))
    except EmbeddedResourceError as error:
        return [error.error]
    return embedded_errors(find, value, (None, path))
