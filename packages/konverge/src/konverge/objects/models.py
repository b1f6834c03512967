"""Typed models: Python classes for the types of the API.

A model is a msgspec struct with the conventions of Kubernetes, which the metaclass sets:

- attributes are snake_case, wire names camelCase (see `wire_names`);
- `None` and empty defaults are not encoded: absent and null mean the same to an API server;
- arguments are keyword-only, and the error for a wrong name suggests the right one;
- unknown fields are not an error: `edits` preserves them when the object is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, dataclass_transform

import msgspec
from msgspec import field

from konverge.objects.wire_names import wire_name

if TYPE_CHECKING:
    from typing import Self, Unpack

__all__ = ["Model", "ModelKeywords", "ModelMeta", "attributes", "field", "replace"]

M = TypeVar("M", bound="Model")


class ModelKeywords(TypedDict, total=False):
    """The class keywords of a model, which msgspec defines: `class Port(Model, frozen=True)`."""

    rename: str | Callable[[str], str | None] | Mapping[str, str] | None
    omit_defaults: bool
    forbid_unknown_fields: bool
    frozen: bool
    eq: bool
    order: bool
    kw_only: bool
    repr_omit_defaults: bool
    tag: bool | str | int | Callable[[str], str | int] | None
    tag_field: str | None
    array_like: bool
    gc: bool
    weakref: bool
    dict: bool
    cache_hash: bool


class ModelMeta(msgspec.StructMeta):
    """The metaclass of models: wire names by rule, keyword-only arguments, defaults not encoded."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> ModelMeta:
        options.setdefault("rename", wire_name)
        options.setdefault("omit_defaults", True)
        options.setdefault("kw_only", True)
        options.setdefault("repr_omit_defaults", True)
        # Trees of values have no cycles, so the garbage collector need not track them, which takes a fifth of decoding.
        options.setdefault("gc", any(_has_dict(base) for base in bases) or bool(options.get("dict")))
        return super().__new__(mcls, name, bases, namespace, **options)

    def __call__(cls, *args: Any, **values: Any) -> Any:
        try:
            return super().__call__(*args, **values)
        except TypeError:
            known = cls.__struct_fields__
            unknown = next((name for name in values if name not in known), None)
            if unknown is None:
                raise
            raise TypeError(_no_such_field(cls, unknown)) from None


def _has_dict(base: type) -> bool:
    config = getattr(base, "__struct_config__", None)
    return config is not None and config.dict is True


if TYPE_CHECKING:
    # Type checkers verify class keywords only in classes without a metaclass and with an `__init_subclass__`.
    Metaclass = type

    class Struct:
        """What type checkers see of `msgspec.Struct`."""

        __struct_fields__: ClassVar[tuple[str, ...]]
        __struct_encode_fields__: ClassVar[tuple[str, ...]]
        __struct_config__: ClassVar[msgspec.structs.StructConfig]

        def __init_subclass__(cls, **keywords: Unpack[ModelKeywords]) -> None: ...
        def __copy__(self) -> Self: ...
        def __replace__(self, /, **changes: Any) -> Self: ...

else:
    Metaclass = ModelMeta
    Struct = msgspec.Struct


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Model(Struct, metaclass=Metaclass):
    """A typed value of the API: a spec, a status, a container, a port.

    Promises: reading or setting an attribute that does not exist raises AttributeError with a suggestion; equality
    compares values; a model has no attributes other than its fields.
    """

    if not TYPE_CHECKING:
        # Type checkers would conclude from these that every attribute exists.

        def __getattr__(self, name: str) -> Any:
            # Called only after the normal lookup failed. Modules such as copy look up special names that do not exist.
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_no_such_field(type(self), name), name=name, obj=self)

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in self.__struct_fields__:
                raise AttributeError(_no_such_field(type(self), name), name=name, obj=self)
            super().__setattr__(name, value)


def replace(model: M, /, **changes: Any) -> M:
    """Return a shallow copy of a model with new values for some fields; the copy of an object keeps its source.

    Raises: TypeError for a field that does not exist.
    """
    return model.__replace__(**changes)


def attributes(model: type[Model]) -> dict[str, str]:
    """Map each wire name of a model to its attribute."""
    return dict(zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True))


def _no_such_field(cls: Any, name: str) -> str:
    by_wire_name = attributes(cls)
    suggestion = by_wire_name.get(name)
    if suggestion is None:
        import difflib  # only needed for this error

        close = difflib.get_close_matches(name, [*by_wire_name.values(), *by_wire_name], n=1)
        suggestion = by_wire_name.get(close[0], close[0]) if close else None
    hint = f"; did you mean {suggestion!r}?" if suggestion else ""
    return f"{cls.__name__} has no {name!r}{hint}"
