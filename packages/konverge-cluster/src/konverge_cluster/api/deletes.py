"""Delete: at once, or marked and left to finalizers, to a grace period, or to what else holds the object.

| the object | what happens |
|---|---|
| nothing holds it | it is gone |
| finalizers, or the options add one | it is marked, and goes with the write that empties the list |
| its kind knows grace and some is left | it is marked with the time, and goes with a deletion of grace 0 |
| it is marked already | nothing, unless the grace gets shorter |
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
    entry, gone = await delete(cluster, call, options)
    status = 202 if not gone and options.orphan_dependents is False else 200
    if gone and not call.strategy.returns_deleted:
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
    except BodyDecodeError as fault:
        text = f"couldn't get version/kind; json parse error: {fault}"
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
    for name, (wanted, text) in _OPTION_TYPES.items():
        value = body.get(name)
        if value is not None and type(value) is not wanted:
            why = f"json: cannot unmarshal {json_type(value)} into Go struct field DeleteOptions.{name} of type {text}"
            raise status_errors.bad_request(why)
    return {name: value for name, value in body.items() if name in _OPTION_TYPES and value is not None}


async def handle_delete_collection(cluster: Cluster, call: Call) -> Response:
    """Delete every object that a list with the same options would show; answer with that list."""
    options = _read_options(call)
    listing = ListOptions.read(call.query, watch=False)
    selection = Selection.read(call.strategy, listing)
    page = await list_entries(cluster, call.strategy, call.namespace, listing, selection)
    for entry in page.entries:
        namespace, _, name = entry.key.rpartition("/")
        single = replace(call, namespace=namespace, name=name)
        try:
            await delete(cluster, single, options)
        except status_errors.StatusError as refusal:
            # Somebody else was faster; that is what was asked for.
            if refusal.code != 404:
                raise
    return await list_response(cluster, call, page.entries, page.metadata(custom=call.strategy.custom))


async def delete(cluster: Cluster, call: Call, options: DeleteOptions) -> tuple[Entry, bool]:
    """Delete one object; return its last state, and whether it is gone.

    Raises: StatusError 404, 409 for a precondition that does not hold, and whatever admission says.
    """
    strategy = call.strategy
    while True:
        entry = find_entry(cluster, strategy, call.namespace, call.name)
        document = await cluster.document(strategy, entry)
        _check_preconditions(call, document["metadata"], options)
        await _approve(cluster, call, document, options)
        plan = _Deletion(cluster, call, document, options)
        stored, encoding_version = await strategy.to_storage(document)
        if cluster.collection(strategy).get(entry.key) is entry:
            break
    call.warnings.extend(strategy.warnings_on_delete(document, options.document))
    if plan.untouched:
        return entry, False
    if options.dry_run:
        return (entry_of(entry.key, stored, encoding_version, entry.revision), False) if plan.kept else (entry, True)
    return _carry_out(cluster, call, plan, entry, (stored, encoding_version))


def _carry_out(
    cluster: Cluster, call: Call, plan: _Deletion, entry: Entry, state: tuple[Document, object]
) -> tuple[Entry, bool]:
    collection = cluster.collection(call.strategy)
    document, encoding_version = state
    if plan.marked:
        unchanged = entry_of(entry.key, document, encoding_version, entry.revision)
        if unchanged.raw != entry.raw:
            entry = entry_of(entry.key, document, encoding_version, cluster.storage.next_revision)
            cluster.storage.put(collection, entry)
    if plan.kept:
        return entry, False
    cluster.storage.delete(collection, entry_of(entry.key, document, encoding_version, cluster.storage.next_revision))
    return entry, True


def _check_preconditions(call: Call, metadata: Document, options: DeleteOptions) -> None:
    kind = call.strategy.info.kind
    if options.uid is not None and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']})."
            " The object might have been deleted and then recreated"
        )
        raise status_errors.conflict(kind.group, kind.kind, call.name, why)
    version = metadata["resourceVersion"]
    if options.resource_version is not None and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion"
            f" in record ({version}). The object might have been modified"
        )
        raise status_errors.conflict(kind.group, kind.kind, call.name, why)


async def _approve(cluster: Cluster, call: Call, document: Document, options: DeleteOptions) -> None:
    request = AdmissionRequest(
        strategy=call.strategy,
        operation="DELETE",
        namespace=call.namespace,
        # Admission is asked about the request, and one to delete a collection names no object.
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
    """What a deletion does to an object; made by looking at it, and marking it where it has to be marked.

    `untouched`: it is on its way already. `marked`: it is written once more, with its mark. `kept`: it stays for now.
    """

    def __init__(self, cluster: Cluster, call: Call, document: Document, options: DeleteOptions) -> None:
        self._cluster = cluster
        self._strategy = call.strategy
        self._document = document
        self._metadata = document["metadata"]
        self._options = options
        self.untouched = False
        self.marked = False
        self.kept = False
        self._decide()

    def _decide(self) -> None:
        requested = self._options.grace_period
        if requested is not None and requested < 0:
            requested = 1
        graceful = self._set_grace(requested)
        if self.untouched:
            return
        wanted = self._wanted_finalizers()
        pending = bool(wanted)
        held = self._strategy.is_deletion_blocked(self._document)
        if not (graceful or pending or held):
            # It goes as it is, also when the policy would have taken a finalizer from it.
            return
        self._set_finalizers(wanted)
        if not graceful and (pending or held):
            self._mark_now(with_grace=not held)
        if held:
            self._strategy.mark_deleted(self._document)
        left = self._metadata.get("deletionGracePeriodSeconds", 0) if graceful else 0
        self.marked = True
        self.kept = pending or held or left > 0

    def _set_grace(self, requested: int | None) -> bool:
        """Set the time and the seconds of grace; say whether the kind knows grace and uses it now."""
        metadata = self._metadata
        if self._strategy.grace_period(self._document, requested) is None:
            return False
        if "deletionTimestamp" in metadata:
            return self._shorten_grace(metadata.get("deletionGracePeriodSeconds", 0), requested)
        seconds = self._strategy.grace_period(self._document, requested) or 0
        metadata["deletionTimestamp"] = self._later(self._cluster.now(), seconds)
        metadata["deletionGracePeriodSeconds"] = seconds
        self._count_generation()
        return True

    def _shorten_grace(self, present: int, requested: int | None) -> bool:
        if present == 0:
            return False
        if requested is None or requested >= present:
            self.untouched = True
            return False
        metadata, now = self._metadata, self._cluster.now()
        moment = self._later(metadata["deletionTimestamp"], requested - present)
        if moment < now:
            moment, requested = now, min(requested, 1)
        metadata["deletionTimestamp"] = moment
        metadata["deletionGracePeriodSeconds"] = requested
        return True

    @staticmethod
    def _later(moment: str, seconds: int) -> str:
        then = datetime.fromisoformat(moment).astimezone(UTC) + timedelta(seconds=seconds)
        return then.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _count_generation(self) -> None:
        if self._metadata.get("generation", 0) > 0:
            self._metadata["generation"] += 1

    def _mark_now(self, *, with_grace: bool) -> None:
        now = self._cluster.now()
        if "deletionTimestamp" not in self._metadata:
            self._count_generation()
            self._metadata["deletionTimestamp"] = now
        elif self._metadata["deletionTimestamp"] > now:
            self._metadata["deletionTimestamp"] = now
        if with_grace:
            self._metadata["deletionGracePeriodSeconds"] = 0

    def _wanted_finalizers(self) -> list[str]:
        """The finalizers with those of the propagation policies added and dropped."""
        present: list[str] = self._metadata.get("finalizers", [])
        if self._strategy.default_propagation == "Unsupported":
            return present
        wanted = [name for name in present if name not in (_ORPHAN, _FOREGROUND)]
        if self._orphans(present):
            wanted.append(_ORPHAN)
        if self._waits_for_dependents(present):
            wanted.append(_FOREGROUND)
        return present if set(wanted) == set(present) else wanted

    def _set_finalizers(self, wanted: list[str]) -> None:
        if wanted:
            self._metadata["finalizers"] = wanted
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
