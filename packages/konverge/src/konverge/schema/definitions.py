"""The definition of a kind apart from its schema: names, scope, subresources, columns.

`Definition` is built from the class keywords of a `CustomResource` and checked against the schema immediately. So an
error is raised where the class is written, and not when the CRD is applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Final, Literal, Required, TypedDict

from msgspec import Struct

from konverge.objects.kinds import Kind, Scope
from konverge.schema.markers import Rule
from konverge.schema.names import check_group, check_label, plural_of
from konverge.schema.paths import column_type, schema_at
from konverge.schema.primitives import Schema
from konverge.schema.schema_errors import invalid_value

__all__ = ["AGE", "Column", "Definition", "DefinitionKeywords", "Scale"]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("binary", "byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE: Final = 8
_MAX_WARNING: Final = 256


class Column(Struct, frozen=True):
    """A column of `kubectl get`: `Column("Replicas", ".spec.replicas")`. The type is that of the schema by default.

    Columns with a priority above 0 are shown with `-o wide` only. A kind with columns has no Age column unless it lists
    `AGE`.
    """

    name: str
    path: str
    type: str = ""
    priority: int = 0
    description: str = ""
    format: str = ""


AGE: Final = Column("Age", ".metadata.creationTimestamp", type="date")
"""The column that a kind without columns has by default."""


class Scale(Struct, frozen=True):
    """The scale subresource: the JSON paths that `kubectl scale` and autoscalers read and write."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


_ENTRIES: Final[dict[str, type]] = {
    "short_names": str,
    "categories": str,
    "columns": Column,
    "selectable": str,
    "rules": Rule,
}
_SINGLE: Final[dict[str, type | UnionType]] = {
    **dict.fromkeys(("group", "version", "kind", "plural", "singular", "list_kind"), str),
    **dict.fromkeys(("status", "storage", "served"), bool),
    "deprecated": bool | str,
    "scale": Scale | None,
}


class DefinitionKeywords(TypedDict, total=False):
    """The class keywords of a custom resource, as type checkers see them; `Definition` has the meanings."""

    group: Required[str]
    version: Required[str]
    kind: str
    plural: str
    singular: str
    list_kind: str
    short_names: str | Iterable[str]
    categories: str | Iterable[str]
    scope: Scope | Literal["Namespaced", "Cluster"]
    columns: Column | Iterable[Column]
    selectable: str | Iterable[str]
    scale: Scale | None
    status: bool
    storage: bool
    served: bool
    deprecated: bool | str
    rules: Rule | Iterable[Rule]


class Definition(Struct, frozen=True):
    """A kind as described by its class keywords.

    `status` enables the status subresource. `deprecated` is False, True, or the warning that clients receive.
    """

    group: str
    version: str
    kind: str
    plural: str = ""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scope: Scope = Scope.NAMESPACED
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    scale: Scale | None = None
    status: bool = True
    storage: bool = True
    served: bool = True
    deprecated: bool | str = False
    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, name: str, keywords: Mapping[str, Any]) -> Definition:
        """Return the definition of the class `name`; a single value for a tuple counts as its only entry.

        Raises: ValueError for a name that the server rejects, TypeError for a keyword of the wrong type.
        """
        values = dict(keywords)
        for key, type_ in _ENTRIES.items():
            value = values.get(key, ())
            values[key] = (value,) if isinstance(value, (str, Column, Rule)) else tuple(value)
            for entry in values[key]:
                _check_type(key, entry, type_)
        for key in values.keys() & _SINGLE.keys():
            _check_type(key, values[key], _SINGLE[key])
        kind = values.setdefault("kind", name)
        values["plural"] = values.get("plural") or plural_of(kind)
        values["singular"] = values.get("singular") or kind.lower()
        values["list_kind"] = values.get("list_kind") or f"{kind}List"
        scope = values.get("scope", Scope.NAMESPACED)
        if scope not in tuple(Scope):
            raise invalid_value(".spec.scope", f"{scope!r} is not a scope", "write Scope.NAMESPACED or Scope.CLUSTER")
        values["scope"] = Scope(scope)
        definition = cls(**values)
        definition._check_names()
        return definition

    @property
    def identity(self) -> Kind:
        return Kind(self.group, self.version, self.kind, self.plural, self.scope)

    def names(self) -> dict[str, Any]:
        """Return `.spec.names` of the CRD."""
        entries = {
            "kind": self.kind,
            "listKind": self.list_kind,
            "plural": self.plural,
            "singular": self.singular,
            "shortNames": list(self.short_names),
            "categories": list(self.categories),
        }
        return {key: value for key, value in entries.items() if value}

    def _check_names(self) -> None:
        check_group(".spec.group", self.group)
        check_label(".spec.versions[].name", self.version)
        check_label(".spec.names.kind", self.kind, any_case=True)
        check_label(".spec.names.listKind", self.list_kind, any_case=True)
        for key in ("plural", "singular"):
            check_label(f".spec.names.{key}", getattr(self, key))
        for key, wire in (("short_names", "shortNames"), ("categories", "categories")):
            for place, name in enumerate(getattr(self, key)):
                check_label(f".spec.names.{wire}[{place}]", name)
        if self.kind == self.list_kind:
            raise invalid_value(".spec.names.listKind", "kind and list_kind are the same", "omit list_kind")
        self._check_warning()

    def _check_warning(self) -> None:
        text = self.deprecated
        if isinstance(text, str) and not (text and text.isprintable() and len(text.encode()) <= _MAX_WARNING):
            what = f"{text!r} is not a valid deprecation warning"
            raise invalid_value(
                ".spec.versions[].deprecationWarning", what, "write one printable line of at most 256 bytes"
            )

    def check_paths(self, root: Schema) -> None:
        """Check every path of the definition against the schema.

        Raises: ValueError for a path that is not in the schema, or that leads to a field of the wrong type.
        """
        for place, column in enumerate(self.columns):
            _check_column(root, column, f".spec.versions[].additionalPrinterColumns[{place}]")
        if len(self.selectable) > _MAX_SELECTABLE:
            at = ".spec.versions[].selectableFields"
            raise invalid_value(at, f"{len(self.selectable)} fields are selectable", f"write at most {_MAX_SELECTABLE}")
        for place, path in enumerate(self.selectable):
            self._check_selectable(root, path, f".spec.versions[].selectableFields[{place}]")
        if self.scale is not None:
            self._check_scale(root, self.scale)

    def _check_selectable(self, root: Schema, path: str, at: str) -> None:
        found = schema_at(root, path, at)
        if path.startswith(".metadata.") or "[" in path or found.get("type") not in ("string", "boolean", "integer"):
            what = f"{path!r} is not selectable"
            raise invalid_value(at, what, "write a path of names to a str, bool, int or enum in the spec or status")
        if self.selectable.count(path) > 1:
            raise invalid_value(at, f"{path!r} is listed twice", "list it once")

    def _check_scale(self, root: Schema, scale: Scale) -> None:
        at = ".spec.versions[].subresources.scale"
        rules = {
            "specReplicasPath": (scale.replicas, (".spec.",), "integer"),
            "statusReplicasPath": (scale.status_replicas, (".status.",), "integer"),
            "labelSelectorPath": (scale.selector, (".spec.", ".status."), "string"),
        }
        for wire, (path, prefixes, type_name) in rules.items():
            if not path and wire == "labelSelectorPath":
                continue
            found = schema_at(root, path, f"{at}.{wire}")
            if not path.startswith(prefixes) or found.get("type") != type_name or "[" in path:
                what = f"{path!r} does not fit"
                raise invalid_value(
                    f"{at}.{wire}", what, f"write a path under {' or '.join(prefixes)} to an {type_name} field"
                )

    def version_entry(self, root: Schema) -> dict[str, Any]:
        """Return the entry of this version in `.spec.versions`."""
        entry: dict[str, Any] = {"name": self.version, "served": self.served, "storage": self.storage}
        if self.deprecated:
            entry["deprecated"] = True
        if isinstance(self.deprecated, str):
            entry["deprecationWarning"] = self.deprecated
        entry["schema"] = {"openAPIV3Schema": root}
        subresources: dict[str, Any] = {"status": {}} if self.status else {}
        if self.scale is not None:
            subresources["scale"] = _scale_entry(self.scale)
        if subresources:
            entry["subresources"] = subresources
        if self.columns:
            entry["additionalPrinterColumns"] = [_column_entry(column, root) for column in self.columns]
        if self.selectable:
            entry["selectableFields"] = [{"jsonPath": path} for path in self.selectable]
        return entry


def _check_column(root: Schema, column: Column, at: str) -> None:
    schema_at(root, column.path, at)
    for value, known in ((column.type, _COLUMN_TYPES), (column.format, _COLUMN_FORMATS)):
        if value and value not in known:
            raise invalid_value(at, f"a column cannot be {value!r}", f"write one of {', '.join(known)}")
    if not column.name:
        raise invalid_value(at, "a column needs a name", "write Column('Replicas', '.spec.replicas')")


def _scale_entry(scale: Scale) -> dict[str, str]:
    entry = {"specReplicasPath": scale.replicas, "statusReplicasPath": scale.status_replicas}
    return {**entry, "labelSelectorPath": scale.selector} if scale.selector else entry


def _column_entry(column: Column, root: Schema) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": column.name,
        "type": column.type or column_type(schema_at(root, column.path, column.name)),
        "jsonPath": column.path,
        "priority": column.priority,
        "description": column.description,
        "format": column.format,
    }
    return {key: value for key, value in entry.items() if value}


def _check_type(keyword: str, value: object, type_: type | UnionType) -> None:
    if not isinstance(value, type_):
        expected = type_.__name__ if isinstance(type_, type) else str(type_).replace(f"{__name__}.", "")
        raise TypeError(f"{keyword} must be {expected}, got {value!r:.100}")
