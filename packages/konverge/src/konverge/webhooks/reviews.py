"""Reviews on the wire: the request of the API server, and the bytes of the response. No I/O.

The API server distinguishes two kinds of rejection:

- a *denial* is a review with `allowed: false`. It counts, whatever the failure policy is.
- a `BadReview` is a failed call: the response is an HTTP error, and the failure policy decides. Its body is a Status,
  so that its message reaches the client.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from konverge.errors import DecodeError
from konverge.objects import Model, decode, encode, field
from konverge.objects.kinds import split_api_version
from konverge.webhooks.requests import AdmissionRequest, Deny, User

__all__ = [
    "AdmissionCall",
    "BadReview",
    "ConversionCall",
    "ReviewResponse",
    "admission_response",
    "conversion_response",
    "failure_body",
    "read_admission",
    "read_conversion",
]

ADMISSION: Final = "admission.k8s.io"
CONVERSION: Final = "apiextensions.k8s.io"
_SUPPORTED: Final = "v1"
_UNSUPPORTED: Final = "v1beta1"
_NULL: Final = msgspec.Raw(b"null")
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE")

T = TypeVar("T")

Result: TypeAlias = Literal["allowed", "denied", "failed"]


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The body of a response, and its result."""

    body: bytes
    result: Result


class BadReview(Exception):
    """A review that cannot be handled; `code` is the HTTP status code of the response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Envelope(Model):
    api_version: str = ""
    kind: str = ""
    request: msgspec.Raw = _NULL


class GroupVersionKind(Model):
    """A kind as in a review."""

    group: str = ""
    version: str = ""
    kind: str = ""


class _UserInfo(Model):
    username: str | None = None
    uid: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class AdmissionCall(Model):
    """The request of an AdmissionReview, with the objects as bytes."""

    uid: str
    kind: GroupVersionKind
    operation: str
    request_kind: GroupVersionKind | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    user_info: _UserInfo = field(default_factory=_UserInfo)
    object_: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL
    dry_run: bool | None = None
    options: dict[str, Any] | None = None

    @property
    def new(self) -> bytes | None:
        """The new object; None when there is none."""
        return _text(self.object_)

    @property
    def old(self) -> bytes | None:
        """The stored object; None when there is none."""
        return _text(self.old_object)

    def request(self) -> AdmissionRequest:
        """Return the request for the author's function."""
        if self.operation not in _OPERATIONS:
            raise BadReview(400, f"the operation {self.operation!r} is not one of {', '.join(_OPERATIONS)}")
        user = self.user_info
        requested = self.request_kind or self.kind
        return AdmissionRequest(
            operation=self.operation,  # type: ignore[arg-type]  # one of the three, as checked
            uid=self.uid,
            name=self.name or "",
            namespace=self.namespace or "",
            user=User(user.username or "", user.uid or "", tuple(user.groups or ()), user.extra or {}),
            dry_run=bool(self.dry_run),
            version=requested.version,
            subresource=self.sub_resource or "",
            options=self.options or {},
        )


class ConversionCall(Model):
    """The request of a ConversionReview, with the objects as bytes."""

    uid: str
    desired_api_version: str = field(name="desiredAPIVersion")
    objects: list[msgspec.Raw] | None = None


def read_admission(body: bytes) -> AdmissionCall | ReviewResponse:
    """Read an AdmissionReview; return the response itself when its version is not supported.

    Raises: BadReview for anything else.
    """
    request, version = _request(body, "AdmissionReview", ADMISSION)
    call = _read(AdmissionCall, request)
    if version == _SUPPORTED:
        return call
    text = f"this webhook supports {ADMISSION}/{_SUPPORTED} (write admissionReviewVersions: [{_SUPPORTED}])"
    return admission_response(call.uid, denied=[Deny(text, code=400)], version=version)


def read_conversion(body: bytes) -> ConversionCall | ReviewResponse:
    """Read a ConversionReview; return the response itself when its version is not supported.

    Raises: BadReview for anything else.
    """
    request, version = _request(body, "ConversionReview", CONVERSION)
    call = _read(ConversionCall, request)
    if version == _SUPPORTED:
        return call
    text = f"this webhook supports {CONVERSION}/{_SUPPORTED} (write conversionReviewVersions: [{_SUPPORTED}])"
    return conversion_response(call.uid, failure=text, version=version)


def admission_response(
    uid: str,
    *,
    denied: Sequence[Deny] = (),
    details: Mapping[str, str] | None = None,
    patch: Sequence[dict[str, Any]] = (),
    warnings: Sequence[str] = (),
    version: str = _SUPPORTED,
) -> ReviewResponse:
    """Write the response to an AdmissionReview: allowed unless there are denials.

    `details` are group, kind and name of the object: kubectl shows them with denials that name a field.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": not denied}
    if denied:
        response["status"] = _status(denied, details or {})
    elif patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode(patch)).decode()
    if warnings:
        response["warnings"] = list(warnings)
    review = {"apiVersion": f"{ADMISSION}/{version}", "kind": "AdmissionReview", "response": response}
    return ReviewResponse(encode(review), "denied" if denied else "allowed")


def conversion_response(
    uid: str, objects: Sequence[dict[str, Any]] = (), *, failure: str = "", version: str = _SUPPORTED
) -> ReviewResponse:
    """Write the response to a ConversionReview: the objects, or the reason of the failure."""
    result = {"status": "Failure", "message": failure} if failure else {"status": "Success"}
    response = {"uid": uid, "result": result, "convertedObjects": [] if failure else list(objects)}
    review = {"apiVersion": f"{CONVERSION}/{version}", "kind": "ConversionReview", "response": response}
    return ReviewResponse(encode(review), "failed" if failure else "allowed")


def failure_body(code: int, message: str) -> bytes:
    """Write a Status, the body of an HTTP error: the API server passes its message to the client."""
    return encode({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})


def _status(denied: Sequence[Deny], details: Mapping[str, str]) -> dict[str, Any]:
    first = denied[0]
    status: dict[str, Any] = {"status": "Failure", "message": "; ".join(map(str, denied)), "code": first.code}
    if first.reason:
        status["reason"] = first.reason
    causes = [
        {"reason": "FieldValueInvalid", "message": each.message, "field": each.path[1:]} for each in denied if each.path
    ]
    if causes:
        status["details"] = {**details, "causes": causes}
    return status


def _request(body: bytes, kind: str, group: str) -> tuple[bytes, str]:
    """Return the request of a review and the version of the review."""
    if not body.strip():
        raise BadReview(400, f"the body is empty: expected an {kind}")
    envelope = _read(_Envelope, body)
    found_group, version = split_api_version(envelope.api_version)
    if envelope.kind != kind or found_group != group or version not in (_SUPPORTED, _UNSUPPORTED):
        found = f"{envelope.api_version} {envelope.kind}".strip() or "an object without apiVersion and kind"
        raise BadReview(400, f"expected {group}/{_SUPPORTED} {kind}, got {found:.100}")
    request = _text(envelope.request)
    if request is None:
        raise BadReview(400, f"the {kind} has no request")
    return request, version


def _read(type_: type[T], body: bytes) -> T:
    try:
        return decode(type_, body)
    except DecodeError as error:
        raise BadReview(400, f"the review cannot be read: {error}") from None


def _text(raw: msgspec.Raw) -> bytes | None:
    text = bytes(raw)
    return None if text.strip() == b"null" else text
