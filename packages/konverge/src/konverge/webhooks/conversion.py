"""Conversion between the versions of a kind: typed functions to and from one version, the hub.

    def up(old: WebAppV1Beta1) -> WebApp: ...
    def down(new: WebApp) -> WebAppV1Beta1: ...

    webapps = ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, up, down))

Rules:

1. A converter handles spec, status and other fields. This module copies the metadata: of the function's result only
   labels and annotations are used. A result without metadata gets the labels and annotations of the source, with the
   function's edits of either.
2. Fields that the classes do not know are copied too (see `unknown_fields`).
3. One object that cannot be converted fails the whole review, since the API server needs all of them; the message names
   the object.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from konverge.errors import DecodeError
from konverge.objects import AnyObject, Key, Kind, Resource, decode, encode, kind_of, to_wire
from konverge.webhooks.patches import json_patch
from konverge.webhooks.reviews import ConversionCall, ReviewResponse, conversion_response, read_conversion
from konverge.webhooks.runner import FunctionFailed, Runner
from konverge.webhooks.unknown_fields import copy_unknown_fields

__all__ = ["AnnotationValue", "ConversionError", "ConversionWebhook", "Converter", "round_trip_changes"]

S = TypeVar("S", bound=Resource)
H = TypeVar("H", bound=Resource)
V = TypeVar("V")

_IDENTITY: Final = ("name", "namespace", "uid")
_EDITABLE: Final = ("labels", "annotations")
_plain = msgspec.json.Decoder()
_log = logging.getLogger("konverge.webhooks")


class ConversionError(Exception):
    """An object that cannot be converted; the client that reads or writes the object gets the text."""


@dataclass(frozen=True)
class Converter(Generic[S, H]):
    """The two functions between a version and the hub. Both are plain functions that depend only on the object.

    Raises: ValueError when the classes are not two versions of one kind.
    """

    spoke: type[S]
    hub: type[H]
    up: Callable[[S], H]
    down: Callable[[H], S]

    def __post_init__(self) -> None:
        spoke, hub = kind_of(self.spoke), kind_of(self.hub)
        if (spoke.group, spoke.kind) != (hub.group, hub.kind) or spoke.version == hub.version:
            raise ValueError(f"a Converter needs two versions of one kind, got {spoke} and {hub}")


class _Step(NamedTuple):
    """One call of a converter: the source class, the target class, the function."""

    source: type[Resource]
    target: type[Resource]
    function: Callable[[Any], Any]


class ConversionWebhook:
    """Converts objects of a kind between all its versions, through the hub.

    Promises: all metadata except labels and annotations stay unchanged; fields that no class knows are preserved; the
    order of objects is preserved; an object that already has the desired version is returned unchanged.

    Raises: ValueError when a converter has another hub, or two are for one version.
    """

    def __init__(self, hub: type[Resource], *converters: Converter[Any, Any]) -> None:
        self.hub = hub
        self._converters: dict[str, Converter[Any, Any]] = {}
        for converter in converters:
            version = kind_of(converter.spoke).api_version
            if converter.hub is not hub:
                raise ValueError(f"the converter of {version} has the hub {converter.hub.__name__}, not {hub.__name__}")
            if version in self._converters:
                raise ValueError(f"there are two converters of {version}: pass one")
            self._converters[version] = converter
        if not converters:
            raise ValueError("a ConversionWebhook needs a Converter for each version except the hub")

    @property
    def kind(self) -> Kind:
        return kind_of(self.hub)

    @property
    def path(self) -> str:
        """The path of this webhook on the server."""
        return f"/convert/{self.kind.group}/{self.kind.plural}"

    @property
    def full_name(self) -> str:
        return f"convert.{self.kind.resource}"

    @property
    def versions(self) -> dict[str, type[Resource]]:
        """The class of each version, keyed by apiVersion."""
        spokes = {version: converter.spoke for version, converter in self._converters.items()}
        return {self.kind.api_version: self.hub, **spokes}

    async def handle(self, body: bytes, runner: Runner) -> ReviewResponse:
        """Handle a ConversionReview.

        Raises: BadReview when the body is not a ConversionReview.
        """
        call = read_conversion(body)
        if isinstance(call, ReviewResponse):
            return call
        try:
            converted = await runner.call(self._convert_all, call)
        except FunctionFailed as failed:
            return self._failed(failed.__cause__, call)
        return conversion_response(call.uid, converted)

    def convert(self, document: bytes, api_version: str) -> dict[str, Any]:
        """Convert one object, as JSON, to another version.

        Raises: ConversionError when a version is unknown, or a converter fails or changes the identity of the object.
        """
        raw = _plain.decode(document)
        found = raw.get("apiVersion") if isinstance(raw, dict) else None
        if found == api_version:
            return dict(raw)
        for version in (found, api_version):
            if version not in self.versions:
                known = ", ".join(self.versions)
                raise ConversionError(f"{self.kind.kind} has no version {version!r:.100} (known versions: {known})")
        for step in self._steps(str(found), api_version):
            raw = self._convert_step(raw, step)
        return dict(raw)

    def _steps(self, old: str, new: str) -> Iterator[_Step]:
        if old in self._converters:
            yield _Step(self._converters[old].spoke, self.hub, self._converters[old].up)
        if new in self._converters:
            yield _Step(self.hub, self._converters[new].spoke, self._converters[new].down)

    def _convert_step(self, raw: dict[str, Any], step: _Step) -> dict[str, Any]:
        label = f"{raw.get('kind')} {_key(raw)}"
        data = encode(raw)
        try:
            # Two copies: the function may edit its argument.
            source, argument = decode(step.source, data), decode(step.source, data)
        except DecodeError as error:
            raise ConversionError(f"{label}: {error}") from None
        target = self._call(step, argument, label)
        written = to_wire(target)
        metadata = _metadata(raw, argument, target, label)
        for document in (written, raw):
            document.pop("metadata", None)
        copy_unknown_fields(source, raw, target, written)
        return {"apiVersion": written.pop("apiVersion"), "kind": written.pop("kind"), "metadata": metadata, **written}

    def _call(self, step: _Step, argument: Resource, label: str) -> Resource:
        try:
            target = step.function(argument)
            if not isinstance(target, step.target):
                raise TypeError(f"the converter returned {target!r:.100}: return a {step.target.__name__}")
        except ConversionError as error:
            raise ConversionError(f"{label}: {error}") from error
        except Exception as error:
            _log.error("converter failed", exc_info=error, extra={"webhook": self.full_name, "object": label})
            raise ConversionError(f"{label}: the converter failed; see the log of the operator") from error
        return target

    def _convert_all(self, call: ConversionCall) -> list[dict[str, Any]]:
        return [self.convert(bytes(each), call.desired_api_version) for each in call.objects or ()]

    def _failed(self, error: BaseException | None, call: ConversionCall) -> ReviewResponse:
        if isinstance(error, ConversionError):
            return conversion_response(call.uid, failure=str(error))
        facts = {"webhook": self.full_name, "version": call.desired_api_version, "uid": call.uid}
        _log.error("conversion failed", exc_info=error, extra=facts)
        text = f"the conversion failed; see the log of the operator for the request {call.uid}"
        return conversion_response(call.uid, failure=text)


class AnnotationValue(Generic[V]):
    """A typed value in an annotation, as JSON, for a field that the other version does not have.

    Call `put` when converting to the version without the field, and `pop` when converting back.
    """

    def __init__(self, name: str, type_: type[V]) -> None:
        self.name = name
        self._type = type_

    def put(self, obj: Resource, value: V | None) -> None:
        """Store the value in the annotation; None removes the annotation."""
        if value is None:
            obj.metadata.annotations.pop(self.name, None)
        else:
            obj.metadata.annotations[self.name] = encode(value).decode()

    def pop(self, obj: Resource) -> V | None:
        """Remove the annotation and return its value; None when it does not exist or cannot be decoded.

        It never fails: a failing conversion makes every object of the kind unreadable.
        """
        text = obj.metadata.annotations.pop(self.name, None)
        if text is None:
            return None
        try:
            return decode(self._type, text.encode())
        except DecodeError:
            _log.warning("conversion annotation ignored", extra={"annotation": self.name})
            return None


def round_trip_changes(webhook: ConversionWebhook, obj: AnyObject, *, via: str = "") -> list[str]:
    """Convert an object to another version and back, and return the wire paths that have changed; for tests.

    `via` is the apiVersion of the other version; without it every version is tried.
    """
    before = to_wire(obj)
    others = [via] if via else [version for version in webhook.versions if version != obj.api_version]
    changes: list[str] = []
    for version in others:
        converted = webhook.convert(encode(before), version)
        after = webhook.convert(encode(converted), obj.api_version)
        changes += [f"{_wire_path(step['path'])} via {version}" for step in json_patch(before, after)]
    return changes


def _wire_path(pointer: str) -> str:
    return pointer.replace("/", ".").replace("~1", "/").replace("~0", "~")


def _metadata(raw: dict[str, Any], source: Resource, target: Resource, label: str) -> dict[str, Any]:
    """Return the metadata of the result: those of the source, except labels and annotations."""
    metadata: dict[str, Any] = dict(raw.get("metadata") or {})
    result, edited = target.metadata, source.metadata
    for name in _IDENTITY:
        if getattr(result, name) not in (None, metadata.get(name)):
            raise ConversionError(f"{label}: the converter changed .metadata.{name}")
    is_new = result is not edited and not result.name
    for name in _EDITABLE:
        inherited = getattr(edited, name) if is_new else {}
        metadata.pop(name, None)
        if values := {**inherited, **getattr(result, name)}:
            metadata[name] = values
    return metadata


def _key(raw: dict[str, Any]) -> Key:
    metadata = raw.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return Key(str(found.get("namespace") or ""), str(found.get("name") or ""))
