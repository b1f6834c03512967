"""The scale subresource: the replicas of any scalable object, as an autoscaling/v1 Scale.

A read returns a Scale that is derived from the object. A write sets the object's replicas from the Scale, and nothing
else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from konverge.objects.kinds import Kind
from konverge.objects.labels import LabelSelector
from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.default_strategy import DefaultStrategy
from konverge_cluster.api.documents import decode_error, read_document
from konverge_cluster.api.field_errors import invalid
from konverge_cluster.api.metadata import json_type
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.patch_requests import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    decode_patched,
    patch_kind,
    patch_status_error,
    read_patch,
)
from konverge_cluster.api.reads import find_entry
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document, ResourceInfo, Scaling, Strategy
from konverge_cluster.api.tables import AGE_COLUMN, NAME_DESCRIPTION, Column, age_of
from konverge_cluster.api.updates import UpdateFunc, check_name, guaranteed_update
from konverge_cluster.api.views import document_response
from konverge_cluster.api.writes import rules_of
from konverge_cluster.patches import (
    Endpoint,
    PatchError,
    Schemas,
    apply_json_patch,
    apply_merge_patch,
    apply_patch,
    apply_strategic_patch,
    entries_of_object,
    entries_of_scale,
    manager_name,
    track_update,
)
from konverge_cluster.patches.scale import SCALE_VERSION

__all__ = ["handle_scale", "scale_of", "set_replicas"]

_TEXT: Final = {"type": "string"}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TOPOLOGY: Final = Schemas(
    {
        "Scale": {
            "type": "object",
            "properties": {
                "apiVersion": _TEXT,
                "kind": _TEXT,
                "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}"}], "default": {}},
                "spec": {"type": "object", "default": {}, "properties": {"replicas": {"type": "integer"}}},
                "status": {
                    "type": "object",
                    "default": {},
                    "properties": {"replicas": {"type": "integer", "default": 0}, "selector": _TEXT},
                },
            },
        },
        _META: {"type": "object", "properties": {}},
    }
).topology("Scale")
_ENDPOINT: Final = Endpoint(SCALE_VERSION, "Scale", {SCALE_VERSION: _TOPOLOGY}, "scale")
_COLUMNS: Final = (
    Column("Name", "string", NAME_DESCRIPTION),
    Column("Desired", "integer", "replicas is the desired number of instances for the scaled object."),
    Column("Available", "integer", "replicas is the actual number of observed instances of the scaled object."),
    AGE_COLUMN,
)


class _ScaleStrategy(DefaultStrategy):
    """The kind Scale, for decoding bodies and for tables; Scale objects are not stored."""

    columns = _COLUMNS

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        unknown = [f'unknown field "{name}"' for name in document if name not in _FIELDS]
        for part in ("spec", "status"):
            value, struct = document.get(part) or {}, f"Scale{part.capitalize()}"
            if not isinstance(value, dict):
                raise self._unmarshal_error(value, f"Scale.{part}", f"v1.{struct}")
            unknown += [f'unknown field "{part}.{name}"' for name in value if name not in _FIELDS[part]]
            document[part] = {name: each for name, each in value.items() if name in _FIELDS[part] and each is not None}
            replicas, selector = document[part].get("replicas", 0), document[part].get("selector", "")
            if type(replicas) is not int or not -(2**31) <= replicas < 2**31:
                raise self._unmarshal_error(replicas, f"{struct}.{part}.replicas", "int32")
            if not isinstance(selector, str):
                raise self._unmarshal_error(selector, f"{struct}.{part}.selector", "string")
        # The Go type omits a zero, so a manager that writes one owns nothing.
        if not document["spec"].get("replicas"):
            document["spec"].pop("replicas", None)
        return document, unknown

    def _unmarshal_error(self, value: Any, field: str, go_type: str) -> status_errors.StatusError:
        found = json_type(value)
        if found == "number" and go_type == "int32":
            found = f"number {value}"
        return decode_error(self, f"json: cannot unmarshal {found} into Go struct field {field} of type {go_type}")

    def cells(self, document: Document, now: float) -> list[Any]:
        metadata = document["metadata"]
        desired, available = document["spec"].get("replicas", 0), document["status"].get("replicas", 0)
        return [metadata["name"], desired, available, age_of(metadata.get("creationTimestamp"), now)]


_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "kind": (),
    "apiVersion": (),
    "metadata": (),
    "spec": ("replicas",),
    "status": ("replicas", "selector"),
}
_ENTRY: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")
_STRATEGY: Final = _ScaleStrategy(ResourceInfo(Kind("autoscaling", "v1", "Scale", "scales"), ("autoscaling", "scales")))


async def handle_scale(cluster: Cluster, call: Call) -> Response:
    """Handle get, update and patch of the scale of an object."""
    if call.verb == "get":
        entry = find_entry(cluster, call.strategy, call.namespace, call.name)
    elif call.verb == "update":
        entry = await _replace(cluster, call)
    else:
        entry = await _patch(cluster, call)
    scale = scale_of(call.strategy, await cluster.document(call.strategy, entry))
    scale["metadata"].pop("managedFields", None)
    return document_response(cluster, _as_scale(call), scale)


def _as_scale(call: Call) -> Call:
    """Return the call with the kind Scale instead of the object's."""
    return replace(call, strategy=_STRATEGY, subresource="scale")


def _scaling(strategy: Strategy) -> Scaling:
    if strategy.scaling is None:
        raise status_errors.no_such_resource()
    return strategy.scaling


def scale_of(strategy: Strategy, document: Document) -> Document:
    """Return the Scale of an object.

    Raises: StatusError 500 when a custom resource has no replicas at the declared path.
    """
    scaling, metadata = _scaling(strategy), document["metadata"]
    copied = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = _value_at(document, scaling.spec_replicas)
    if replicas is None and strategy.custom:
        path = "." + ".".join(scaling.spec_replicas)
        raise status_errors.internal_error(f'the spec replicas field "{path}" does not exist')
    status: Document = {"replicas": _value_at(document, scaling.status_replicas) or 0}
    selector = _selector(document, scaling)
    if selector:
        status["selector"] = selector
    found = {name: metadata[name] for name in copied if name in metadata}
    entries = entries_of_scale(metadata.get("managedFields", []), _replica_paths(strategy))
    if entries:
        found["managedFields"] = entries
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": SCALE_VERSION, "metadata": found, "spec": spec, "status": status}


def _replica_paths(strategy: Strategy) -> dict[str, str | None]:
    path = ".".join(_scaling(strategy).spec_replicas)
    return dict.fromkeys(strategy.topologies, path)


def _value_at(document: Document, path: tuple[str, ...]) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _selector(document: Document, scaling: Scaling) -> str:
    if scaling.selector is None:
        return ""
    value = _value_at(document, scaling.selector)
    if scaling.selector_text:
        return value if isinstance(value, str) else ""
    if not value:
        return ""
    structure = value if "matchLabels" in value or "matchExpressions" in value else {"matchLabels": value}
    return str(LabelSelector.from_spec(structure))


async def _replace(cluster: Cluster, call: Call) -> Any:
    options = WriteOptions.read(call.query, "UpdateOptions")
    document = read_document(cluster, _as_scale(call), options.validation)
    check_name(call, document["metadata"])

    def update_scale(_old: Document) -> Document:
        return document

    update = _update_through_scale(cluster, call, update_scale, options)
    entry, _ = await guaranteed_update(
        cluster, call, _main_rules(call), update, options=options, uid=document["metadata"].get("uid")
    )
    return entry


async def _patch(cluster: Cluster, call: Call) -> Any:
    kind = patch_kind(call)
    options = WriteOptions.read(call.query, "PatchOptions", apply=kind == APPLY)
    patch, errors = read_patch(call, kind)
    functions: dict[str, Callable[[Document], Any]] = {
        JSON_PATCH: lambda scale: apply_json_patch(scale, patch),
        MERGE_PATCH: lambda scale: apply_merge_patch(scale, patch),
        STRATEGIC_PATCH: lambda scale: apply_strategic_patch(scale, patch, topology=_TOPOLOGY),
        APPLY: lambda scale: _apply(cluster, scale, patch, options),
    }

    def update_scale(old: Document) -> Document:
        try:
            patched = functions[kind](old)
        except PatchError as error:
            raise patch_status_error(error) from None
        entries = patched["metadata"].get("managedFields") if kind == APPLY else None
        new = decode_patched(_as_scale(call), patched, _scale_text(patched), errors, options.validation)
        if entries:
            new["metadata"]["managedFields"] = entries
        return new

    update = _update_through_scale(cluster, call, update_scale, options, tracked=kind == APPLY)
    entry, _ = await guaranteed_update(cluster, call, _main_rules(call), update, options=options)
    return entry


def _scale_text(scale: Any) -> str:
    """Return a Scale as error messages show it: fields sorted by name, metadata and entries in the server's order."""
    if isinstance(scale, dict) and isinstance(scale.get("metadata"), dict):
        metadata = dict(scale["metadata"])
        if metadata.get("managedFields"):
            entries = metadata["managedFields"]
            metadata["managedFields"] = [{name: each[name] for name in _ENTRY if name in each} for each in entries]
        scale = dict(sorted({**scale, "metadata": metadata}.items()))
    return json.dumps(scale, separators=(",", ":"), ensure_ascii=False)


def _apply(cluster: Cluster, scale: Document, config: Any, options: WriteOptions) -> Document:
    if not isinstance(config, dict):
        raise status_errors.bad_request("error decoding YAML: the configuration is no object")
    applied = apply_patch(
        scale, config, manager=options.manager, endpoint=_ENDPOINT, now=cluster.now(), force=bool(options.force)
    )
    metadata = {**applied.object["metadata"], "managedFields": applied.managed_fields}
    return {**applied.object, "metadata": metadata}


def _main_rules(call: Call) -> Any:
    """Return the rules of the main endpoint: a write to the scale updates the object."""
    return rules_of(replace(call, subresource=""))


def _update_through_scale(
    cluster: Cluster,
    call: Call,
    update_scale: Callable[[Document], Document],
    options: WriteOptions,
    *,
    tracked: bool = False,
) -> UpdateFunc:
    """Return an update function for the object that applies `update_scale` to its Scale."""

    def update(old: Document | None) -> Document:
        assert old is not None
        before = scale_of(call.strategy, old)
        after = update_scale(before)
        replicas = after["spec"].get("replicas", 0)
        # For a custom resource its own schema validates the number, under the field's own path.
        if replicas < 0 and not call.strategy.custom:
            error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise status_errors.invalid("autoscaling", "Scale", call.name, [error])
        manager = manager_name(options.manager, call.agent)
        entries = after["metadata"].get("managedFields", [])
        if not tracked:
            entries = track_update(before, after, manager=manager, endpoint=_ENDPOINT, now=cluster.now())
        set_replicas(call.strategy, old, after)
        metadata = old["metadata"]
        metadata["resourceVersion"] = after["metadata"].get("resourceVersion") or metadata["resourceVersion"]
        managed = entries_of_object(
            metadata.get("managedFields", []),
            entries,
            api_version=call.strategy.info.kind.api_version,
            replicas=_replica_paths(call.strategy),
        )
        if managed:
            metadata["managedFields"] = managed
        else:
            metadata.pop("managedFields", None)
        return old

    return update


def set_replicas(strategy: Strategy, document: Document, scale: Document) -> None:
    """Set the replicas of an object from a Scale."""
    *parents, last = _scaling(strategy).spec_replicas
    for name in parents:
        document = document.setdefault(name, {})
    document[last] = scale["spec"].get("replicas", 0)
