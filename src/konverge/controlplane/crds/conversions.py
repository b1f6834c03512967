"""Between the versions of a custom resource: `None` rewrites the apiVersion, `Webhook` asks somebody.

A webhook gets all objects that need it in one ConversionReview. It may change everything but the identity of an object:
of its metadata only labels and annotations are taken over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from konverge.controlplane.api.metadata import metadata_problems
from konverge.controlplane.api.problems import quote
from konverge.controlplane.api.refusals import failure
from konverge.controlplane.api.strategy import Document
from konverge.objects.kinds import split_api_version

__all__ = ["Converter", "NoConversion", "WebhookCaller", "WebhookConversion"]

WebhookCaller = Callable[[str, Mapping[str, Any], Document], Awaitable[Any]]
"""Posts a review to a webhook and gives what it answers: `caller(crd_name, client_config, review)`.

It raises an exception whose text says why when there is no usable answer.
"""

_METADATA_PARTS = (("kind", "kind"), ("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class Converter(Protocol):
    """Turns objects of one resource into another version."""

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        """The same objects in another version, in order; those that are in it already are returned as they are.

        Raises: Refusal 500 when it cannot be done.
        """
        ...


class NoConversion:
    """All versions look the same but for the apiVersion."""

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        for document in documents:
            document["apiVersion"] = api_version
        return list(documents)


class _BadConversion(ValueError):
    """What a webhook answered cannot be used; the text says why."""


class WebhookConversion:
    """Conversion by a webhook, in the first review version that both sides know."""

    def __init__(
        self, name: str, webhook: Mapping[str, Any], call: WebhookCaller | None, new_uid: Callable[[], str]
    ) -> None:
        self._name = name
        self._config: Mapping[str, Any] = webhook.get("clientConfig") or {}
        known = [each for each in webhook.get("conversionReviewVersions") or () if each in ("v1", "v1beta1")]
        self._review_version = known[0] if known else ""
        self._call = call
        self._new_uid = new_uid

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        waiting = [document for document in documents if document["apiVersion"] != api_version]
        if not waiting:
            return list(documents)
        first = waiting[0]
        group, version = split_api_version(first["apiVersion"])
        what = f"conversion webhook for {group}/{version}, Kind={first['kind']}"
        try:
            converted = await self._ask(waiting, api_version)
        except _BadConversion as bad:
            raise failure(500, f"{what} failed: {bad}") from None
        if len(converted) != len(waiting):
            raise failure(500, f"{what} returned {len(converted)} objects, expected {len(waiting)}")
        found = iter([_take_over(what, pair) for pair in zip(waiting, converted, strict=True)])
        return [document if document["apiVersion"] == api_version else next(found) for document in documents]

    async def _ask(self, documents: list[Document], api_version: str) -> list[Any]:
        if not self._review_version:
            raise _BadConversion("no supported conversion review versions")
        if self._call is None:
            raise _BadConversion("this control plane was not given a way to call conversion webhooks")
        uid = self._new_uid()
        review_version = f"apiextensions.k8s.io/{self._review_version}"
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": documents}
        review = {"kind": "ConversionReview", "apiVersion": review_version, "request": request}
        try:
            answer = await self._call(self._name, self._config, review)
        except Exception as error:
            raise _BadConversion(str(error)) from error
        return self._read_answer(answer, review_version, uid)

    def _read_answer(self, answer: Any, review_version: str, uid: str) -> list[Any]:
        if not isinstance(answer, dict):
            raise _BadConversion("no response provided")
        found = (answer.get("apiVersion", ""), answer.get("kind", ""))
        if self._review_version == "v1" and found != (review_version, "ConversionReview"):
            expected = f"{review_version}, Kind=ConversionReview"
            raise _BadConversion(f"expected webhook response of {expected}, got {found[0]}, Kind={found[1]}")
        response = answer.get("response")
        if not isinstance(response, dict):
            raise _BadConversion("no response provided")
        if self._review_version == "v1" and response.get("uid") != uid:
            raise _BadConversion(f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}")
        result = response.get("result") or {}
        if result.get("status") != "Success":
            said = f"response.result.status was '{result.get('status', '')}', not 'Success'"
            raise _BadConversion(result.get("message") or said)
        return list(response.get("convertedObjects") or [])


def _take_over(what: str, pair: tuple[Document, Any]) -> Document:
    """Check one converted object against the one that was sent, and put its metadata together."""
    original, converted = pair
    try:
        _check_identity(original, converted)
        metadata = _merged_metadata(original["metadata"], converted)
    except _BadConversion as bad:
        raise failure(500, f"{what} returned invalid object: {bad}") from None
    return {**converted, "metadata": metadata}


def _check_identity(original: Document, converted: Any) -> None:
    if not isinstance(converted, dict):
        raise _BadConversion("Object 'Kind' is missing")
    metadata = converted.get("metadata") or {}
    before, after = {**original["metadata"], "kind": original["kind"]}, {**metadata, "kind": converted.get("kind", "")}
    for key, shown in _METADATA_PARTS:
        if before.get(key, "") != after.get(key, ""):
            raise _BadConversion(f"must have the same {shown}: {before.get(key, '')} != {after.get(key, '')}")


def _merged_metadata(original: Document, converted: Document) -> Document:
    said = converted.get("metadata")
    if not isinstance(said, dict):
        raise _BadConversion("missing metadata in converted object")
    merged = dict(original)
    for key in ("labels", "annotations"):
        merged.pop(key, None)
        if said.get(key) is None:
            continue
        values = said[key]
        if not isinstance(values, dict) or not all(isinstance(each, str) for each in values.values()):
            raise _BadConversion(f"invalid metadata.{key} in converted object")
        merged[key] = values
    problems = metadata_problems(merged, namespaced="namespace" in merged, name_rule=_any_name, custom=True)
    if problems:
        raise _BadConversion(", ".join(map(str, problems)))
    return merged


def _any_name(_name: str, *, prefix: bool = False) -> list[str]:  # noqa: ARG001
    return []
