"""Custom resources as classes: the kind, its spec and its status, checked when the class is made."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast, get_args, get_origin

import msgspec

from konverge.objects.codec import to_wire
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource, ResourceMeta
from konverge.objects.wire_names import wire_name
from konverge.schema.defaults import filled
from konverge.schema.definitions import Definition
from konverge.schema.hints import fields_of
from konverge.schema.leaves import Schema
from konverge.schema.parts import NoStatus, struct_options
from konverge.schema.refusals import refused_type, refused_value
from konverge.schema.rules import check_rules
from konverge.schema.structural import SchemaMaker
from konverge.schema.values import Problem, problems_of

if TYPE_CHECKING:
    # Only checkers read the default of StatusT; at run time `__class_getitem__` fills it in.
    from typing_extensions import TypeVar

    SpecT = TypeVar("SpecT", bound=Model)
    StatusT = TypeVar("StatusT", bound=Model, default=NoStatus)
else:
    from typing import TypeVar

    SpecT = TypeVar("SpecT", bound=Model)
    StatusT = TypeVar("StatusT", bound=Model)

__all__ = ["CustomResource", "CustomResourceMeta", "definition_of", "root_schema", "validate"]

_KEYWORDS = [entry.name for entry in dataclass_fields(Definition)]
_EXAMPLE = 'write class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="example.com", version="v1")'


class CustomResourceMeta(ResourceMeta):
    """Makes classes of custom resources, and refuses those that cannot become a CRD."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any
    ) -> CustomResourceMeta:
        if namespace.get("__module__") == __name__:
            return cast(CustomResourceMeta, super().__new__(mcls, name, bases, namespace, **keywords))
        scope = sys._getframe(1).f_locals
        try:
            spec, status = _parameters(namespace)
            definition = _definition(name, keywords, status)
            _declare(namespace, spec, status, scope)
            namespace["__definition__"] = definition
            made = super().__new__(mcls, name, bases, namespace, identity=definition.identity)
            _check(made, scope)
        except (TypeError, ValueError) as error:
            error.args = (f"class {name}: {error}",)
            raise
        return cast(CustomResourceMeta, made)


class CustomResource(Resource, Generic[SpecT, StatusT], metaclass=CustomResourceMeta):
    """An object of a kind that a CRD defines.

        class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="example.com", version="v1", short_names=("wa",)):
            '''A stateless web application.'''

    `CustomResource[WebAppSpec]` alone is a kind without status. The class keywords are the fields of `Definition`.

    Promises: a class that was made can become a CRD which the server establishes, but for CEL rules, which only the
    server compiles; `status` is always there to be read and set, also on an object that came without one.
    """

    __definition__: ClassVar[Definition]
    __root_schema__: ClassVar[Schema]

    if TYPE_CHECKING:
        # At run time each class declares them itself, with its own types and the status as the last field.
        spec: SpecT
        status: StatusT = field(default_factory=cast(Any, NoStatus))

    def __class_getitem__(cls, parameters: Any) -> Any:
        if not isinstance(parameters, tuple):
            parameters = (parameters, NoStatus)
        return cast(Any, super()).__class_getitem__(parameters)


def definition_of(cls: type[CustomResource[Any, Any]]) -> Definition:
    """Give what the class keywords said.

    Raises: TypeError for a class that is no custom resource.
    """
    definition: Definition | None = getattr(cls, "__definition__", None)
    if definition is None:
        raise TypeError(f"{cls!r} is no custom resource ({_EXAMPLE})")
    return definition


def root_schema(cls: type[CustomResource[Any, Any]], *, described: bool = False) -> Schema:
    """Give the whole schema of a kind, to read; without descriptions it is made once, with the class."""
    return _make_root(cls, SchemaMaker(described=True)) if described else cls.__root_schema__


def validate(obj: CustomResource[Any, Any]) -> list[Problem]:
    """Give every reason why the server would refuse the object, as far as it can be told without the server.

    Checked are the schema's types, bounds, lengths, patterns, choices, list types and formats; not checked are CEL
    rules, metadata, and the formats that only the server can judge.
    """
    root = root_schema(type(obj))
    return problems_of(root, filled(root, to_wire(obj)))


def _parameters(namespace: Mapping[str, Any]) -> tuple[Any, Any]:
    for base in namespace.get("__orig_bases__", ()):
        if get_origin(base) is CustomResource:
            spec, status = get_args(base)
            for part, at in ((spec, ".spec"), (status, ".status")):
                if not (isinstance(get_origin(part) or part, type) and issubclass(get_origin(part) or part, Model)):
                    raise refused_type(at, f"{part!r} has no schema", "write a class that derives from Spec or Status")
            return spec, status
    raise TypeError(f"it does not say what its spec is ({_EXAMPLE})")


def _definition(name: str, keywords: dict[str, Any], status: Any) -> Definition:
    for wrong in keywords.keys() - set(_KEYWORDS):
        close = difflib.get_close_matches(wrong, _KEYWORDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(_KEYWORDS)}"
        raise TypeError(f"a custom resource has no keyword {wrong!r} ({hint})")
    for needed in ("group", "version"):
        if needed not in keywords:
            raise TypeError(f"it has no {needed} ({_EXAMPLE})")
    keywords.setdefault("status", status is not NoStatus)
    if keywords["status"] and status is NoStatus:
        what = "there is a status subresource and no status"
        raise refused_value(".status", what, f"write CustomResource[{name}Spec, {name}Status]")
    return Definition.of(name, keywords)


def _declare(namespace: dict[str, Any], spec: Any, status: Any, scope: Mapping[str, Any]) -> None:
    """Put the fields into the class with their real types; the status goes last, where the codec looks for it."""
    own = namespace.get("__annotations__", {})
    for reserved in own.keys() & {"api_version", "kind", "metadata", "spec", "status"}:
        raise TypeError(f"{reserved!r} is a field of every custom resource ({_EXAMPLE})")
    for taken in own.keys() & vars(Resource).keys():
        raise TypeError(
            f"{taken!r} is what every object has (write {taken}_: its wire name is {wire_name(taken)!r} too)"
        )
    namespace["__annotations__"] = {"spec": spec, **own, "status": status}
    options = struct_options(get_origin(spec) or spec)
    if not (_required(spec, ".spec", scope) or options.rules or options.exactly_one):
        # Whether an empty spec would keep a rule, only the server can tell.
        namespace["spec"] = field(default_factory=spec)
    for missing in _required(status, ".status", scope):
        what = "a status is there before anything is known, so each of its fields needs a default"
        raise refused_type(f".status.{missing}", what, "write `X | None = None`")
    namespace["status"] = field(default_factory=status)


def _required(struct: Any, path: str, scope: Mapping[str, Any]) -> list[str]:
    return [info.encode_name for info in fields_of(struct, path, scope) if info.required]


def _check(cls: Any, scope: Mapping[str, Any]) -> None:
    root = _make_root(cls, SchemaMaker(scope=scope))
    cls.__definition__.check_paths(root)
    check_rules(root, "")
    # Reading must work too: msgspec refuses some annotations only when a decoder is made.
    msgspec.json.Decoder(cls)
    cls.__root_schema__ = root


def _make_root(cls: Any, maker: SchemaMaker) -> Schema:
    definition: Definition = cls.__definition__
    schemas, required = maker.fields(cls, "")
    status = schemas.pop("status")
    if fields_of(cls, "", maker.scope)[-1].type is not NoStatus:
        # No default for the status itself: an object has none until somebody writes one.
        schemas["status"] = {key: value for key, value in status.items() if key != "default"}
    root: Schema = {**maker.description(cls), "type": "object", "properties": schemas}
    if required:
        root["required"] = required
    if definition.rules:
        root["x-kubernetes-validations"] = [rule.to_wire() for rule in definition.rules]
    return root
