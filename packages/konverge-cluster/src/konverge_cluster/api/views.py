"""Response bodies from stored bytes: the object itself, a list, a table or only metadata; JSON or YAML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import yaml

from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import JSON, YAML
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, encode
from konverge_cluster.api.negotiation import View, is_pretty
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document, Strategy
from konverge_cluster.storage import Entry

__all__ = [
    "document_response",
    "entry_response",
    "json_bytes_response",
    "list_response",
    "make_table",
    "object_bytes",
    "object_prefix",
    "partial_metadata",
    "to_yaml",
]

_JSON_HEADERS: Final = {"content-type": JSON}
# The real server's YAML reads these as booleans and numbers, Python's YAML does not.
_SHORT_FLAGS: Final = ("y", "n", "Y", "N")
_EXPONENT: Final = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")


@lru_cache(maxsize=1024)
def _head(api_version: str, kind: str, custom: bool) -> bytes:
    if custom:
        return b'{"apiVersion":"%s","kind":"%s",' % (api_version.encode(), kind.encode())
    return b'{"kind":"%s","apiVersion":"%s",' % (kind.encode(), api_version.encode())


def object_prefix(strategy: Strategy) -> bytes:
    """Return the bytes before the stored bytes of an object: the opening brace, kind and apiVersion."""
    kind = strategy.info.kind
    return _head(kind.api_version, kind.kind, strategy.custom)


async def object_bytes(cluster: Cluster, strategy: Strategy, entry: Entry) -> bytes:
    """Return an object's JSON in the strategy's version."""
    return object_prefix(strategy) + (await _stored_bytes(cluster, strategy, entry))[1:]


async def _stored_bytes(cluster: Cluster, strategy: Strategy, entry: Entry) -> bytes:
    """Return an object's JSON without kind and apiVersion; the entry caches converted bytes."""
    if entry.encoding_version == strategy.encoding_version:
        return entry.raw
    cache_key = (strategy.info.kind.version, strategy.encoding_version)
    if cache_key not in entry.cache:
        await _convert_entries(cluster, strategy, [entry])
    found: bytes = entry.cache[cache_key]
    return found


async def entry_response(cluster: Cluster, call: Call, entry: Entry, status: int = 200) -> Response:
    """Return the response with a stored object, in the format of the call."""
    if call.view.plain:
        return json_bytes_response(call, await object_bytes(cluster, call.strategy, entry), status)
    return document_response(cluster, call, await cluster.document(call.strategy, entry), status)


def json_bytes_response(call: Call, body: bytes, status: int = 200) -> Response:
    """Return a JSON response, indented for interactive tools."""
    if is_pretty(call.query.text("pretty"), call.agent):
        return Response(status, msgspec.json.format(body, indent=2), _JSON_HEADERS)
    return Response(status, body + b"\n", _JSON_HEADERS)


def document_response(cluster: Cluster, call: Call, document: Document, status: int = 200) -> Response:
    """Return the response with a decoded object, in the format of the call."""
    view = call.view
    if view.target == "Table":
        rows = [document] if "metadata" in document else []
        version = document.get("metadata", {}).get("resourceVersion", "")
        return _encode_response(call, make_table(cluster, call, rows, {"resourceVersion": version}), status)
    if view.target == "PartialObjectMetadataList":
        if call.strategy.custom:
            raise status_errors.failure(500, "content is not a list")
        text = "you requested PartialObjectMetadataList, but the requested object is not a list"
        raise status_errors.failure(406, f"{text} (*{_go_type(call.strategy)})", "NotAcceptable")
    if view.target == "PartialObjectMetadata":
        return _encode_response(call, partial_metadata(document, view), status)
    return _encode_response(call, document, status)


def _go_type(strategy: Strategy) -> str:
    kind = strategy.info.kind
    return "unstructured.Unstructured" if strategy.custom else f"{kind.group.partition('.')[0] or 'core'}.{kind.kind}"


def _encode_response(call: Call, document: Any, status: int = 200) -> Response:
    if call.view.media == YAML:
        return Response(status, to_yaml(document), {"content-type": YAML})
    return json_bytes_response(call, encode(document), status)


def to_yaml(document: Any) -> bytes:
    """Encode YAML as the real server does: keys sorted, lists not indented, no document end marker."""
    text: bytes = yaml.dump(
        document, Dumper=_YamlEncoder, default_flow_style=False, allow_unicode=True, encoding="utf-8"
    )
    return text.removesuffix(b"...\n")


class _YamlEncoder(yaml.CSafeDumper):
    """A YAML encoder without anchors; strings that could be read as another type are double-quoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: Any, text: str) -> Any:
    ambiguous = dumper.resolve(yaml.ScalarNode, text, (True, False)) != "tag:yaml.org,2002:str"
    ambiguous = ambiguous or text in _SHORT_FLAGS or _EXPONENT.fullmatch(text) is not None
    style = "|" if "\n" in text else ('"' if ambiguous else None)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_YamlEncoder.add_representer(str, _text)


def partial_metadata(document: Document, view: View) -> Document:
    """Return the PartialObjectMetadata of an object."""
    version = f"meta.k8s.io/{view.version}"
    return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": document["metadata"]}


def make_table(
    cluster: Cluster, call: Call, documents: Sequence[Document], metadata: Document, *, headers: bool = True
) -> Document:
    """Return objects as a Table.

    Raises: StatusError 400 for an invalid includeObject.
    """
    include = call.query.text("includeObject") or "Metadata"
    if include not in ("Metadata", "None", "Object"):
        text = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise status_errors.bad_request(f"Unable to convert to Table as requested: {text}")
    table: Document = {"kind": "Table", "apiVersion": f"meta.k8s.io/{call.view.version}", "metadata": metadata}
    strategy = call.strategy
    table["columnDefinitions"] = [_column(each) for each in strategy.columns] if headers else None
    now = cluster.clock()
    table["rows"] = [
        {"cells": strategy.cells(document, now), "object": _row_object(document, include, call.view)}
        for document in documents
    ]
    return table


def _column(column: Any) -> Document:
    names = ("name", "type", "format", "description", "priority")
    return {name: getattr(column, name) for name in names}


def _row_object(document: Document, include: str, view: View) -> Document | None:
    if include == "None":
        return None
    return document if include == "Object" else partial_metadata(document, view)


async def list_response(cluster: Cluster, call: Call, entries: list[Entry], metadata: Document) -> Response:
    """Return the response with a list of stored objects, in the format of the call."""
    view, strategy = call.view, call.strategy
    if view.plain:
        return json_bytes_response(call, await _list_bytes(cluster, strategy, entries, metadata))
    documents = await cluster.documents(strategy, entries)
    if view.target == "Table":
        return _encode_response(call, make_table(cluster, call, documents, metadata))
    if view.target == "PartialObjectMetadata":
        text = f"you requested PartialObjectMetadata, but the requested object is a list (*{_go_type(strategy)}List)"
        raise status_errors.failure(406, text, "NotAcceptable")
    if view.target == "PartialObjectMetadataList":
        return _encode_response(call, _partial_list(documents, view, metadata))
    for document in documents:
        if not strategy.custom:
            del document["kind"], document["apiVersion"]
    head = {"kind": strategy.info.list_kind, "apiVersion": strategy.info.kind.api_version}
    return _encode_response(call, head | {"metadata": metadata, "items": documents})


def _partial_list(documents: Sequence[Document], view: View, metadata: Document) -> Document:
    items = [partial_metadata(document, view) for document in documents]
    head = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{view.version}"}
    return head | {"metadata": {name: value for name, value in metadata.items() if value}, "items": items or None}


async def _list_bytes(cluster: Cluster, strategy: Strategy, entries: list[Entry], metadata: Document) -> bytes:
    head = _head(strategy.info.kind.api_version, strategy.info.list_kind, strategy.custom)
    encoding_version, prefix = strategy.encoding_version, object_prefix(strategy)
    cache_key = (strategy.info.kind.version, encoding_version)
    await _convert_entries(cluster, strategy, entries)
    items: list[bytes] = [
        entry.raw if entry.encoding_version == encoding_version else entry.cache[cache_key] for entry in entries
    ]
    if strategy.custom:
        items = [prefix + item[1:] for item in items]
    return b'%s"metadata":%s,"items":[%s]}' % (head, encode(metadata), b",".join(items))


async def _convert_entries(cluster: Cluster, strategy: Strategy, entries: list[Entry]) -> None:
    cache_key = (strategy.info.kind.version, strategy.encoding_version)
    outdated = [
        entry
        for entry in entries
        if entry.encoding_version != strategy.encoding_version and cache_key not in entry.cache
    ]
    if outdated:
        for entry, document in zip(outdated, await cluster.documents(strategy, outdated), strict=True):
            del document["kind"], document["apiVersion"]
            entry.cache[cache_key] = encode(document)
