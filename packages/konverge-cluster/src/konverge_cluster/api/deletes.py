"""Deletion: immediate, or deferred by finalizers, by a grace period, or by a rule of the kind.

To mark an object is to set its deletionTimestamp.

| the object | what happens |
|---|---|
| nothing defers the deletion | it is removed |
| it has finalizers, or the options add one | it is marked, and removed by the write that empties the list |
| its kind has a grace period, and some is left | it is marked with the time, and removed by a deletion with grace 0 |
| it is already marked | nothing happens, unless the grace period gets shorter |
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.bodies import JSON, YAML, BodyDecodeError, read_body
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.metadata import json_type
from konverge_cluster.api.negotiation import PROTOBUF
from konverge_cluster.api.options import DeleteOptions, ListOptions
from konverge_cluster.api.reads import find_entry, list_entries
from konverge_cluster.api.responses import Response, json_response
from konverge_cluster.api.selections import Selection
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.views import entry_response, list_response
from konverge_cluster.api.writes import entry_of, run_validating_admission
from konverge_cluster.storage import Entry

__all__ = ["delete", "handle_delete", "handle_delete_collection"]

_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_OPTION_TYPES: Final[dict[str, tuple[type, str]]] = {
    "gracePeriodSeconds": (int, "int64"),
    "preconditions": (dict, "v1.Preconditions"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
}


async def handle_delete(cluster: Cluster, call: Call) -> Response:
    options = _read_options(call)
    entry, deleted = await delete(cluster, call, options)
    status = 202 if not deleted and options.orphan_dependents is False else 200
    if deleted and not call.strategy.returns_deleted:
        kind = call.strategy.info.kind
        details: dict[str, Any] = {"name": call.name, "kind": kind.plural, "uid": entry.uid}
        if kind.group:
            details["group"] = kind.group
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_response(status, success)
    return await entry_response(cluster, call, entry, status)


def _read_options(call: Call) -> DeleteOptions:
    if not call.request.body:
        return DeleteOptions.read(call.query, None)
    content_type = call.request.headers.get("content-type", "")
    try:
        body, _ = read_body(content_type, call.request.body, (JSON, YAML, PROTOBUF))
    except BodyDecodeError as error:
        text = f"couldn't get version/kind; json parse error: {error}"
        raise status_errors.bad_request(text) from None
    return DeleteOptions.read(call.query, _checked_options(body))


def _checked_options(body: Any) -> Document:
    if not isinstance(body, dict):
        text = "couldn't get version/kind; json parse error: json: cannot unmarshal"
        raise status_errors.bad_request(f"{text} {json_type(body)} into Go value of type struct")
    kind = body.get("kind", "DeleteOptions")
    if kind != "DeleteOptions":
        version = body.get("apiVersion", "")
        text = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise status_errors.bad_request(text)
    for name, (expected, text) in _OPTION_TYPES.items():
        value = body.get(name)
        if value is not None and not _fits(value, expected):
            found = json_type(value)
            found = f"number {value}" if found == "number" and expected is int else found
            detail = f"json: cannot unmarshal {found} into Go struct field DeleteOptions.{name} of type {text}"
            raise status_errors.bad_request(detail)
    return {name: value for name, value in body.items() if name in _OPTION_TYPES and value is not None}


def _fits(value: Any, expected: type) -> bool:
    return type(value) is expected and not (isinstance(value, int) and not -(2**63) <= value < 2**63)


async def handle_delete_collection(cluster: Cluster, call: Call) -> Response:
    """Delete every object that a list with the same options returns; respond with that list."""
    options = _read_options(call)
    list_options = ListOptions.read(call.query, watch=False)
    selection = Selection.read(call.strategy, list_options)
    page = await list_entries(cluster, call.strategy, call.namespace, list_options, selection)
    for entry in page.entries:
        namespace, _, name = entry.key.rpartition("/")
        single = replace(call, namespace=namespace, name=name)
        try:
            await delete(cluster, single, options)
        except status_errors.StatusError as error:
            # The object was deleted concurrently, which is the requested result.
            if error.code != 404:
                raise
    return await list_response(cluster, call, page.entries, page.metadata(custom=call.strategy.custom))


async def delete(cluster: Cluster, call: Call, options: DeleteOptions) -> tuple[Entry, bool]:
    """Delete one object; return its last state, and whether it has been removed.

    Raises: StatusError 404, 409 for a precondition that does not hold, and whatever admission raises.
    """
    strategy = call.strategy
    while True:
        entry = find_entry(cluster, strategy, call.namespace, call.name)
        document = await cluster.document(strategy, entry)
        _check_preconditions(call, document["metadata"], options)
        await _run_admission(cluster, call, document, options)
        deletion = _Deletion(cluster, call, document, options)
        stored, encoding_version = await strategy.to_storage(document)
        if cluster.collection(strategy).get(entry.key) is entry:
            break
    call.warnings.extend(strategy.warnings_on_delete(document, options.document))
    if deletion.unchanged:
        return entry, False
    if options.dry_run:
        return (
            (entry_of(entry.key, stored, encoding_version, entry.revision), False)
            if deletion.remains
            else (entry, True)
        )
    return _store_deletion(cluster, call, deletion, entry, (stored, encoding_version))


def _store_deletion(
    cluster: Cluster, call: Call, deletion: _Deletion, entry: Entry, state: tuple[Document, object]
) -> tuple[Entry, bool]:
    collection = cluster.collection(call.strategy)
    document, encoding_version = state
    if deletion.marked:
        unchanged = entry_of(entry.key, document, encoding_version, entry.revision)
        if unchanged.raw != entry.raw:
            entry = entry_of(entry.key, document, encoding_version, cluster.storage.next_revision)
            cluster.storage.put(collection, entry)
    if deletion.remains:
        return entry, False
    cluster.storage.delete(collection, entry_of(entry.key, document, encoding_version, cluster.storage.next_revision))
    return entry, True


def _check_preconditions(call: Call, metadata: Document, options: DeleteOptions) -> None:
    kind = call.strategy.info.kind
    if options.uid is not None and options.uid != metadata["uid"]:
        detail = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']})."
            " The object might have been deleted and then recreated"
        )
        raise status_errors.conflict(kind.group, kind.kind, call.name, detail)
    version = metadata["resourceVersion"]
    if options.resource_version is not None and options.resource_version != version:
        detail = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion"
            f" in record ({version}). The object might have been modified"
        )
        raise status_errors.conflict(kind.group, kind.kind, call.name, detail)


async def _run_admission(cluster: Cluster, call: Call, document: Document, options: DeleteOptions) -> None:
    request = AdmissionRequest(
        strategy=call.strategy,
        operation="DELETE",
        namespace=call.namespace,
        # Admission sees the request, and a request to delete a collection names no object.
        name="" if call.verb == "deletecollection" else call.name,
        object=None,
        old_object=document,
        options=options.document,
        dry_run=options.dry_run,
        user=call.user,
        warnings=call.warnings,
    )
    for plugin in cluster.admission:
        if plugin.handles(request):
            await plugin.mutate(request)
    await run_validating_admission(cluster, request)


class _Deletion:
    """What a deletion does to an object. The constructor decides it, and marks the object where necessary.

    `unchanged`: the object is already being deleted. `marked`: it is written once more, with its deletionTimestamp.
    `remains`: it is not removed yet.
    """

    def __init__(self, cluster: Cluster, call: Call, document: Document, options: DeleteOptions) -> None:
        self._cluster = cluster
        self._strategy = call.strategy
        self._document = document
        self._metadata = document["metadata"]
        self._options = options
        self.unchanged = False
        self.marked = False
        self.remains = False
        self._plan()

    def _plan(self) -> None:
        requested = self._options.grace_period
        if requested is not None and requested < 0:
            requested = 1
        graceful = self._set_grace(requested)
        if self.unchanged:
            return
        finalizers = self._desired_finalizers()
        pending = bool(finalizers)
        blocked = self._strategy.is_deletion_blocked(self._document)
        if not (graceful or pending or blocked):
            # The object is removed as it is, even if the propagation policy would have removed a finalizer from it.
            return
        self._set_finalizers(finalizers)
        if not graceful and (pending or blocked):
            self._mark_deleted(with_grace=not blocked)
        if blocked:
            self._strategy.mark_deleted(self._document)
        remaining = self._metadata.get("deletionGracePeriodSeconds", 0) if graceful else 0
        self.marked = True
        self.remains = pending or blocked or remaining > 0

    def _set_grace(self, requested: int | None) -> bool:
        """Set deletionTimestamp and grace period; report whether the deletion is graceful."""
        metadata = self._metadata
        if self._strategy.grace_period(self._document, requested) is None:
            return False
        if "deletionTimestamp" in metadata:
            return self._shorten_grace(metadata.get("deletionGracePeriodSeconds", 0), requested)
        seconds = self._strategy.grace_period(self._document, requested) or 0
        metadata["deletionTimestamp"] = self._add_seconds(self._cluster.now(), seconds)
        metadata["deletionGracePeriodSeconds"] = seconds
        self._increment_generation()
        return True

    def _shorten_grace(self, present: int, requested: int | None) -> bool:
        if present == 0:
            return False
        if requested is None or requested >= present:
            self.unchanged = True
            return False
        metadata, now = self._metadata, self._cluster.now()
        time = self._add_seconds(metadata["deletionTimestamp"], requested - present)
        if time < now:
            time, requested = now, min(requested, 1)
        metadata["deletionTimestamp"] = time
        metadata["deletionGracePeriodSeconds"] = requested
        return True

    @staticmethod
    def _add_seconds(time: str, seconds: int) -> str:
        then = datetime.fromisoformat(time).astimezone(UTC) + timedelta(seconds=seconds)
        return then.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _increment_generation(self) -> None:
        if self._metadata.get("generation", 0) > 0:
            self._metadata["generation"] += 1

    def _mark_deleted(self, *, with_grace: bool) -> None:
        now = self._cluster.now()
        if "deletionTimestamp" not in self._metadata:
            self._increment_generation()
            self._metadata["deletionTimestamp"] = now
        elif self._metadata["deletionTimestamp"] > now:
            self._metadata["deletionTimestamp"] = now
        if with_grace:
            self._metadata["deletionGracePeriodSeconds"] = 0

    def _desired_finalizers(self) -> list[str]:
        """Return the finalizers, with those of the propagation policies added or removed."""
        present: list[str] = self._metadata.get("finalizers", [])
        if self._strategy.default_propagation == "Unsupported":
            return present
        finalizers = [name for name in present if name not in (_ORPHAN, _FOREGROUND)]
        if self._orphans(present):
            finalizers.append(_ORPHAN)
        if self._waits_for_dependents(present):
            finalizers.append(_FOREGROUND)
        return present if set(finalizers) == set(present) else finalizers

    def _set_finalizers(self, finalizers: list[str]) -> None:
        if finalizers:
            self._metadata["finalizers"] = finalizers
        else:
            self._metadata.pop("finalizers", None)

    def _orphans(self, present: list[str]) -> bool:
        options = self._options
        if options.orphan_dependents is not None:
            return options.orphan_dependents
        if options.propagation is not None:
            return options.propagation == "Orphan"
        if _ORPHAN in present or _FOREGROUND in present:
            return _ORPHAN in present
        return self._strategy.default_propagation == "Orphan"

    def _waits_for_dependents(self, present: list[str]) -> bool:
        options = self._options
        if options.orphan_dependents is not None:
            return False
        if options.propagation is not None:
            return options.propagation == "Foreground"
        return _FOREGROUND in present and _ORPHAN not in present
