"""The base classes for the spec and the status of a custom resource, and for the structs inside them.

Both are models. They differ in how they encode a value that equals its default:

- a `Spec` writes it. With server-side apply, the writer of a field owns it: what an operator applies must also hold
  against a manual edit, and a field that is omitted has no owner. To leave a field to others, declare it
  `X | None = None` (with `Default(...)` if the server should set it).
- a `Status` omits it, so that an object with an empty status is written without one. The schema has the same default,
  so the server sets it together with the first field that is written.

Both accept class keywords for the struct as a whole: `rules` (CEL), `exactly_one` (wire names of optional fields, the
structural form of a union), `atomic`, `preserve_unknown`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

import msgspec
from msgspec import NODEFAULT, Struct

from konverge.objects.models import Model, ModelKeywords, ModelMeta, field
from konverge.schema.markers import Rule

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["Constant", "NoStatus", "OptionsMeta", "Spec", "SpecMeta", "Status", "StructOptions", "struct_options"]


class StructOptions(Struct, frozen=True):
    """The options of a struct as a whole. A subclass inherits the options of its bases and adds its own."""

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
    """Return the options of a struct; a model without options has empty ones."""
    options: StructOptions = getattr(cls, "__struct_options__", StructOptions())
    return options


class OptionsMeta(ModelMeta):
    """Metaclass of models that accept the keywords of `StructOptions`."""

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
    ) -> OptionsMeta:
        groups = (tuple(exactly_one),) if exactly_one else ()
        struct = StructOptions(tuple(rules), groups, atomic, preserve_unknown)
        for base in reversed(bases):
            struct = struct_options(base) | struct
        namespace["__struct_options__"] = struct
        cls = super().__new__(mcls, name, bases, namespace, **options)
        assert isinstance(cls, OptionsMeta)
        return cls


class SpecMeta(OptionsMeta):
    """Metaclass of specs, which encode their defaults."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> SpecMeta:
        for attribute, annotation in namespace.get("__annotations__", {}).items():
            if attribute in namespace and not _is_class_variable(annotation):
                namespace[attribute] = _encoded_default(namespace[attribute])
        cls = super().__new__(mcls, name, bases, namespace, **options)
        assert isinstance(cls, SpecMeta)
        return cls


class Constant:
    """A factory of one immutable value. msgspec omits a plain default, but encodes the result of a factory."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


class StructKeywords(ModelKeywords, total=False):
    """The class keywords of a spec or a status: the fields of `StructOptions` and the keywords of a model."""

    rules: Iterable[Rule]
    exactly_one: Collection[str]
    atomic: bool
    preserve_unknown: bool


if TYPE_CHECKING:
    SpecMetaclass = type  # see konverge.objects.models
    StatusMetaclass = type
else:
    SpecMetaclass, StatusMetaclass = SpecMeta, OptionsMeta


class Spec(Model, metaclass=SpecMetaclass):
    """The desired state: the `spec` of a custom resource, or a struct inside it.

    Promises: `None` and empty lists and maps are omitted; every other value is encoded, even if it equals its default.
    """

    __struct_options__: ClassVar[StructOptions]

    if TYPE_CHECKING:

        def __init_subclass__(cls, **keywords: Unpack[StructKeywords]) -> None: ...


class Status(Model, metaclass=StatusMetaclass):
    """The observed state: the `status` of a custom resource, or a struct inside it.

    Promises: a value that equals its default is omitted; the schema has the default, so the server sets it.
    """

    __struct_options__: ClassVar[StructOptions]

    if TYPE_CHECKING:

        def __init_subclass__(cls, **keywords: Unpack[StructKeywords]) -> None: ...


class NoStatus(Status):
    """The status type of a custom resource without a status."""


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _encoded_default(value: Any) -> Any:
    """Turn a plain default into one that is encoded; None, containers and factories are returned unchanged."""
    name = None
    if isinstance(value, type(field())):
        if value.default is NODEFAULT:
            return value
        value, name = value.default, value.name
    if value is None or value is msgspec.UNSET or isinstance(value, (list, dict, set, bytearray, msgspec.Struct)):
        return value if name is None else field(default=value, name=name)
    return field(default_factory=Constant(value), name=name)
