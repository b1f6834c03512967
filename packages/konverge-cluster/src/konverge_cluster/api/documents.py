"""From a decoded body to a document of the kind: kind and version checked, metadata and the rest brought into shape.

What a strict reader objects to (unknown fields, keys that repeat) is refused, warned of or ignored, as the request
asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from konverge.objects.kinds import split_api_version
from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import JSON, YAML, BodyDecodeError, ObjectDecodeError, media_type, read_body, summary
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, encode
from konverge_cluster.api.field_errors import invalid
from konverge_cluster.api.metadata import FieldTypeError, decode_metadata, json_type
from konverge_cluster.api.negotiation import PROTOBUF
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document, Strategy

__all__ = ["Decoder", "decode_and_default", "decode_error", "read_document", "report_strict_errors", "to_json_request"]

Decoder = Callable[[bytes, str, str], Document]
"""Reads a body. The apiVersion and kind are those of an object that does not say its own.

Raises: BodyDecodeError; ObjectDecodeError when the kind is known and the object cannot be read.
"""

_OPTIONS: Final = "DeleteOptions"
_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def read_document(cluster: Cluster, call: Call, validation: str) -> Document:
    """Read the object that a POST or PUT carries.

    Raises: StatusError 400, 413, 415 or 422.
    """
    strategy, request = call.strategy, call.request
    content_type = request.headers.get("content-type", "")
    try:
        value, problems = read_body(content_type, request.body, (JSON, YAML, PROTOBUF))
    except BodyDecodeError as fault:
        text = str(fault)
        if media_type(content_type) == JSON:
            text = f"couldn't get version/kind; json parse error: {text}"
        raise _unrecognized(strategy, request.body, text) from None
    if value is None:
        value = {}
    document = _typed(cluster, call, value, validation)
    document, found = decode_and_default(strategy, document)
    report_strict_errors(call, problems + found, validation)
    return document


def to_json_request(request: Request, strategy: Strategy, decode: Decoder) -> Request:
    """The same request with its body in JSON.

    Raises: StatusError 400.
    """
    deletes = request.method == "DELETE"
    wanted = strategy.info.kind
    try:
        document = decode(request.body, wanted.api_version, _OPTIONS if deletes else wanted.kind)
    except BodyDecodeError as fault:
        if deletes and isinstance(fault, ObjectDecodeError) and fault.kind != _OPTIONS:
            raise status_errors.bad_request(_unregistered(fault.kind, fault.api_version)) from None
        if deletes:
            raise status_errors.bad_request(str(fault)) from None
        if not isinstance(fault, ObjectDecodeError):
            raise _unrecognized(strategy, request.body, str(fault)) from None
        raise decode_error(strategy, str(fault), fault.kind, split_api_version(fault.api_version)[1]) from None
    return replace(request, headers={**request.headers, "content-type": JSON}, body=encode(document))


def _unregistered(kind: str, api_version: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def _unrecognized(strategy: Strategy, body: bytes, text: str) -> StatusError:
    kind = strategy.info.kind.kind
    return status_errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {text} ({summary(body)})"
    )


def decode_error(strategy: Strategy, why: str, kind: str = "", version: str = "") -> StatusError:
    """Refuse an object that cannot become one of this kind."""
    wanted = strategy.info.kind
    return status_errors.bad_request(
        f'{kind or wanted.kind} in version "{version or wanted.version}" cannot be handled as a {wanted.kind}: {why}'
    )


def report_strict_errors(call: Call, problems: list[str], validation: str) -> None:
    """Refuse, warn of or ignore what a strict reader objects to.

    Raises: StatusError 400 when the validation is Strict.
    """
    if problems and validation == "Strict":
        raise decode_error(call.strategy, f"strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        call.warnings.extend(problems)


def _typed(cluster: Cluster, call: Call, value: Any, validation: str) -> Document:
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
        _check_custom(strategy, value, body)
    else:
        _check_builtin(cluster, strategy, value)
    return value


def _warn_of_unknown_version(cluster: Cluster, call: Call, value: Document, validation: str) -> None:
    """Warn of every field of an object whose version does not exist: the server prunes it before it looks."""
    kind = call.strategy.info.kind
    group, version = split_api_version(value.get("apiVersion") or "")
    known = cluster.registry.find(group, version, kind.plural) is not None
    if validation == "Warn" and value.get("kind") and group == kind.group and not known:
        names = [name for name in value if name not in ("apiVersion", "kind", "metadata")]
        call.warnings.extend(f'unknown field "{name}"' for name in names)


def _check_custom(strategy: Strategy, value: Document, body: bytes) -> None:
    wanted = strategy.info.kind
    kind, api_version = value.get("kind") or "", value.get("apiVersion") or ""
    if not kind:
        raise _unrecognized(strategy, body, f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'")
    if api_version != wanted.api_version:
        text = f"the API version in the data ({api_version}) does not match the expected API version"
        raise status_errors.bad_request(f"{text} ({wanted.api_version})")
    if kind != wanted.kind:
        name = (value.get("metadata") or {}).get("name", "")
        raise status_errors.invalid(wanted.group, kind, name, [invalid("kind", kind, f"must be {wanted.kind}")])


def _check_builtin(cluster: Cluster, strategy: Strategy, value: Document) -> None:
    wanted = strategy.info.kind
    kind = value.get("kind") or wanted.kind
    api_version = value.get("apiVersion") or wanted.api_version
    value["kind"], value["apiVersion"] = kind, api_version
    if kind == wanted.kind and api_version == wanted.api_version:
        return
    group, version = split_api_version(api_version)
    known = any(each.info.kind.kind == kind for each in cluster.registry.resources(group, version) if not each.custom)
    if known:
        package = wanted.group.partition(".")[0] or "core"
        why = f"converting ({version}.{kind}) to ({package}.{wanted.kind}): unknown conversion"
    else:
        why = _unregistered(kind, api_version)
    raise decode_error(strategy, why, kind, version)


def decode_and_default(strategy: Strategy, document: Document, *, applied: bool = False) -> tuple[Document, list[str]]:
    """Bring a document into the kind's shape, defaults included; return what a strict reader objects to.

    What an apply made has passed the schema of a custom resource already, and keeps its nulls.

    Raises: StatusError 400 when a value has a type that the kind cannot hold.
    """
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        where = f"Go struct field {strategy.info.kind.kind}.metadata of type v1.ObjectMeta"
        raise decode_error(strategy, f"json: cannot unmarshal {json_type(metadata)} into {where}")
    try:
        document["metadata"], problems = decode_metadata(metadata or {}, custom=strategy.custom)
    except FieldTypeError as fault:
        raise decode_error(strategy, str(fault)) from None
    found: list[str] = []
    if not (applied and strategy.custom):
        document, found = strategy.decode(document)
    strategy.default(document)
    return document, problems + found
