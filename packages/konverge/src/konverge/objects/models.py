"""Typed models: Python classes that stand for what travels on the wire.

A model is a msgspec struct with the habits that Kubernetes needs, given once by the metaclass:

- attributes are snake_case, wire names camelCase (see `wirenames`);
- `None` and empty defaults are left out when written: absent and null mean the same to an API server;
- arguments are keywords, and a wrong name is answered with the right one;
- fields that the class does not know are no error: `edits` brings them back when the object is written.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import msgspec
from msgspec import field

from konverge.objects.wire_names import wire_name

__all__ = ["Model", "ModelMeta", "attributes", "field"]

M = TypeVar("M", bound="Model")


class ModelMeta(msgspec.StructMeta):
    """Makes model classes: wire names by rule, keyword-only, defaults not written."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> ModelMeta:
        options.setdefault("rename", wire_name)
        options.setdefault("omit_defaults", True)
        options.setdefault("kw_only", True)
        options.setdefault("repr_omit_defaults", True)
        # Trees of values have no cycles, so the garbage collector need not visit them: a fifth of the decoding time.
        options.setdefault("gc", any(_has_dict(base) for base in bases) or bool(options.get("dict")))
        return super().__new__(mcls, name, bases, namespace, **options)

    def __call__(cls, *args: Any, **values: Any) -> Any:
        try:
            return super().__call__(*args, **values)
        except TypeError:
            known = cls.__struct_fields__
            wrong = next((name for name in values if name not in known), None)
            if wrong is None:
                raise
            raise TypeError(_no_such_field(cls, wrong)) from None


def _has_dict(base: type) -> bool:
    config = getattr(base, "__struct_config__", None)
    return config is not None and config.dict is True


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Model(msgspec.Struct, metaclass=ModelMeta):
    """A typed value on the wire: a spec, a status, a container, a port.

    Promises: reading or setting an attribute that does not exist raises AttributeError with the name that was probably
    meant; equality compares values; a model holds nothing but its fields.
    """

    if not TYPE_CHECKING:
        # Checkers would take these for a promise that every attribute exists.

        def __getattr__(self, name: str) -> Any:
            # Called only when the normal look-up failed. Copying and its like look for names that nobody misspelt.
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_no_such_field(type(self), name), name=name, obj=self)

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in self.__struct_fields__:
                raise AttributeError(_no_such_field(type(self), name), name=name, obj=self)
            super().__setattr__(name, value)


def attributes(model: type[Model]) -> dict[str, str]:
    """Map each wire name of a model to its attribute."""
    return dict(zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True))


def _no_such_field(cls: Any, wrong: str) -> str:
    by_wire = attributes(cls)
    guess = by_wire.get(wrong)
    if guess is None:
        close = difflib.get_close_matches(wrong, [*by_wire.values(), *by_wire], n=1)
        guess = by_wire.get(close[0], close[0]) if close else None
    hint = f"; did you mean {guess!r}?" if guess else ""
    return f"{cls.__name__} has no {wrong!r}{hint}"
