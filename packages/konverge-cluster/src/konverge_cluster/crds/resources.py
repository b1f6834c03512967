"""The strategy of one served version of a custom resource."""

# ruff: noqa: ARG002

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from konverge.objects.names import label_key_errors
from konverge_cluster.api.default_strategy import DefaultStrategy
from konverge_cluster.api.field_errors import FieldError, quote
from konverge_cluster.api.status_errors import bad_request, forbidden
from konverge_cluster.api.strategy import Document, RequestContext, ResourceInfo, SubresourceInfo
from konverge_cluster.builtins.schemas import merge_schemas
from konverge_cluster.cel.go_floats import go_float
from konverge_cluster.crds.columns import TableColumns
from konverge_cluster.crds.compiled import CompiledSchema
from konverge_cluster.crds.conversions import Converter
from konverge_cluster.crds.definitions import Definition, Version
from konverge_cluster.crds.embedded import EmbeddedResourceError
from konverge_cluster.crds.jsonpath import PathError, compile_path
from konverge_cluster.crds.openapi import component_schemas, model_name
from konverge_cluster.crds.printable_values import normalize_numbers
from konverge_cluster.crds.scaling import ScalePaths
from konverge_cluster.patches.openapi import custom_resource_topology
from konverge_cluster.patches.topology import Topology

__all__ = ["CustomResourceStrategy", "EncodingVersion"]

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")
_STANDARD_FINALIZERS: Final = ("orphan", "foregroundDeletion", "kubernetes")
_TERMINATING: Final = "create not allowed while custom resource definition is terminating"


@dataclass(frozen=True, slots=True)
class EncodingVersion:
    """The encoding of a stored object: its version, its schema, and whether its defaults are set."""

    version: str
    schema: CompiledSchema
    complete: bool = True


class _Topologies(Mapping[str, Topology]):
    """The merge topology of lists and maps in each version, computed on demand."""

    def __init__(self, definition: Definition) -> None:
        self._schemas = {f"{definition.group}/{each.name}": each.schema for each in definition.versions}
        self._made: dict[str, Topology] = {}

    def __getitem__(self, api_version: str) -> Topology:
        made = self._made.get(api_version)
        if made is None:
            schema = self._schemas[api_version]
            made = self._made[api_version] = custom_resource_topology(schema, merge_schemas())
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)


class CustomResourceStrategy(DefaultStrategy):
    """The strategy of one version of a custom resource.

    `schemas_by_version` has the compiled schema of every version: an object is stored in one of them, and is pruned and
    defaulted by that one before it is converted.
    """

    custom = True
    strategic = False
    unconditional_update = False
    generation = True

    def __init__(
        self,
        definition: Definition,
        version: Version,
        schemas_by_version: Mapping[str, CompiledSchema],
        converter: Converter,
    ) -> None:
        super().__init__(_info(definition, version))
        self._definition = definition
        self._version = version
        self._schemas = schemas_by_version
        self._schema = schemas_by_version[version.name]
        self._converter = converter
        self._scale = ScalePaths(version.scale) if version.scale is not None else None
        self._table = TableColumns(version.columns)
        self._selectable = {path.removeprefix("."): compile_path(path) for path in version.selectable}
        self.topologies = _Topologies(definition)
        self.scaling = self._scale.scaling if self._scale is not None else None
        self.columns = self._table.columns
        self.field_labels = tuple(self._selectable)
        self._schema_name = model_name(definition.group, version.name, definition.kind)
        self.encoding_version = self._own_encoding_version()
        self.deprecation = definition.deprecation(version)

    def _own_encoding_version(self) -> EncodingVersion:
        stored = self._definition.stored_version
        same = self._schemas[stored.name] is self._schema and not self._by_webhook
        return EncodingVersion(stored.name if same else self._version.name, self._schema)

    @property
    def schema_name(self) -> str:
        return self._schema_name

    @property
    def _by_webhook(self) -> bool:
        return self._definition.conversion.get("strategy") == "Webhook"

    # Decoding and conversion.

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        try:
            unknown = self._schema.read(document)
        except EmbeddedResourceError as error:
            kind = self.info.kind
            text = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error.error}'
            raise bad_request(text) from None
        return document, [f'unknown field "{path}"' for path in unknown]

    def default(self, document: Document) -> None:
        self._schema.fill(document)

    def convert(self, document: Document, api_version: str) -> Document:
        return self._converter.convert_cached(document, api_version)

    async def from_storage(self, stored: Sequence[tuple[Document, object]]) -> list[Document]:
        documents = [self._upgrade(document, encoding_version) for document, encoding_version in stored]
        own = self.info.kind.api_version
        if all(document["apiVersion"] == own for document in documents):
            return documents
        converted = await self._converter.convert(documents, own)
        for document in converted:
            self._schema.read(document)
        return converted

    def _upgrade(self, document: Document, encoding_version: object) -> Document:
        """Return a stored object, pruned and defaulted by the current schema of its version."""
        stored = self._definition.stored_version.name
        version = (
            encoding_version.version
            if isinstance(encoding_version, EncodingVersion) and encoding_version.version in self._schemas
            else stored
        )
        document["kind"] = self.info.kind.kind
        document["apiVersion"] = f"{self._definition.group}/{version}"
        schema = self._schemas[version]
        schema.read(document)
        schema.fill(document)
        return document

    async def to_storage(self, document: Document) -> tuple[Document, object]:
        stored = self._definition.stored_version.name
        document = normalize_numbers(document)
        if stored == self._version.name:
            return document, EncodingVersion(stored, self._schema)
        # The caller continues to use its document.
        [converted] = await self._converter.convert([dict(document)], f"{self._definition.group}/{stored}")
        schema = self._schemas[stored]
        schema.read(converted)
        return converted, EncodingVersion(stored, schema, complete=False)

    # Validation of writes.

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        if self._definition.terminating:
            kind = self.info.kind
            raise forbidden(kind.group, kind.plural, new["metadata"].get("name", ""), _TERMINATING)
        super().prepare_create(new, context)

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:
        return self._schema.errors(new, self._scale)

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return self._schema.update_errors(new, old, self._scale)

    def validate_status(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return self._schema.status_errors(new, old, self._scale)

    def warnings_on_create(self, new: Document) -> list[str]:
        return _finalizer_warnings(new["metadata"].get("finalizers", ()))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        before = old["metadata"].get("finalizers", ())
        added = [name for name in new["metadata"].get("finalizers", ()) if name not in before]
        return [*self._schema.update_warnings(new, old), *_finalizer_warnings(added)]

    # Representations.

    def fields(self, document: Document) -> dict[str, str]:
        return {name: _field_text(find, document) for name, find in self._selectable.items()}

    def unknown_field_label(self, label: str) -> str:
        return f"field label not supported: {label}"

    def cells(self, document: Document, now: float) -> list[Any]:
        return self._table.cells(document, now)

    def schemas(self) -> Mapping[str, Any]:
        return component_schemas(self._definition, self._version)


def _info(definition: Definition, version: Version) -> ResourceInfo:
    subresources = []
    if version.has_status:
        subresources.append(SubresourceInfo("status", definition.kind, _SUBRESOURCE_VERBS))
    if version.scale is not None:
        subresources.append(SubresourceInfo("scale", "Scale", _SUBRESOURCE_VERBS, "autoscaling", "v1"))
    return ResourceInfo(
        kind=definition.kind_in(version.name),
        storage=definition.storage,
        verbs=_VERBS,
        singular=definition.singular,
        list_kind=definition.list_kind,
        short_names=definition.short_names,
        categories=definition.categories,
        subresources=tuple(subresources),
        storage_version_hash=_storage_hash(definition),
    )


def _storage_hash(definition: Definition) -> str:
    stored = f"{definition.group}/{definition.stored_version.name}/{definition.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _field_text(find: Any, document: Document) -> str:
    try:
        found = find(document)
    except PathError:
        return ""
    value = found[0] if found else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else go_float(value)


def _finalizer_warnings(names: Sequence[str]) -> list[str]:
    warnings = []
    for name in sorted(set(names)):
        start = f"metadata.finalizers: {quote(name)}: "
        warnings += [start + text for text in label_key_errors(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            rest = "to avoid accidental conflicts with other finalizer writers"
            warnings.append(f"{start}prefer a domain-qualified finalizer name{path} {rest}")
    return warnings
