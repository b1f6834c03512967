"""AdmissionReview: the request that is sent to a webhook, and the validation of its response."""

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
    """A response that the server cannot use; the text is the reason."""


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The response of a webhook. `patch` is the decoded bytes of its patch, `status` describes a denial."""

    allowed: bool
    patch: bytes
    patch_type: str
    status: dict[str, Any] | None
    warnings: tuple[str, ...]

    def operations(self) -> list[Any]:
        """Return the operations of the JSON patch; an empty list when there is none.

        Raises: InvalidReview.
        """
        if not self.patch:
            return []
        try:
            value, _ = read_json(self.patch)
        except BodyDecodeError as error:
            raise InvalidReview(f"received undecodable patch in webhook response: {error}") from None
        if value is not None and not isinstance(value, list):
            text = f"json: cannot unmarshal {json_type(value)} into Go value of type jsonpatch.Patch"
            raise InvalidReview(f"received undecodable patch in webhook response: {text}")
        return value or []


def review_version(versions: tuple[str, ...]) -> str | None:
    """Return the first version of AdmissionReview that both the webhook and the server support."""
    return next((version for version in versions if version in _VERSIONS), None)


def endpoint_kind(strategy: Strategy, subresource: str) -> dict[str, str]:
    """Return the kind of the objects at an endpoint: a subresource may have its own (Scale)."""
    kind = strategy.info.kind
    subresource_info = strategy.info.subresource(subresource) if subresource else None
    if subresource_info is not None and subresource_info.version:
        return {"group": subresource_info.group, "version": subresource_info.version, "kind": subresource_info.kind}
    return {
        "group": kind.group,
        "version": kind.version,
        "kind": subresource_info.kind if subresource_info else kind.kind,
    }


def _resource(strategy: Strategy) -> dict[str, str]:
    kind = strategy.info.kind
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def request_of(
    invocation: Invocation, request: AdmissionRequest, states: tuple[Document | None, Document | None]
) -> Document:
    """Return the request of the review, without uid; `states` are the new and the old object in its version."""
    strategy, subresource = invocation.strategy, request.subresource
    document: Document = {"kind": endpoint_kind(strategy, subresource), "resource": _resource(strategy)}
    if subresource:
        document["subResource"] = subresource
    document["requestKind"] = endpoint_kind(request.strategy, subresource)
    document["requestResource"] = _resource(request.strategy)
    if subresource:
        document["requestSubResource"] = subresource
    identity = {"name": request.name, "namespace": namespace_of(request)}
    document.update({key: value for key, value in identity.items() if value})
    document["operation"] = request.operation
    document["userInfo"] = request.user.document()
    document["object"], document["oldObject"] = states
    document["dryRun"] = request.dry_run
    document["options"] = dict(request.options) or None
    return document


def review_of(version: str, uid: str, document: Document) -> Document:
    """Return the AdmissionReview to send."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": f"{GROUP}/{version}",
        "request": {"uid": uid, **document},
    }


def read_response(review: Document, version: str, uid: str, *, mutating: bool) -> AdmissionResponse:
    """Read and check the response to a review.

    Raises: InvalidReview.
    """
    response = review.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    if not isinstance(response, dict):
        raise _unmarshal_error(response, "AdmissionReview.response", f"{version}.AdmissionResponse")
    _check_types(response, _RESPONSE_FIELDS, "AdmissionResponse.response")
    _check_types(response.get("status") or {}, _STATUS_FIELDS, "Status.response.status")
    patch = _decode_patch(response.get("patch") or "")
    patch_type = response.get("patchType")
    if version == "v1":
        _check_identity(review, response, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    elif patch:
        # In v1beta1 JSONPatch is the only patch type, and it is implied.
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
            raise _unmarshal_error(value, f"{where}.{name}", _GO_TYPES.get(name) or _PLAIN_TYPES[kind])
        invalid = [each for each in holder[name] if not isinstance(each, str)] if name == "warnings" else []
        if invalid:
            raise _unmarshal_error(invalid[0], f"{where}.{name}", "string")


def _invalid(text: str) -> InvalidReview:
    return InvalidReview(f"received invalid webhook response: {text}")


def _undecodable(text: str) -> InvalidReview:
    return InvalidReview(f"failed to call webhook: {text}")


def _unmarshal_error(value: Any, where: str, go_type: str) -> InvalidReview:
    return _undecodable(f"json: cannot unmarshal {json_type(value)} into Go struct field {where} of type {go_type}")


def _decode_patch(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        at = next((index for index, character in enumerate(text) if character not in _BASE64), len(text))
        raise _undecodable(f"illegal base64 data at input byte {at}") from None
