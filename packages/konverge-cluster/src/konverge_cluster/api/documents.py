"""From a decoded body to a document of the kind: check kind and version, decode metadata and the rest, set defaults.

Strict decoding errors (unknown fields, duplicate keys) are rejected, returned as warnings or ignored, depending on the
request's fieldValidation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from konverge.objects.kinds import split_api_version
from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import (
    JSON,
    YAML,
    BodyDecodeError,
    ObjectDecodeError,
    huge_number,
    media_type,
    read_body,
    summary,
)
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, encode
from konverge_cluster.api.field_errors import invalid
from konverge_cluster.api.metadata import FieldTypeError, decode_metadata, json_type
from konverge_cluster.api.negotiation import PROTOBUF
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document, Strategy

__all__ = ["Decoder", "decode_and_default", "decode_error", "read_document", "report_strict_errors", "to_json_request"]

Decoder = Callable[[bytes, str, str], Document]
"""Decodes a body. The arguments are the body and the default apiVersion and kind, for an object without its own.

Raises: BodyDecodeError; ObjectDecodeError when the kind is known and the object cannot be decoded.
"""

_OPTIONS: Final = "DeleteOptions"
_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def read_document(cluster: Cluster, call: Call, validation: str) -> Document:
    """Read the object in the body of a POST or PUT.

    Raises: StatusError 400, 413, 415 or 422.
    """
    strategy, request = call.strategy, call.request
    content_type = request.headers.get("content-type", "")
    try:
        value, errors = read_body(content_type, request.body, (JSON, YAML, PROTOBUF))
    except BodyDecodeError as error:
        text = str(error)
        if media_type(content_type) == JSON:
            text = f"couldn't get version/kind; json parse error: {text}"
        raise _unrecognized(strategy, request.body, text) from None
    if value is None:
        value = {}
    document = _check_type(cluster, call, value, validation)
    if strategy.custom:
        _reject_huge_numbers(strategy, request.body, document)
    document, found = decode_and_default(strategy, document)
    _reject_huge_numbers(strategy, request.body, document)
    report_strict_errors(call, errors + found, validation)
    return document


def _reject_huge_numbers(strategy: Strategy, body: bytes, document: Document) -> None:
    number = huge_number(body, document)
    if number is not None:
        raise decode_error(strategy, f"json: cannot unmarshal number {number} into Go value of type float64")


def to_json_request(request: Request, strategy: Strategy, decode: Decoder) -> Request:
    """Return the request with its body converted to JSON.

    Raises: StatusError 400.
    """
    deletes = request.method == "DELETE"
    expected = strategy.info.kind
    try:
        document = decode(request.body, expected.api_version, _OPTIONS if deletes else expected.kind)
    except BodyDecodeError as error:
        if deletes and isinstance(error, ObjectDecodeError) and error.kind != _OPTIONS:
            raise status_errors.bad_request(_unregistered(error.kind, error.api_version)) from None
        if deletes:
            raise status_errors.bad_request(str(error)) from None
        if not isinstance(error, ObjectDecodeError):
            raise _unrecognized(strategy, request.body, str(error)) from None
        raise decode_error(strategy, str(error), error.kind, split_api_version(error.api_version)[1]) from None
    return replace(request, headers={**request.headers, "content-type": JSON}, body=encode(document))


def _unregistered(kind: str, api_version: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def _unrecognized(strategy: Strategy, body: bytes, text: str) -> StatusError:
    kind = strategy.info.kind.kind
    return status_errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {text} ({summary(body)})"
    )


def decode_error(strategy: Strategy, detail: str, kind: str = "", version: str = "") -> StatusError:
    """Return the error for an object that cannot be decoded as this kind: 400."""
    expected = strategy.info.kind
    prefix = f'{kind or expected.kind} in version "{version or expected.version}"'
    return status_errors.bad_request(f"{prefix} cannot be handled as a {expected.kind}: {detail}")


def report_strict_errors(call: Call, errors: list[str], validation: str) -> None:
    """Raise, warn of or ignore strict decoding errors, depending on the field validation.

    Raises: StatusError 400 when the validation is Strict.
    """
    if errors and validation == "Strict":
        raise decode_error(call.strategy, f"strict decoding error: {', '.join(errors)}")
    if validation == "Warn":
        call.warnings.extend(errors)


def _check_type(cluster: Cluster, call: Call, value: Any, validation: str) -> Document:
    strategy, body = call.strategy, call.request.body
    if not isinstance(value, dict):
        text = f"json: cannot unmarshal {json_type(value)} into Go value of type {_TYPE_META}"
        raise _unrecognized(strategy, body, f"couldn't get version/kind; json parse error: {text}")
    for name in ("apiVersion", "kind"):
        if value.get(name) is not None and not isinstance(value[name], str):
            text = f"json: cannot unmarshal {json_type(value[name])} into Go struct field .{name} of type string"
            raise _unrecognized(strategy, body, f"couldn't get version/kind; json parse error: {text}")
    if strategy.custom:
        _warn_of_unknown_version(cluster, call, value, validation)
        _check_custom_type(strategy, value, body)
    else:
        _check_builtin_type(cluster, strategy, value)
    return value


def _warn_of_unknown_version(cluster: Cluster, call: Call, value: Document, validation: str) -> None:
    """Warn of every field of an object whose version does not exist: the server prunes before it checks the version."""
    kind = call.strategy.info.kind
    group, version = split_api_version(value.get("apiVersion") or "")
    known = cluster.registry.find(group, version, kind.plural) is not None
    if validation == "Warn" and value.get("kind") and group == kind.group and not known:
        names = [name for name in value if name not in ("apiVersion", "kind", "metadata")]
        call.warnings.extend(f'unknown field "{name}"' for name in names)


def _check_custom_type(strategy: Strategy, value: Document, body: bytes) -> None:
    expected = strategy.info.kind
    kind, api_version = value.get("kind") or "", value.get("apiVersion") or ""
    if not kind:
        raise _unrecognized(strategy, body, f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'")
    if api_version != expected.api_version:
        text = f"the API version in the data ({api_version}) does not match the expected API version"
        raise status_errors.bad_request(f"{text} ({expected.api_version})")
    if kind != expected.kind:
        name = (value.get("metadata") or {}).get("name", "")
        raise status_errors.invalid(expected.group, kind, name, [invalid("kind", kind, f"must be {expected.kind}")])


def _check_builtin_type(cluster: Cluster, strategy: Strategy, value: Document) -> None:
    expected = strategy.info.kind
    kind = value.get("kind") or expected.kind
    api_version = value.get("apiVersion") or expected.api_version
    value["kind"], value["apiVersion"] = kind, api_version
    if kind == expected.kind and api_version == expected.api_version:
        return
    group, version = split_api_version(api_version)
    known = any(each.info.kind.kind == kind for each in cluster.registry.resources(group, version) if not each.custom)
    if known:
        package = expected.group.partition(".")[0] or "core"
        detail = f"converting ({version}.{kind}) to ({package}.{expected.kind}): unknown conversion"
    else:
        detail = _unregistered(kind, api_version)
    raise decode_error(strategy, detail, kind, version)


def decode_and_default(strategy: Strategy, document: Document, *, applied: bool = False) -> tuple[Document, list[str]]:
    """Decode a document as its kind and set defaults; return it with the strict decoding errors.

    `applied` is for the result of an apply: it has already passed the schema of a custom resource, and keeps its nulls.

    Raises: StatusError 400 when a value has a type that its field cannot hold.
    """
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        where = f"Go struct field {strategy.info.kind.kind}.metadata of type v1.ObjectMeta"
        raise decode_error(strategy, f"json: cannot unmarshal {json_type(metadata)} into {where}")
    try:
        document["metadata"], errors = decode_metadata(metadata or {}, custom=strategy.custom)
    except FieldTypeError as error:
        raise decode_error(strategy, str(error)) from None
    found: list[str] = []
    if not (applied and strategy.custom):
        document, found = strategy.decode(document)
    strategy.default(document)
    return document, errors + found
