"""The base strategy of the built-in kinds: decoding and tables from data, rules from the subclass.

Kinds with their own rules subclass `BuiltinStrategy` and set its flags. The rules for writes and deletes are those of
the real server's registry, kind by kind.
"""

# ruff: noqa: ARG002, ARG004

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from konverge_cluster.api.default_strategy import DefaultStrategy
from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.status_errors import bad_request
from konverge_cluster.api.strategy import Document, RequestContext, ResourceInfo, WriteRules
from konverge_cluster.api.tables import Column
from konverge_cluster.builtins import schemas, warnings
from konverge_cluster.builtins.rows import CELLS
from konverge_cluster.builtins.structs import kind_decoder, zero_value
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError

__all__ = ["BuiltinStrategy", "StatusEndpoint", "reset_metadata"]


class BuiltinStrategy(DefaultStrategy):
    """The strategy of a kind with a Go struct.

    A change of one of the top-level `generation_fields` increments the generation. If there are none, the kind has no
    generation, and one that a client sends stays. Field selectors may use the paths in `selectable_fields`. The status
    endpoint never changes the paths in `status_reset_fields`. `template_path` leads to the pod template of the kind.
    `names_pods` is true if pods are named after objects of the kind.
    """

    generation_fields: ClassVar[tuple[str, ...]] = ()
    status_reset_fields: ClassVar[tuple[str, ...]] = ("spec",)
    selectable_fields: ClassVar[tuple[str, ...]] = ()
    template_path: ClassVar[tuple[str, ...]] = ()
    names_pods: ClassVar[bool] = False

    def __init__(self, info: ResourceInfo, columns: tuple[Column, ...] = ()) -> None:
        super().__init__(info)
        self.topologies = schemas.LazyTopologies((info.kind,))
        self.field_labels = self.selectable_fields
        if columns:
            self.columns = columns
        if self.has_status:
            self._endpoints["status"] = StatusEndpoint(self)
        self._endpoints.update(self.subresource_endpoints())

    def subresource_endpoints(self) -> dict[str, WriteRules]:
        """Return the subresources besides `status` that update the object."""
        return {}

    # Decoding.

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        unknown: list[str] = []
        kind = self.info.kind
        try:
            kind_decoder(kind.api_version, kind.kind)(document, unknown)
        except UnmarshalError as error:
            raise self.unmarshal_error(error.text) from None
        return document, [f'unknown field "{path}"' for path in dict.fromkeys(unknown)]

    def unmarshal_error(self, text: str) -> Exception:
        kind = self.info.kind
        message = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {text}'
        return bad_request(message)

    def default(self, document: Document) -> None:
        self.set_defaults(document)

    @staticmethod
    def set_defaults(document: Document, /) -> None:
        """Set the defaults of the kind in place."""

    # Writes.

    def initial_status(self) -> Any:
        """Return the status of a new object."""
        kind = self.info.kind
        return zero_value(kind.api_version, kind.kind)().get("status", {})

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        if self.has_status:
            new["status"] = self.initial_status()
        if self.generation_fields:
            new["metadata"]["generation"] = 1

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        if self.has_status:
            new["status"] = old["status"]
        self.update_generation(new, old)

    def update_generation(self, new: Document, old: Document) -> None:
        """Increment the generation if one of `generation_fields` has changed."""
        if any(new.get(name) != old.get(name) for name in self.generation_fields):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:
        return list(self.check(new))

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return list(self.check_update(new, old))

    def validate_status(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return list(self.check_status(new, old))

    def warnings_on_create(self, new: Document) -> list[str]:
        name = warnings.workload_warnings(new["metadata"]["name"]) if self.names_pods else ()
        return [*name, *self._template_warnings(new)]

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        changed = new["metadata"].get("generation") != old["metadata"].get("generation")
        return self._template_warnings(new) if changed else []

    def _template_warnings(self, new: Document) -> list[str]:
        template: Any = new
        for key in self.template_path:
            template = template.get(key) or {}
        if not self.template_path or "spec" not in template:
            return []
        return list(warnings.pod_warnings(template, ".".join((*self.template_path, "spec"))))

    @staticmethod
    def check(new: Document, /) -> Iterable[FieldError]:
        """Return the errors of a new object."""
        return ()

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        """Return the errors of an updated object: those of the object and those of the change."""
        return (*self.check(new), *self.check_change(new, old))

    @staticmethod
    def check_change(new: Document, old: Document, /) -> Iterable[FieldError]:
        """Return the errors of a change, without those of the resulting object."""
        return ()

    @staticmethod
    def check_status(new: Document, old: Document, /) -> Iterable[FieldError]:
        """Return the errors of an update through the status subresource."""
        return ()

    # Views.

    def cells(self, document: Document, now: float) -> list[Any]:
        kind = self.info.kind
        write = CELLS.get((kind.group, kind.plural))
        return super().cells(document, now) if write is None else write(document, now)

    def fields(self, document: Document) -> dict[str, str]:
        return {label: _text_at(document, label.split(".")) for label in self.selectable_fields}

    def unknown_field_label(self, label: str) -> str:
        if self.selectable_fields:
            return f"field label not supported: {label}"
        return super().unknown_field_label(label)

    @property
    def schema_name(self) -> str:
        return schemas.schema_name(self.info.kind)

    def schemas(self) -> Mapping[str, Any]:
        return schemas.all_schemas()


def _text_at(document: Document, path: list[str]) -> str:
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def reset_metadata(new: Document, old: Document) -> None:
    """Restore the metadata that a status update of some kinds never changes, such as labels and owner references."""
    metadata = new["metadata"]
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"):
        _reset_field(metadata, old["metadata"], key)
    for key in ("generation", "selfLink", "ownerReferences"):
        _reset_field(metadata, old["metadata"], key)


def _reset_field(new: Document, old: Document, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


class StatusEndpoint:
    """The status subresource: restores all fields but status and metadata, and for some kinds metadata too."""

    def __init__(self, strategy: BuiltinStrategy) -> None:
        self._strategy = strategy
        self.reset_fields: tuple[str, ...] = strategy.status_reset_fields

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        writable = ("metadata", "status", "kind", "apiVersion")
        for key in [key for key in new if key not in writable]:
            del new[key]
        new.update({key: value for key, value in old.items() if key not in writable})
        if "metadata" in self.reset_fields:
            reset_metadata(new, old)
        for path in self.reset_fields:
            if path.startswith("metadata."):
                _reset_field(new["metadata"], old["metadata"], path.removeprefix("metadata."))

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return self._strategy.validate_status(new, old, context)

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []
