"""Conversion between the versions of a custom resource: `None` rewrites the apiVersion, `Webhook` calls a webhook.

A webhook gets all objects that need conversion in one ConversionReview. It may change everything but the identity of
an object: of its metadata only labels and annotations are used.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from konverge.objects.kinds import split_api_version
from konverge_cluster.api.cluster import encode
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.metadata import json_type, metadata_errors
from konverge_cluster.api.status_errors import failure
from konverge_cluster.api.strategy import ConversionRequired, Document
from konverge_cluster.patches.go_text import kind_of

__all__ = ["Converter", "NoConversion", "WebhookCaller", "WebhookConversion"]

WebhookCaller = Callable[[str, Mapping[str, Any], Document], Awaitable[Any]]
"""Posts a review to a webhook and returns its response: `caller(crd_name, client_config, review)`.

It raises an exception whose text is the reason if there is no usable response.
"""

_REMEMBERED: Final = 256
_IDENTITY: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class Converter(Protocol):
    """Converts objects of one resource to another version."""

    def convert_cached(self, document: Document, api_version: str) -> Document:
        """Return one object in another version, without waiting; it may share parts.

        Raises: Unconverted when a webhook has to be called first.
        """
        ...

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        """Return the objects in another version, in order; those that have it already are returned unchanged.

        Raises: StatusError 500 when the conversion fails.
        """
        ...


class NoConversion:
    """All versions are equal except for the apiVersion."""

    def convert_cached(self, document: Document, api_version: str) -> Document:
        return {**document, "apiVersion": api_version}

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        for document in documents:
            document["apiVersion"] = api_version
        return list(documents)


class _BadConversion(ValueError):
    """The response of a webhook is invalid; the text says why."""


class WebhookConversion:
    """Conversion by a webhook, in the first review version that both sides support."""

    def __init__(
        self, name: str, webhook: Mapping[str, Any], call: WebhookCaller | None, new_uid: Callable[[], str]
    ) -> None:
        self._name = name
        self._config: Mapping[str, Any] = webhook.get("clientConfig") or {}
        common = [each for each in webhook.get("conversionReviewVersions") or () if each in ("v1", "v1beta1")]
        self._review_version = common[0] if common else ""
        self._call = call
        self._new_uid = new_uid
        self._made: dict[tuple[str, bytes], Document] = {}

    def convert_cached(self, document: Document, api_version: str) -> Document:
        """Return the object in another version if it was converted recently.

        Raises: Unconverted when the webhook has to be called first.
        """
        if document.keys() <= {"apiVersion", "kind"}:
            return {**document, "apiVersion": api_version}
        key = api_version, encode(document)
        if key in self._made:
            return self._made[key]

        async def fetch() -> None:
            [made] = await self.convert([document], api_version)
            while len(self._made) >= _REMEMBERED:
                del self._made[next(iter(self._made))]
            self._made[key] = made

        raise ConversionRequired(fetch)

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        waiting = [document for document in documents if document["apiVersion"] != api_version]
        if not waiting:
            return list(documents)
        first = waiting[0]
        group, version = split_api_version(first["apiVersion"])
        what = f"conversion webhook for {group}/{version}, Kind={first['kind']}"
        try:
            converted = await self._ask(waiting, api_version)
        except _BadConversion as error:
            raise failure(500, f"{what} failed: {error}") from None
        if len(converted) != len(waiting):
            raise failure(500, f"{what} returned {len(converted)} objects, expected {len(waiting)}")
        found = iter([_merge_converted(what, pair, api_version) for pair in zip(waiting, converted, strict=True)])
        return [document if document["apiVersion"] == api_version else next(found) for document in documents]

    async def _ask(self, documents: list[Document], api_version: str) -> list[Any]:
        if not self._review_version:
            raise _BadConversion("no supported conversion review versions")
        if self._call is None:
            raise _BadConversion("this control plane was not given a way to call conversion webhooks")
        uid = self._new_uid()
        review_version = f"apiextensions.k8s.io/{self._review_version}"
        objects = [_without_version(document) for document in documents]
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": objects}
        review = {"kind": "ConversionReview", "apiVersion": review_version, "request": request}
        try:
            answer = await self._call(self._name, self._config, review)
        except Exception as error:
            raise _BadConversion(str(error)) from error
        return self._read_answer(answer, review_version, uid)

    def _read_answer(self, answer: Any, review_version: str, uid: str) -> list[Any]:
        if not isinstance(answer, dict):
            raise _BadConversion("no response provided")
        expected, found = f"{review_version}, Kind=ConversionReview", _type_of(answer)
        if self._review_version == "v1" and found != expected:
            raise _BadConversion(f"expected webhook response of {expected}, got {found}")
        response = answer.get("response")
        if not isinstance(response, dict):
            raise _BadConversion("no response provided")
        if self._review_version == "v1" and response.get("uid") != uid:
            raise _BadConversion(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}")
        result = response.get("result") or {}
        if result.get("status") != "Success":
            status = f"response.result.status was '{result.get('status', '')}', not 'Success'"
            raise _BadConversion(result.get("message") or status)
        return list(response.get("convertedObjects") or [])


def _without_version(document: Document) -> Document:
    """Return an object as it is stored: without its version."""
    metadata = document.get("metadata") or {}
    if "resourceVersion" not in metadata:
        return document
    return {**document, "metadata": {name: value for name, value in metadata.items() if name != "resourceVersion"}}


def _type_of(document: Document) -> str:
    group, version = split_api_version(str(document.get("apiVersion", "")))
    return f"{group}/{version}, Kind={document.get('kind', '')}"


def _merge_converted(what: str, pair: tuple[Document, Any], api_version: str) -> Document:
    """Check one converted object against its original, and merge its metadata.

    Raises: StatusError 500.
    """
    original, converted = pair
    metadata = original.get("metadata") or {}
    _check_readable(converted)
    found, kind = converted.get("apiVersion", ""), converted["kind"]
    if found != api_version:
        why = f"invalid groupVersion (expected {api_version}, received {found})"
        raise failure(500, f"{what} returned invalid object at index 0: {why}")
    if kind != original["kind"]:
        why = f"invalid kind (expected {original['kind']}, received {kind})"
        raise failure(500, f"{what} returned invalid object at index 0: {why}")
    try:
        _check_identity(metadata, converted.get("metadata"))
    except _BadConversion as error:
        raise failure(500, f"{what} returned invalid object: {error}") from None
    try:
        return {**converted, "metadata": _merged_metadata(metadata, converted)}
    except _BadConversion as error:
        raise failure(500, f"{what} returned invalid metadata: {error}") from None


def _check_readable(converted: Any) -> None:
    if converted is None:
        raise failure(500, "unexpected end of JSON input")
    if not isinstance(converted, dict):
        raise failure(500, f"json: cannot unmarshal {json_type(converted)} into Go value of type {kind_of({})}")
    if not converted.get("kind"):
        text = json.dumps(converted, separators=(",", ":"), ensure_ascii=False)
        raise failure(500, f"Object 'Kind' is missing in '{text}'")


def _check_identity(original: Document, converted: Any) -> None:
    document = converted if isinstance(converted, dict) else {}
    for key, label in _IDENTITY:
        before, after = original.get(key, ""), document.get(key, "")
        if before != after:
            raise _BadConversion(f"must have the same {label}: {before} != {after}")


def _merged_metadata(original: Document, converted: Document) -> Document:
    """Return the original metadata with the converted labels and annotations."""
    if "metadata" not in converted:
        raise _BadConversion("missing metadata in converted object")
    metadata = converted["metadata"]
    if not isinstance(metadata, dict):
        raise _BadConversion(f"invalid metadata of type {kind_of(metadata)} in converted object")
    merged = dict(original)
    for key in ("labels", "annotations"):
        values = metadata.get(key)
        if values is None:
            merged.pop(key, None)
            continue
        _check_texts(key, values)
        if values != original.get(key):
            _check_names(key, values)
        merged[key] = values
    return merged


def _check_texts(key: str, values: Any) -> None:
    if not isinstance(values, dict):
        raise _BadConversion(f"invalid metadata.{key} of type {kind_of(values)} in converted object")
    for name, value in values.items():
        if not isinstance(value, str):
            raise _BadConversion(
                f"metadata.{key}[{name}] must be a string, but is {kind_of(value)} in converted object"
            )


def _check_names(key: str, values: Document) -> None:
    errors = metadata_errors({"name": "any", key: values}, namespaced=False, name_rule=_any_name, custom=True)
    # The server writes annotation here, and nowhere else.
    texts = [str(each).replace("metadata.annotations", "metadata.annotation", 1) for each in errors]
    if texts:
        raise _BadConversion(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _any_name(_name: str, *, prefix: bool = False) -> list[str]:  # noqa: ARG001
    return []
