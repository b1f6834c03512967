"""PATCH requests: determine the patch type, apply the patch to the stored object, and store it as an update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import BODY_LIMIT, BodyDecodeError, huge_number, media_type, read_json, read_yaml
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, encode
from konverge_cluster.api.converters import converter_text
from konverge_cluster.api.documents import decode_and_default
from konverge_cluster.api.field_errors import invalid
from konverge_cluster.api.metadata import json_type
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.responses import Response
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.updates import UpdateFunc, check_name, guaranteed_update
from konverge_cluster.api.views import entry_response
from konverge_cluster.api.writes import endpoint_of, match_namespace, rules_of, track
from konverge_cluster.patches import (
    PatchError,
    apply_json_patch,
    apply_merge_patch,
    apply_patch,
    apply_strategic_patch,
)
from konverge_cluster.patches.go_text import plain

__all__ = [
    "APPLY",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "decode_patched",
    "handle_patch",
    "patch_kind",
    "patch_status_error",
    "read_patch",
]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

_PREFIXES: Final = {APPLY: "error decoding YAML: error converting YAML to JSON: ", STRATEGIC_PATCH: ""}
_CUSTOM_KINDS: Final = (JSON_PATCH, MERGE_PATCH, APPLY)
_KINDS: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY)


async def handle_patch(cluster: Cluster, call: Call) -> Response:
    kind = patch_kind(call)
    options = WriteOptions.read(call.query, "PatchOptions", apply=kind == APPLY)
    rules = rules_of(call)
    update = _apply(cluster, call, options) if kind == APPLY else _patch(cluster, call, options, kind)
    missing = kind == APPLY and not call.subresource
    entry, created = await guaranteed_update(cluster, call, rules, update, options=options, create_missing=missing)
    return await entry_response(cluster, call, entry, 201 if created else 200)


def patch_kind(call: Call) -> str:
    """Return the media type of a patch.

    Raises: StatusError 413 for a body over the limit, 415 for a patch type that the resource does not accept.
    """
    kind = media_type(call.request.headers.get("content-type", ""))
    if kind not in (_KINDS if call.strategy.strategic else _CUSTOM_KINDS):
        if call.strategy.custom:
            raise status_errors.unsupported_media_type(_CUSTOM_KINDS)
        raise status_errors.failure(415, "415: Unsupported Media Type", "UnsupportedMediaType", {})
    if len(call.request.body) > BODY_LIMIT:
        raise status_errors.too_large(f"limit is {BODY_LIMIT}")
    return kind


def patch_status_error(error: PatchError) -> StatusError:
    """Return the status error for a patch that cannot be applied."""
    return status_errors.failure(error.code, error.message, error.reason, error.details)


def read_patch(call: Call, kind: str) -> tuple[Any, list[str]]:
    """Decode the body of a patch.

    Raises: StatusError 400.
    """
    try:
        value, errors = (read_yaml if kind == APPLY else read_json)(call.request.body)
    except BodyDecodeError as error:
        if kind == MERGE_PATCH and call.query.text("fieldValidation") == "Ignore":
            raise status_errors.bad_request("Invalid JSON Patch") from None
        prefix = _PREFIXES.get(kind, "error decoding patch: ")
        raise status_errors.bad_request(f"{prefix}{error}") from None
    number = huge_number(call.request.body, value)
    if number is not None:
        where = "struct field jsonPatchOp.value" if kind == JSON_PATCH else "value"
        text = f"json: cannot unmarshal number {number} into Go {where} of type float64"
        raise status_errors.bad_request(f"{_PREFIXES.get(kind, 'error decoding patch: ')}{text}")
    return value, [f"json patch {text}" for text in errors] if kind == JSON_PATCH else errors


def _patch(cluster: Cluster, call: Call, options: WriteOptions, kind: str) -> UpdateFunc:
    functions: dict[str, Callable[[Document, Any], Any]] = {
        JSON_PATCH: apply_json_patch,
        MERGE_PATCH: apply_merge_patch,
        STRATEGIC_PATCH: lambda document, patch: _strategic(call, document, patch),
    }

    def update(old: Document | None) -> Document:
        assert old is not None
        # The patch is decoded here so that a missing object is reported before an error in the patch.
        patch, errors = read_patch(call, kind)
        try:
            patched = functions[kind](old, patch)
        except PatchError as error:
            raise patch_status_error(error) from None
        text = plain(patch) if kind == STRATEGIC_PATCH else encode(patched).decode()
        new = decode_patched(call, patched, text, errors, options.validation)
        track(cluster, call, old, new, options)
        return new

    return update


def _strategic(call: Call, document: Document, patch: Any) -> Document:
    """Apply a strategic merge patch; kind and apiVersion stay those of the resource, whatever the patch contains."""
    kind = call.strategy.info.kind
    patched = apply_strategic_patch(document, patch, topology=_topology(call))
    return {**patched, "kind": kind.kind, "apiVersion": kind.api_version}


def _topology(call: Call) -> Any:
    return call.strategy.topologies[call.strategy.info.kind.api_version]


def decode_patched(call: Call, patched: Any, text: str, errors: list[str], validation: str) -> Document:
    """Decode a patched document as its kind.

    Raises: StatusError 422 that shows the patch, when the result is not an object of the kind.
    """
    if not isinstance(patched, dict):
        raise _invalid_patch(text, "the patched value is no object")
    kind = call.strategy.info.kind
    if (patched.get("kind"), patched.get("apiVersion")) != (kind.kind, kind.api_version):
        raise _wrong_kind(call, patched, text)
    try:
        new, found = decode_and_default(call.strategy, patched)
    except StatusError as error:
        detail = str(error).partition(": ")[2]
        raise _invalid_patch(text, converter_text(detail) if text.startswith("map[") else detail) from None
    found = [*errors, *found]
    if found and validation == "Strict":
        raise _invalid_patch(text, f"strict decoding error: {', '.join(found)}")
    if validation == "Warn":
        call.warnings.extend(found)
    match_namespace(call, new["metadata"])
    check_name(call, new["metadata"])
    return new


def _wrong_kind(call: Call, patched: Document, text: str) -> StatusError:
    expected = call.strategy.info.kind
    api_version, kind = patched.get("apiVersion", ""), patched.get("kind", "")
    if not api_version or not kind:
        missing = "Kind" if not kind else "apiVersion"
        return _invalid_patch(text, f"Object '{missing}' is missing in '{text}'")
    detail = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    if call.strategy.custom:
        detail = f"the object provided is unrecognized (must be of type {expected.kind})"
    return _invalid_patch(text, detail)


def _invalid_patch(text: str, detail: str) -> StatusError:
    return status_errors.invalid("", "", "", [invalid("patch", text, detail)])


def _read_configuration(call: Call) -> tuple[Document, list[str]]:
    config, errors = read_patch(call, APPLY)
    if not isinstance(config, dict):
        text = f"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {json_type(config)}"
        raise status_errors.bad_request(f"error decoding YAML: {text} into Go value of type map[string]interface {{}}")
    for name in ("apiVersion", "kind"):
        if not isinstance(config.get(name, ""), str):
            config[name] = ""
    return config, errors


def _apply(cluster: Cluster, call: Call, options: WriteOptions) -> UpdateFunc:
    config, errors = _read_configuration(call)
    endpoint = endpoint_of(cluster, call.strategy, call.subresource)

    def update(old: Document | None) -> Document:
        try:
            applied = apply_patch(
                old, config, manager=options.manager, endpoint=endpoint, now=cluster.now(), force=bool(options.force)
            )
        except PatchError as error:
            raise patch_status_error(error) from None
        document: Document = _deep_copy(applied.object)
        new, found = decode_and_default(call.strategy, document, applied=True)
        found = [*errors, *found]
        if found and options.validation == "Strict":
            raise status_errors.bad_request(f"error strict decoding YAML: {', '.join(found)}")
        if options.validation == "Warn":
            call.warnings.extend(found)
        if applied.managed_fields:
            new["metadata"]["managedFields"] = applied.managed_fields
        match_namespace(call, new["metadata"])
        check_name(call, new["metadata"])
        return new

    return update


def _deep_copy(value: Any) -> Any:
    """Return a mutable copy: an applied object shares parts with the configuration and the stored object."""
    if isinstance(value, dict):
        return {key: _deep_copy(each) for key, each in value.items()}
    return [_deep_copy(each) for each in value] if isinstance(value, list) else value
