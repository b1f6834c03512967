"""The strategy of CustomResourceDefinitions: decoding, defaults, validation and deletion."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge_cluster.api.field_errors import FieldError, invalid, required
from konverge_cluster.api.names import subdomain_name_errors
from konverge_cluster.api.strategy import Document, RequestContext, ResourceInfo
from konverge_cluster.api.tables import Column
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.crds.approvals import APPROVED, approval_state, is_protected
from konverge_cluster.crds.conditions import CLEANUP, set_condition
from konverge_cluster.crds.definition_rules import names_errors, spec_errors, stored_errors
from konverge_cluster.crds.definitions import is_true
from konverge_cluster.crds.schema_checks import RuleCompiler, schema_errors, unrecognized_formats

__all__ = ["DefinitionStrategy"]


class DefinitionStrategy(BuiltinStrategy):
    """Custom resource definitions.

    An accepted definition can be served: its schemas are structural, its defaults valid, its rules compiled.
    """

    generation_fields = ("spec",)
    unconditional_update = False

    def __init__(self, info: ResourceInfo, columns: tuple[Column, ...], rules: RuleCompiler) -> None:
        super().__init__(info, columns)
        self._rules = rules

    @staticmethod
    def set_defaults(document: Document, /) -> None:
        spec = document.get("spec") or {}
        names = spec.get("names") or {}
        kind = names.get("kind", "")
        if not names.get("singular") and kind:
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        spec.setdefault("conversion", {"strategy": "None"})
        service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        status = document.setdefault("status", {})
        if not status.get("storedVersions"):
            status["storedVersions"] = _storage_names(spec) or None

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        new["status"]["storedVersions"] = _storage_names(new["spec"]) or None

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        stored = new["status"].get("storedVersions") or []
        added = [name for name in _storage_names(new["spec"]) if name not in stored]
        if added:
            new["status"] = {**new["status"], "storedVersions": [*stored, *added]}

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return subdomain_name_errors(name, prefix=prefix)

    def errors(self, new: Document) -> Iterator[FieldError]:
        spec, status = new["spec"], new.get("status") or {}
        yield from spec_errors(spec, self._check_schema)
        yield from names_errors(status.get("acceptedNames") or {}, "status.acceptedNames")
        yield from stored_errors(status.get("storedVersions") or [], spec.get("versions") or [])

    def _check_schema(self, schema: Mapping[str, Any], path: str, has_status: bool) -> list[FieldError]:
        return schema_errors(schema, path, has_status, self._rules)

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:
        names = new["spec"].get("names") or {}
        name = new["metadata"].get("name", "")
        found: list[FieldError] = []
        if name != f"{names.get('plural', '')}.{new['spec'].get('group', '')}":
            found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        return [*found, *self.errors(new), *_approval_errors(new, None), *_preserve_errors(new)]

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        found = [*self.errors(new), *_immutable_errors(new, old)]
        return [*found, *_approval_errors(new, old), *_preserve_errors(new)]

    def validate_status(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        status = new.get("status") or {}
        return list(names_errors(status.get("acceptedNames") or {}, "status.acceptedNames"))

    def warnings_on_create(self, new: Document) -> list[str]:
        return [f'unrecognized format "{name}"' for name in _formats(new)]

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        before = set(_formats(old))
        return [f'unrecognized format "{name}"' for name in _formats(new) if name not in before]

    # Deletion: the first request sets the deletion timestamp, the instances are deleted, then the definition.

    def is_deletion_blocked(self, document: Document) -> bool:
        return "deletionTimestamp" not in document["metadata"]

    def mark_deleted(self, document: Document) -> None:
        metadata = document["metadata"]
        # A definition is not marked like other objects: it keeps its generation and has no grace period.
        metadata["generation"] -= 1
        metadata.pop("deletionGracePeriodSeconds", None)
        if CLEANUP not in metadata.get("finalizers", ()):
            metadata["finalizers"] = [*metadata.get("finalizers", ()), CLEANUP]
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        set_condition(
            document, "Terminating", "True", "InstanceDeletionPending", text, now=metadata["deletionTimestamp"]
        )


def _storage_names(spec: Mapping[str, Any]) -> list[str]:
    return [each.get("name", "") for each in spec.get("versions") or () if each.get("storage")][:1]


def _formats(document: Document) -> list[str]:
    versions = document["spec"].get("versions") or ()
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in versions]
    found = [name for schema in schemas if schema for name in unrecognized_formats(schema)]
    return list(dict.fromkeys(found))


def _immutable_errors(new: Document, old: Document) -> Iterator[FieldError]:
    paths = [("group",), ("names", "plural")]
    if is_true(old, "Established"):
        paths = [("scope",), ("names", "kind"), *paths]
    for path in paths:
        value, before = new["spec"], old["spec"]
        for key in path:
            value, before = value.get(key, ""), before.get(key, "")
        if value != before:
            yield invalid(f"spec.{'.'.join(path)}", value, "field is immutable")


def _approval_errors(new: Document, old: Document | None) -> Iterator[FieldError]:
    if not is_protected(new["spec"].get("group", "")):
        return
    state, text = approval_state(new)
    if old is not None and approval_state(old)[0] == state:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if state == "missing":
        yield required(path, text)
    elif state == "invalid":
        yield invalid(path, new["metadata"]["annotations"][APPROVED], text)


def _preserve_errors(new: Document) -> Iterator[FieldError]:
    if new["spec"].get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", True, text)
