"""Conversion between the versions of a kind: typed functions to and from one version, the hub.

    def up(old: WebAppV1Beta1) -> WebApp: ...
    def down(new: WebApp) -> WebAppV1Beta1: ...

    webapps = ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, up, down))

Rules that hold here:

1. A converter is about spec, status and further fields. Metadata is carried over by this module: of what the function
   says only labels and annotations count. A result that was made without metadata gets those of the source, with the
   function's edits of either.
2. Fields that the classes do not know are carried over too (see `unknowns`).
3. One object that cannot be converted fails the whole review, since the API server takes all or nothing; the message
   names the object.
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
from konverge.webhooks.reviews import ConversionCall, Outcome, conversion_answer, read_conversion
from konverge.webhooks.runner import FunctionFailed, Runner
from konverge.webhooks.unknowns import carry_unknown

__all__ = ["AnnotationValue", "ConversionError", "ConversionWebhook", "Converter", "lost_in_conversion"]

S = TypeVar("S", bound=Resource)
H = TypeVar("H", bound=Resource)
V = TypeVar("V")

_IDENTITY: Final = ("name", "namespace", "uid")
_FREE: Final = ("labels", "annotations")
_plain = msgspec.json.Decoder()
_log = logging.getLogger("konverge.webhooks")


class ConversionError(Exception):
    """An object that cannot be converted; the text is shown to whoever reads or writes the object."""


@dataclass(frozen=True)
class Converter(Generic[S, H]):
    """The two functions between a version and the hub. Both are plain functions, and depend on nothing but the object.

    Raises: ValueError when the classes are not two versions of one kind.
    """

    spoke: type[S]
    hub: type[H]
    up: Callable[[S], H]
    down: Callable[[H], S]

    def __post_init__(self) -> None:
        spoke, hub = kind_of(self.spoke), kind_of(self.hub)
        if (spoke.group, spoke.kind) != (hub.group, hub.kind) or spoke.version == hub.version:
            raise ValueError(f"a Converter is about two versions of one kind, got {spoke} and {hub}")


class _Step(NamedTuple):
    """One call of a converter: from which class to which."""

    source: type[Resource]
    target: type[Resource]
    function: Callable[[Any], Any]


class ConversionWebhook:
    """Converts objects of a kind between all its versions, by way of the hub.

    Promises: identity and all other metadata but labels and annotations stay as they came; fields that no class knows
    stay; the order of objects stays; an object that is in the wanted version already is returned as it is.

    Raises: ValueError when a converter is about another hub, or two are about one version.
    """

    def __init__(self, hub: type[Resource], *converters: Converter[Any, Any]) -> None:
        self.hub = hub
        self._converters: dict[str, Converter[Any, Any]] = {}
        for converter in converters:
            version = kind_of(converter.spoke).api_version
            if converter.hub is not hub:
                raise ValueError(f"the converter of {version} leads to {converter.hub.__name__}, not {hub.__name__}")
            if version in self._converters:
                raise ValueError(f"there are two converters of {version}: give one")
            self._converters[version] = converter
        if not converters:
            raise ValueError("a ConversionWebhook needs a Converter for each version but the hub")

    @property
    def kind(self) -> Kind:
        return kind_of(self.hub)

    @property
    def path(self) -> str:
        """Where the server answers for this webhook."""
        return f"/convert/{self.kind.group}/{self.kind.plural}"

    @property
    def full_name(self) -> str:
        return f"convert.{self.kind.resource}"

    @property
    def versions(self) -> dict[str, type[Resource]]:
        """The class of each version, keyed by apiVersion."""
        spokes = {version: converter.spoke for version, converter in self._converters.items()}
        return {self.kind.api_version: self.hub, **spokes}

    async def answer(self, body: bytes, runner: Runner) -> Outcome:
        """Answer a ConversionReview.

        Raises: BadReview when the body is none.
        """
        call = read_conversion(body)
        if isinstance(call, Outcome):
            return call
        try:
            converted = await runner.call(self._convert_all, call)
        except FunctionFailed as failed:
            return self._failed(failed.__cause__, call)
        return conversion_answer(call.uid, converted)

    def convert(self, document: bytes, api_version: str) -> dict[str, Any]:
        """Convert one object, given as JSON, to another version.

        Raises: ConversionError when a version is not known, a converter fails or changes what it must not.
        """
        raw = _plain.decode(document)
        found = raw.get("apiVersion") if isinstance(raw, dict) else None
        if found == api_version:
            return dict(raw)
        for version in (found, api_version):
            if version not in self.versions:
                known = ", ".join(self.versions)
                raise ConversionError(f"{self.kind.kind} has no version {version!r:.100} here (there are {known})")
        for step in self._steps(str(found), api_version):
            raw = self._converted(raw, step)
        return dict(raw)

    def _steps(self, old: str, new: str) -> Iterator[_Step]:
        if old in self._converters:
            yield _Step(self._converters[old].spoke, self.hub, self._converters[old].up)
        if new in self._converters:
            yield _Step(self.hub, self._converters[new].spoke, self._converters[new].down)

    def _converted(self, raw: dict[str, Any], step: _Step) -> dict[str, Any]:
        named = f"{raw.get('kind')} {_key(raw)}"
        data = encode(raw)
        try:
            # Two of them: the function may edit what it is given.
            source, given = decode(step.source, data), decode(step.source, data)
        except DecodeError as error:
            raise ConversionError(f"{named}: {error}") from None
        target = self._called(step, given, named)
        written = to_wire(target)
        metadata = _metadata(raw, given, target, named)
        for document in (written, raw):
            document.pop("metadata", None)
        carry_unknown(source, raw, target, written)
        return {"apiVersion": written.pop("apiVersion"), "kind": written.pop("kind"), "metadata": metadata, **written}

    def _called(self, step: _Step, given: Resource, named: str) -> Resource:
        try:
            target = step.function(given)
            if not isinstance(target, step.target):
                raise TypeError(f"the converter returned {target!r:.100}: return a {step.target.__name__}")
        except ConversionError as error:
            raise ConversionError(f"{named}: {error}") from error
        except Exception as error:
            _log.error("A converter failed", exc_info=error, extra={"webhook": self.full_name, "object": named})
            raise ConversionError(f"{named}: the converter failed; the log of the operator says why") from error
        return target

    def _convert_all(self, call: ConversionCall) -> list[dict[str, Any]]:
        return [self.convert(bytes(each), call.desired_api_version) for each in call.objects or ()]

    def _failed(self, error: BaseException | None, call: ConversionCall) -> Outcome:
        if isinstance(error, ConversionError):
            return conversion_answer(call.uid, failure=str(error))
        facts = {"webhook": self.full_name, "version": call.desired_api_version, "uid": call.uid}
        _log.error("A conversion failed", exc_info=error, extra=facts)
        text = f"the conversion failed; the log of the operator says why, for the request {call.uid}"
        return conversion_answer(call.uid, failure=text)


class AnnotationValue(Generic[V]):
    """A place for what the other version cannot say: a typed value in an annotation, as JSON.

    `put` it on the way to the version that lacks the field, `take` it on the way back.
    """

    def __init__(self, name: str, type_: type[V]) -> None:
        self.name = name
        self._type = type_

    def put(self, obj: Resource, value: V | None) -> None:
        """Note the value on the object; None removes the note."""
        if value is None:
            obj.metadata.annotations.pop(self.name, None)
        else:
            obj.metadata.annotations[self.name] = encode(value).decode()

    def take(self, obj: Resource) -> V | None:
        """Give the value and remove the note; None when there is none, or somebody has edited it into nonsense.

        It never fails: a conversion that fails makes every object of the kind unreadable.
        """
        text = obj.metadata.annotations.pop(self.name, None)
        if text is None:
            return None
        try:
            return decode(self._type, text.encode())
        except DecodeError:
            _log.warning("An annotation of a conversion cannot be read", extra={"annotation": self.name})
            return None


def lost_in_conversion(webhook: ConversionWebhook, obj: AnyObject, *, via: str = "") -> list[str]:
    """Convert an object to another version and back, and give the wire paths that came back changed; for tests.

    `via` is the apiVersion of the other version; without it each one is tried.
    """
    before = to_wire(obj)
    others = [via] if via else [version for version in webhook.versions if version != obj.api_version]
    lost: list[str] = []
    for version in others:
        there = webhook.convert(encode(before), version)
        back = webhook.convert(encode(there), obj.api_version)
        lost += [f"{_wire_path(step['path'])} via {version}" for step in json_patch(before, back)]
    return lost


def _wire_path(pointer: str) -> str:
    return pointer.replace("/", ".").replace("~1", "/").replace("~0", "~")


def _metadata(raw: dict[str, Any], given: Resource, target: Resource, named: str) -> dict[str, Any]:
    """Give the metadata of the result: those that came, but for labels and annotations."""
    metadata: dict[str, Any] = dict(raw.get("metadata") or {})
    said, edited = target.metadata, given.metadata
    for fact in _IDENTITY:
        if getattr(said, fact) not in (None, metadata.get(fact)):
            raise ConversionError(f"{named}: the converter changed .metadata.{fact}")
    made_anew = said is not edited and not said.name
    for fact in _FREE:
        inherited = getattr(edited, fact) if made_anew else {}
        metadata.pop(fact, None)
        if texts := {**inherited, **getattr(said, fact)}:
            metadata[fact] = texts
    return metadata


def _key(raw: dict[str, Any]) -> Key:
    metadata = raw.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return Key(str(found.get("namespace") or ""), str(found.get("name") or ""))
