"""A stored CustomResourceDefinition, parsed for serving: accepted names, versions, subresources, conversion."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from konverge.objects.kinds import Kind, Scope

__all__ = ["Definition", "Version", "condition_of", "is_true", "read_definition", "version_sort_key"]

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_MATURITY: Final = {None: 3, "beta": 2, "alpha": 1}


def condition_of(document: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return a condition of a definition by its type."""
    conditions = (document.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def is_true(document: Mapping[str, Any], kind: str) -> bool:
    condition = condition_of(document, kind)
    return condition is not None and condition["status"] == "True"


def version_sort_key(name: str) -> tuple[Any, ...]:
    """Return a key that sorts versions as Kubernetes does, the best last: other names, alpha, beta, stable."""
    match = _VERSION.fullmatch(name)
    if match is None:
        # Names that are no versions sort last in the server's order, alphabetically.
        return (0, (*(-ord(letter) for letter in name), 1))
    return (1, _MATURITY[match[2]], int(match[1]), int(match[3] or 0))


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a definition."""

    name: str
    served: bool
    stored: bool
    schema: Mapping[str, Any]
    has_status: bool = False
    scale: Mapping[str, Any] | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    selectable: tuple[str, ...] = ()
    deprecated: bool = False
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A served definition. Names are the accepted ones."""

    name: str
    group: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    scope: Scope
    versions: tuple[Version, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    conversion: Mapping[str, Any] = field(default_factory=dict)
    terminating: bool = False

    @property
    def stored_version(self) -> Version:
        return next(version for version in self.versions if version.stored)

    @property
    def storage(self) -> tuple[str, str]:
        """The collection that the objects are stored in."""
        return self.group, self.plural

    def kind_in(self, version: str) -> Kind:
        return Kind(self.group, version, self.kind, self.plural, self.scope)

    def version(self, name: str) -> Version | None:
        return next((version for version in self.versions if version.name == name), None)

    def deprecation(self, version: Version) -> str:
        """Return the warning of every response of a deprecated version, "" for other versions."""
        if not version.deprecated:
            return ""
        if version.warning is not None:
            return version.warning
        text = f"{self.group}/{version.name} {self.kind} is deprecated"
        rank = version_sort_key(version.name)
        newer = [each.name for each in self.versions if each.served and not each.deprecated]
        newer = [name for name in newer if version_sort_key(name) > rank]
        return f"{text}; use {self.group}/{max(newer, key=version_sort_key)} {self.kind}" if newer else text


def read_definition(document: Mapping[str, Any]) -> Definition:
    """Parse a definition whose names were accepted."""
    spec, names = document["spec"], document["status"]["acceptedNames"]
    return Definition(
        name=document["metadata"]["name"],
        group=spec["group"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=names["kind"],
        list_kind=names.get("listKind", ""),
        scope=Scope(spec["scope"]),
        versions=tuple(map(_read_version, spec["versions"])),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        conversion=spec.get("conversion") or {},
        terminating=is_true(document, "Terminating"),
    )


def _read_version(version: Mapping[str, Any]) -> Version:
    subresources = version.get("subresources") or {}
    return Version(
        name=version["name"],
        served=version["served"],
        stored=version["storage"],
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        has_status=subresources.get("status") is not None,
        scale=subresources.get("scale"),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        selectable=tuple(each["jsonPath"] for each in version.get("selectableFields") or ()),
        deprecated=version.get("deprecated", False),
        warning=version.get("deprecationWarning"),
    )
