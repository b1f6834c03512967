"""AdmissionReview: what a webhook is sent, and what it may answer."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final

from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.bodies import BodyDecodeError, read_json
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.metadata import json_type
from konverge_cluster.api.strategy import Document, Strategy
from konverge_cluster.webhooks.matching import Invocation, namespace_of

__all__ = [
    "AdmissionResponse",
    "InvalidReview",
    "endpoint_kind",
    "read_response",
    "request_of",
    "review_of",
    "review_version",
]

GROUP: Final = "admission.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1")
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_STATUS_FIELDS: Final = {"status": str, "message": str, "reason": str, "code": int, "details": dict, "metadata": dict}
_RESPONSE_FIELDS: Final = {
    "uid": str,
    "allowed": bool,
    "status": dict,
    "patch": str,
    "patchType": str,
    "auditAnnotations": dict,
    "warnings": list,
}
_GO_TYPES: Final = {
    "uid": "types.UID",
    "status": "v1.Status",
    "patch": "[]uint8",
    "patchType": "v1.PatchType",
    "auditAnnotations": "map[string]string",
    "warnings": "[]string",
    "reason": "v1.StatusReason",
    "details": "v1.StatusDetails",
    "metadata": "v1.ListMeta",
}
_PLAIN_TYPES: Final = {str: "string", bool: "bool", int: "int32"}


class InvalidReview(ValueError):
    """An answer that the server cannot use; the text says why."""


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """What a webhook decided. `patch` is the text of its patch, `status` what it says about a refusal."""

    allowed: bool
    patch: bytes
    patch_type: str
    status: dict[str, Any] | None
    warnings: tuple[str, ...]

    def operations(self) -> list[Any]:
        """The JSON patch, decoded; none when nothing is to be changed.

        Raises: BadReview.
        """
        if not self.patch:
            return []
        try:
            value, _ = read_json(self.patch)
        except BodyDecodeError as fault:
            raise InvalidReview(f"received undecodable patch in webhook response: {fault}") from None
        if value is not None and not isinstance(value, list):
            text = f"json: cannot unmarshal {json_type(value)} into Go value of type jsonpatch.Patch"
            raise InvalidReview(f"received undecodable patch in webhook response: {text}")
        return value or []


def review_version(versions: tuple[str, ...]) -> str | None:
    """The first version that a webhook understands and the server speaks."""
    return next((version for version in versions if version in _VERSIONS), None)


def endpoint_kind(strategy: Strategy, subresource: str) -> dict[str, str]:
    """The kind of the objects that an endpoint takes: a subresource may have its own (Scale)."""
    kind = strategy.info.kind
    part = strategy.info.subresource(subresource) if subresource else None
    if part is not None and part.version:
        return {"group": part.group, "version": part.version, "kind": part.kind}
    return {"group": kind.group, "version": kind.version, "kind": part.kind if part else kind.kind}


def _resource(strategy: Strategy) -> dict[str, str]:
    kind = strategy.info.kind
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def request_of(
    invocation: Invocation, request: AdmissionRequest, states: tuple[Document | None, Document | None]
) -> Document:
    """The request as a webhook sees it, without its uid; `states` are the new and the old object in its version."""
    strategy, subresource = invocation.strategy, request.subresource
    described: Document = {"kind": endpoint_kind(strategy, subresource), "resource": _resource(strategy)}
    if subresource:
        described["subResource"] = subresource
    described["requestKind"] = endpoint_kind(request.strategy, subresource)
    described["requestResource"] = _resource(request.strategy)
    if subresource:
        described["requestSubResource"] = subresource
    named = {"name": request.name, "namespace": namespace_of(request)}
    described.update({key: value for key, value in named.items() if value})
    described["operation"] = request.operation
    described["userInfo"] = dict(request.user)
    described["object"], described["oldObject"] = states
    described["dryRun"] = request.dry_run
    described["options"] = dict(request.options) or None
    return described


def review_of(version: str, uid: str, described: Document) -> Document:
    """Wrap a request as the review that goes out."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": f"{GROUP}/{version}",
        "request": {"uid": uid, **described},
    }


def read_response(review: Document, version: str, uid: str, *, mutating: bool) -> AdmissionResponse:
    """Read the answer to a review.

    Raises: BadReview.
    """
    response = review.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    if not isinstance(response, dict):
        raise _wrong(response, "AdmissionReview.response", f"{version}.AdmissionResponse")
    _check_types(response, _RESPONSE_FIELDS, "AdmissionResponse.response")
    _check_types(response.get("status") or {}, _STATUS_FIELDS, "Status.response.status")
    patch = _decoded(response.get("patch") or "")
    patch_type = response.get("patchType")
    if version == "v1":
        _check_identity(review, response, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    elif patch:
        # The old version of the review had one kind of patch only, and never said which.
        patch_type = "JSONPatch"
    return AdmissionResponse(
        allowed=response.get("allowed") or False,
        patch=patch,
        patch_type=patch_type or "",
        status=response.get("status"),
        warnings=tuple(response.get("warnings") or ()),
    )


def _check_identity(review: Document, response: Document, uid: str) -> None:
    found = response.get("uid") or ""
    if found != uid:
        raise _invalid(f"expected response.uid={quote(uid)}, got {quote(found)}")
    if not review.get("kind"):
        raise _invalid(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got /, Kind=")


def _check_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating and patch:
        raise _invalid("validating webhook may not return response.patch")
    if not mutating and patch_type is not None:
        raise _invalid("validating webhook may not return response.patchType")
    if patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _check_types(holder: Document, fields: dict[str, type], where: str) -> None:
    for name, kind in fields.items():
        value = holder.get(name)
        if value is None:
            continue
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _wrong(value, f"{where}.{name}", _GO_TYPES.get(name) or _PLAIN_TYPES[kind])
        odd = [each for each in holder[name] if not isinstance(each, str)] if name == "warnings" else []
        if odd:
            raise _wrong(odd[0], f"{where}.{name}", "string")


def _invalid(text: str) -> InvalidReview:
    return InvalidReview(f"received invalid webhook response: {text}")


def _undecodable(text: str) -> InvalidReview:
    return InvalidReview(f"failed to call webhook: {text}")


def _wrong(value: Any, where: str, wanted: str) -> InvalidReview:
    return _undecodable(f"json: cannot unmarshal {json_type(value)} into Go struct field {where} of type {wanted}")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        at = next((index for index, letter in enumerate(text) if letter not in _BASE64), len(text))
        raise _undecodable(f"illegal base64 data at input byte {at}") from None
