"""What a webhook answers, and what the server makes of it, word for word.

The texts are those of the real server's HTTP client and decoder: they end up in the answers to users, and operators'
tests match on them.
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
_SHOWN: Final = 2048
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
    """A webhook gave no usable answer; the text says why. `unsent`: there was not even a way to call it."""

    def __init__(self, text: str, *, no_client: bool = False) -> None:
        super().__init__(text)
        self.no_client = no_client


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP answer."""

    status: int
    body: bytes
    content_type: str = ""


def read_response(response: HttpResponse, api_version: str, kind: str) -> Review:
    """Read the review that was asked for: one of this kind, or one that says no kind at all.

    Raises: CalloutFailure.
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
        shown = _JSON_TYPES.get(type(value), "null")
        text = f"json: cannot unmarshal {shown} into Go value of type {TYPE_META}"
        raise WebhookCallError(f"couldn't get version/kind; json parse error: {text}")
    return value


def _value(body: bytes) -> Any:
    # What does not begin as an object is taken for YAML, whatever its content type says.
    read = read_json if body.lstrip()[:1] == b"{" else read_yaml
    try:
        return read(body)[0]
    except BodyDecodeError as fault:
        raise WebhookCallError(f"couldn't get version/kind; json parse error: {fault}") from None


def _check_kind(review: Review, api_version: str, kind: str) -> None:
    found_version, found_kind = review.get("apiVersion") or "", review.get("kind") or ""
    if (found_version, found_kind) == (api_version, kind) or not found_kind:
        return
    group, version = split_api_version(str(found_version))
    wanted_group, wanted_version = split_api_version(api_version)
    sibling = group == wanted_group and found_kind == kind and version in _KNOWN_VERSIONS
    if sibling or (found_version, found_kind) == ("v1", "Status"):
        source, target = f"({version}.{found_kind})", f"({wanted_version}.{kind})"
        raise WebhookCallError(f"converting {source} to {target}: unknown conversion")
    text = f'no kind "{found_kind}" is registered for version "{found_version}" in scheme "pkg/runtime/scheme.go:111"'
    raise WebhookCallError(text)


def _status_text(response: HttpResponse) -> str:
    own = _own_words(response)
    if own is not None:
        return own
    is_text = not response.content_type or response.content_type.lower().startswith("text/")
    said = response.body[:_SHOWN].decode("utf-8", "replace").strip() if is_text else "unknown"
    if response.status in (403, 406, 415) and said:
        return said
    if response.status >= 500 and response.status not in _CODES:
        return f"an error on the server ({quote(said)}) has prevented the request from succeeding"
    nothing = f"the server responded with the status code {response.status} but did not return more information"
    return _CODES.get(response.status, nothing)


def _own_words(response: HttpResponse) -> str | None:
    """The message of a Status that came as the body, if one did."""
    try:
        status = _value(response.body) if response.body else None
    except WebhookCallError:
        return None
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("status") == "Failure":
        return str(status.get("message") or "")
    return None
