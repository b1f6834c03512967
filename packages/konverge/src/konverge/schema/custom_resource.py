"""Custom resources as classes: the kind, its spec and its status, checked when the class is created."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, cast, get_args, get_origin

import msgspec

from konverge.objects.codec import to_wire
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource, ResourceMeta
from konverge.objects.wire_names import wire_name
from konverge.schema.defaults import prune_and_default
from konverge.schema.definitions import Definition, DefinitionKeywords
from konverge.schema.hints import fields_of
from konverge.schema.primitives import Schema
from konverge.schema.rules import check_rules
from konverge.schema.schema_errors import invalid_value, unsupported_type
from konverge.schema.structs import NoStatus, struct_options
from konverge.schema.structural import SchemaBuilder
from konverge.schema.values import Violation, find_violations

if TYPE_CHECKING:
    from typing import Unpack

    # Only type checkers read the default of StatusT; at run time `__class_getitem__` sets it.
    from typing_extensions import TypeVar

    SpecT = TypeVar("SpecT", bound=Model)
    StatusT = TypeVar("StatusT", bound=Model, default=NoStatus)
else:
    from typing import TypeVar

    SpecT = TypeVar("SpecT", bound=Model)
    StatusT = TypeVar("StatusT", bound=Model)

__all__ = ["CustomResource", "CustomResourceMeta", "definition_of", "root_schema", "validate"]

_KEYWORDS = list(Definition.__struct_fields__)
_EXAMPLE = 'write class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="example.com", version="v1")'


class CustomResourceMeta(ResourceMeta):
    """Metaclass of custom resources; it refuses classes that cannot become a CRD."""

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
            cls = super().__new__(mcls, name, bases, namespace, identity=definition.identity)
            _check(cls, scope)
        except (TypeError, ValueError) as error:
            error.args = (f"class {name}: {error}",)
            raise
        return cast(CustomResourceMeta, cls)


if TYPE_CHECKING:
    Metaclass = type  # see konverge.objects.models
else:
    Metaclass = CustomResourceMeta


class CustomResource(Resource, Generic[SpecT, StatusT], metaclass=Metaclass):
    """An object of a kind that a CRD defines.

        class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="example.com", version="v1", short_names=("wa",)):
            '''A stateless web application.'''

    `CustomResource[WebAppSpec]` is a kind without status. The class keywords are the fields of `Definition`.

    Promises: the server establishes the CRD of every class that can be created, except for CEL rules, which only the
    server compiles; `status` can always be read and set, also on an object that was received without one.
    """

    __definition__: ClassVar[Definition]
    __root_schema__: ClassVar[Schema]

    if TYPE_CHECKING:
        # At run time each class declares these fields, with its own types and the status as the last field.
        spec: SpecT
        status: StatusT = field(default_factory=cast(Any, NoStatus))

        def __init_subclass__(cls, **keywords: Unpack[DefinitionKeywords]) -> None: ...

    @classmethod
    def new(
        cls,
        name: str,
        spec: SpecT | None = None,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Self:
        """Return a new object: `WebApp.new("web", WebAppSpec(image="web:1"), namespace="shop")`.

        Without a namespace it is created in that of the client. The spec can be left out if each of its fields has a
        default.
        """
        metadata = ObjectMeta(
            name=name, namespace=namespace, labels=dict(labels or {}), annotations=dict(annotations or {})
        )
        parts: dict[str, Any] = {"metadata": metadata} | ({} if spec is None else {"spec": spec})
        return cls(**parts)

    def __class_getitem__(cls, parameters: Any) -> Any:
        if not isinstance(parameters, tuple):
            parameters = (parameters, NoStatus)
        return cast(Any, super()).__class_getitem__(parameters)


def definition_of(cls: type[CustomResource[Any, Any]]) -> Definition:
    """Return the definition made from the class keywords.

    Raises: TypeError for a class that is not a custom resource.
    """
    definition: Definition | None = getattr(cls, "__definition__", None)
    if definition is None:
        raise TypeError(f"{cls!r} is not a custom resource ({_EXAMPLE})")
    return definition


def root_schema(cls: type[CustomResource[Any, Any]], *, descriptions: bool = False) -> Schema:
    """Return the schema of a kind, which must not be modified; it is built once per class."""
    return _described_root(cls) if descriptions else cls.__root_schema__


@lru_cache(maxsize=64)
def _described_root(cls: type[CustomResource[Any, Any]]) -> Schema:
    return _build_root(cls, SchemaBuilder(descriptions=True))


def validate(obj: CustomResource[Any, Any]) -> list[Violation]:
    """Return every violation of the schema for which the server would reject the object.

    It checks types, bounds, lengths, patterns, choices, list types and formats. It does not check CEL rules, metadata,
    and the formats that only the server can check.
    """
    root = root_schema(type(obj))
    return find_violations(root, prune_and_default(root, to_wire(obj)))


def _parameters(namespace: Mapping[str, Any]) -> tuple[Any, Any]:
    for base in namespace.get("__orig_bases__", ()):
        if get_origin(base) is CustomResource:
            spec, status = get_args(base)
            for part, at in ((spec, ".spec"), (status, ".status")):
                if not (isinstance(get_origin(part) or part, type) and issubclass(get_origin(part) or part, Model)):
                    raise unsupported_type(
                        at, f"{part!r} has no schema", "write a class that derives from Spec or Status"
                    )
            return spec, status
    raise TypeError(f"it declares no spec ({_EXAMPLE})")


def _definition(name: str, keywords: dict[str, Any], status: Any) -> Definition:
    for unknown in keywords.keys() - set(_KEYWORDS):
        import difflib  # only needed for this error

        close = difflib.get_close_matches(unknown, _KEYWORDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use {', '.join(_KEYWORDS)}"
        raise TypeError(f"a custom resource has no keyword {unknown!r} ({hint})")
    for required in ("group", "version"):
        if required not in keywords:
            raise TypeError(f"it has no {required} ({_EXAMPLE})")
    keywords.setdefault("status", status is not NoStatus)
    if keywords["status"] and status is NoStatus:
        what = "the kind has a status subresource but no status"
        raise invalid_value(".status", what, f"write CustomResource[{name}Spec, {name}Status]")
    return Definition.of(name, keywords)


def _declare(namespace: dict[str, Any], spec: Any, status: Any, scope: Mapping[str, Any]) -> None:
    """Declare the fields with their real types. The status is the last field, as the codec expects."""
    own = namespace.get("__annotations__", {})
    for reserved in own.keys() & {"api_version", "kind", "metadata", "spec", "status"}:
        raise TypeError(f"{reserved!r} is a field of every custom resource ({_EXAMPLE})")
    for reserved in own.keys() & vars(Resource).keys():
        raise TypeError(
            f"{reserved!r} is an attribute of every object"
            f" (write {reserved}_: its wire name is {wire_name(reserved)!r} too)"
        )
    namespace["__annotations__"] = {"spec": spec, **own, "status": status}
    options = struct_options(get_origin(spec) or spec)
    if not (_required(spec, ".spec", scope) or options.rules or options.exactly_one):
        # Only the server can evaluate whether an empty spec would satisfy a rule.
        namespace["spec"] = field(default_factory=spec)
    for missing in _required(status, ".status", scope):
        what = "an object has a status before the operator sets it, so each of its fields needs a default"
        raise unsupported_type(f".status.{missing}", what, "write `X | None = None`")
    namespace["status"] = field(default_factory=status)


def _required(struct: Any, path: str, scope: Mapping[str, Any]) -> list[str]:
    return [info.encode_name for info in fields_of(struct, path, scope) if info.required]


def _check(cls: Any, scope: Mapping[str, Any]) -> None:
    root = _build_root(cls, SchemaBuilder(scope=scope))
    cls.__definition__.check_paths(root)
    check_rules(root, "")
    # Decoding must work too: msgspec refuses some annotations only when a decoder is created.
    msgspec.json.Decoder(cls)
    cls.__root_schema__ = root


def _build_root(cls: Any, builder: SchemaBuilder) -> Schema:
    definition: Definition = cls.__definition__
    schemas, required = builder.fields(cls, "")
    status = schemas.pop("status")
    if fields_of(cls, "", builder.scope)[-1].type is not NoStatus:
        # The status itself has no default: an object has no status until one is written.
        schemas["status"] = {key: value for key, value in status.items() if key != "default"}
    root: Schema = {**builder.description(cls), "type": "object", "properties": schemas}
    if required:
        root["required"] = required
    if definition.rules:
        root["x-kubernetes-validations"] = [rule.to_wire() for rule in definition.rules]
    return root
