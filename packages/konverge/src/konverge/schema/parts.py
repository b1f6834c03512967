"""The parts of a custom resource that an author writes: its spec, its status, and the structs inside them.

Both are models. They differ in what they do with a value that equals its default:

- a `Spec` writes it. With server-side apply, writing is owning: what an operator applies must hold also against a hand
  edit, and a field that was left out is owned by nobody. Who wants to leave a field to others declares it
  `X | None = None` (with `Default(...)` when the server shall fill it in).
- a `Status` leaves it out, so that an object whose status says nothing yet is written without one. The schema carries
  the same default, so the server fills it in beside the first field that is written.

Both take class keywords for what concerns the struct as a whole: `rules` (CEL), `exactly_one` (wire names of optional
fields, the structural form of a union), `atomic`, `preserve_unknown`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, get_origin

import msgspec
from msgspec import NODEFAULT

from konverge.objects.models import Model, ModelMeta, field
from konverge.schema.markers import Rule

__all__ = ["Constant", "NoStatus", "PartMeta", "Spec", "SpecMeta", "Status", "StructOptions", "struct_options"]


@dataclass(frozen=True)
class StructOptions:
    """What was said about a struct as a whole. A subclass keeps what its bases said and adds its own."""

    rules: tuple[Rule, ...] = ()
    exactly_one: tuple[tuple[str, ...], ...] = ()
    atomic: bool = False
    preserve_unknown: bool = False

    def __or__(self, more: StructOptions) -> StructOptions:
        return StructOptions(
            self.rules + more.rules,
            self.exactly_one + more.exactly_one,
            self.atomic or more.atomic,
            self.preserve_unknown or more.preserve_unknown,
        )


def struct_options(cls: type) -> StructOptions:
    """Give the options of a struct; a model that takes none has none."""
    options: StructOptions = getattr(cls, "__struct_options__", StructOptions())
    return options


class PartMeta(ModelMeta):
    """Makes parts of custom resources: models that take the keywords of `StructOptions`."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        rules: Iterable[Rule] = (),
        exactly_one: Collection[str] = (),
        atomic: bool = False,
        preserve_unknown: bool = False,
        **options: Any,
    ) -> PartMeta:
        groups = (tuple(exactly_one),) if exactly_one else ()
        said = StructOptions(tuple(rules), groups, atomic, preserve_unknown)
        for base in reversed(bases):
            said = struct_options(base) | said
        namespace["__struct_options__"] = said
        made = super().__new__(mcls, name, bases, namespace, **options)
        assert isinstance(made, PartMeta)
        return made


class SpecMeta(PartMeta):
    """Makes specs: parts whose defaults are written."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> SpecMeta:
        for attribute, annotation in namespace.get("__annotations__", {}).items():
            if attribute in namespace and not _is_class_variable(annotation):
                namespace[attribute] = _written(namespace[attribute])
        made = super().__new__(mcls, name, bases, namespace, **options)
        assert isinstance(made, SpecMeta)
        return made


class Constant:
    """A factory that gives one immutable value. msgspec leaves out a plain default, but writes what a factory made."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


class Spec(Model, metaclass=SpecMeta):
    """What somebody wants: the `spec` of a custom resource, or a struct inside it.

    Promises: `None` and empty lists and maps are not written; every other value is, also when it equals its default.
    """

    __struct_options__: ClassVar[StructOptions]


class Status(Model, metaclass=PartMeta):
    """What the operator found: the `status` of a custom resource, or a struct inside it.

    Promises: a value that equals its default is not written; the schema carries the default, so the server fills it in.
    """

    __struct_options__: ClassVar[StructOptions]


class NoStatus(Status):
    """The status of a custom resource that has none."""


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _written(value: Any) -> Any:
    """Turn a plain default into one that is written; None, containers and factories stay as they are."""
    name = None
    if isinstance(value, type(field())):
        if value.default is NODEFAULT:
            return value
        value, name = value.default, value.name
    if value is None or value is msgspec.UNSET or isinstance(value, (list, dict, set, bytearray, msgspec.Struct)):
        return value if name is None else field(default=value, name=name)
    return field(default_factory=Constant(value), name=name)
