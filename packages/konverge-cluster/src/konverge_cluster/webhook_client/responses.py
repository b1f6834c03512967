"""HTTP responses of webhooks, and the errors for unusable ones.

The texts are exactly those of the real server's HTTP client and decoder: they appear in responses to users, and tests
of operators match on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from konverge.objects.kinds import split_api_version
from konverge_cluster.api.bodies import BodyDecodeError, read_json, read_yaml
from konverge_cluster.api.field_errors import quote

__all__ = ["TYPE_META", "HttpResponse", "WebhookCallError", "read_response"]

Review = dict[str, Any]

TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_MAX_TEXT: Final = 2048
_KNOWN_VERSIONS: Final = ("v1", "v1beta1")
_JSON_TYPES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_CODES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class WebhookCallError(Exception):
    """A webhook returned no usable response; the text is the reason. `no_client`: no client could be created."""

    def __init__(self, text: str, *, no_client: bool = False) -> None:
        super().__init__(text)
        self.no_client = no_client


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response."""

    status: int
    body: bytes
    content_type: str = ""


def read_response(response: HttpResponse, api_version: str, kind: str) -> Review:
    """Decode the review in a response: of the requested kind, or without a kind.

    Raises: WebhookCallError.
    """
    if not 200 <= response.status <= 206:
        raise WebhookCallError(_status_text(response))
    if not response.body:
        text = f"0-length response with status code: {response.status} and content type: {response.content_type}"
        raise WebhookCallError(text)
    review = _decode(response.body)
    _check_kind(review, api_version, kind)
    return review


def _decode(body: bytes) -> Review:
    value = _value(body)
    if not isinstance(value, dict):
        json_type = _JSON_TYPES.get(type(value), "null")
        text = f"json: cannot unmarshal {json_type} into Go value of type {TYPE_META}"
        raise WebhookCallError(f"couldn't get version/kind; json parse error: {text}")
    return value


def _value(body: bytes) -> Any:
    # A body that does not start like a JSON object is decoded as YAML, whatever its content type.
    read = read_json if body.lstrip()[:1] == b"{" else read_yaml
    try:
        return read(body)[0]
    except BodyDecodeError as error:
        raise WebhookCallError(f"couldn't get version/kind; json parse error: {error}") from None


def _check_kind(review: Review, api_version: str, kind: str) -> None:
    found_version, found_kind = review.get("apiVersion") or "", review.get("kind") or ""
    if (found_version, found_kind) == (api_version, kind) or not found_kind:
        return
    group, version = split_api_version(str(found_version))
    expected_group, expected_version = split_api_version(api_version)
    sibling = group == expected_group and found_kind == kind and version in _KNOWN_VERSIONS
    if sibling or (found_version, found_kind) == ("v1", "Status"):
        source, target = f"({version}.{found_kind})", f"({expected_version}.{kind})"
        raise WebhookCallError(f"converting {source} to {target}: unknown conversion")
    text = f'no kind "{found_kind}" is registered for version "{found_version}" in scheme "pkg/runtime/scheme.go:111"'
    raise WebhookCallError(text)


def _status_text(response: HttpResponse) -> str:
    message = _status_message(response)
    if message is not None:
        return message
    is_text = not response.content_type or response.content_type.lower().startswith("text/")
    text = response.body[:_MAX_TEXT].decode("utf-8", "replace").strip() if is_text else "unknown"
    if response.status in (403, 406, 415) and text:
        return text
    if response.status >= 500 and response.status not in _CODES:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    nothing = f"the server responded with the status code {response.status} but did not return more information"
    return _CODES.get(response.status, nothing)


def _status_message(response: HttpResponse) -> str | None:
    """Return the message of the Status in the body, None when the body is not a failed Status."""
    try:
        status = _value(response.body) if response.body else None
    except WebhookCallError:
        return None
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("status") == "Failure":
        return str(status.get("message") or "")
    return None
