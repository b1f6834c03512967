"""Updates: PUT, and the one write path that every update of an object takes (etcd3 store: GuaranteedUpdate).

The path starts from the stored object, computes the new state, and runs admission and the rules of the endpoint. If
another write was stored in the meantime it starts over from the newer state; a request with a resourceVersion then
fails with a conflict. An update that changes nothing is not stored: same version, no event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, decode, encode, key_of
from konverge_cluster.api.documents import read_document
from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.api.metadata import metadata_errors, metadata_update_errors
from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.api.options import WriteOptions, unsigned
from konverge_cluster.api.responses import Response
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import ConversionRequired, Document, RequestContext, Strategy, WriteRules
from konverge_cluster.api.views import entry_response
from konverge_cluster.api.writes import (
    AFTER_ADMISSION,
    admission_request,
    create,
    entry_of,
    match_namespace,
    request_context,
    rules_of,
    run_mutating_admission,
    run_validating_admission,
    track,
    warn_of_duplicate_owners,
)
from konverge_cluster.patches.updates import keep_times
from konverge_cluster.storage import Entry

__all__ = ["UpdateFunc", "check_name", "guaranteed_update", "handle_update"]

UpdateFunc = Callable[[Document | None], Document]
"""Returns the new object for the stored one, or for None when there is none; called again after a concurrent write."""

_REGISTRY_PATHS: Final = {
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
}


async def handle_update(cluster: Cluster, call: Call) -> Response:
    options = WriteOptions.read(call.query, "UpdateOptions")
    rules = rules_of(call)
    document = read_document(cluster, call, options.validation)
    match_namespace(call, document["metadata"])
    check_name(call, document["metadata"])
    warn_of_duplicate_owners(call, document["metadata"])
    body = encode(document)

    def update(old: Document | None) -> Document:
        new: Document = decode(body)
        track(cluster, call, old, new, options)
        return new

    allowed = call.strategy.create_on_update and not call.subresource
    uid = document["metadata"].get("uid")
    entry, created = await guaranteed_update(
        cluster, call, rules, update, options=options, create_missing=allowed, uid=uid
    )
    return await entry_response(cluster, call, entry, 201 if created else 200)


def check_name(call: Call, metadata: Document) -> None:
    """Check that the name of an object is the name in the path.

    Raises: StatusError 400.
    """
    name = metadata.get("name", "")
    if not name:
        text = f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        raise status_errors.bad_request(text)
    if name != call.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        raise status_errors.bad_request(text)


async def guaranteed_update(
    cluster: Cluster,
    call: Call,
    rules: WriteRules,
    update: UpdateFunc,
    *,
    options: WriteOptions,
    create_missing: bool = False,
    uid: str | None = None,
) -> tuple[Entry, bool]:
    """Update the stored object, and retry after concurrent writes; return the entry, and whether it was created.

    Raises: StatusError.
    """
    collection = cluster.collection(call.strategy)
    key = key_of(call.namespace, call.name)
    while True:
        entry = collection.get(key)
        if entry is None and not create_missing:
            kind = call.strategy.info.kind
            raise status_errors.not_found(kind.group, kind.plural, call.name)
        if uid and (entry.uid if entry else "") != uid:
            raise _wrong_uid(call, uid, entry.uid if entry else "", dry_run=options.dry_run)
        if entry is None:
            return await _create_missing(cluster, call, update, options)
        old = await cluster.document(call.strategy, entry)
        new = await _compute_update(call, update, old)
        admitted = await _admit_and_validate(cluster, call, rules, (new, old), options)
        stored, encoding_version = await call.strategy.to_storage(admitted)
        if collection.get(key) is entry:
            return _store(cluster, call.strategy, entry, (stored, encoding_version), dry_run=options.dry_run), False


async def _compute_update(call: Call, update: UpdateFunc, old: Document) -> Document:
    """Compute the new state; fetch conversions that turn out to be required, and retry."""
    warnings = len(call.warnings)
    while True:
        try:
            return update(decode(encode(old)))
        except ConversionRequired as error:
            await error.fetch()
            del call.warnings[warnings:]


def _wrong_uid(call: Call, expected: str, found: str, *, dry_run: bool) -> StatusError:
    kind = call.strategy.info.kind
    root = "" if dry_run else "/registry"
    path = f"{root}/{_registry_path(call.strategy)}/{key_of(call.namespace, call.name)}"
    detail = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {expected}, UID in object meta: {found}"
    )
    return status_errors.conflict(kind.group, kind.plural, call.name, detail)


def _registry_path(strategy: Strategy) -> str:
    kind = strategy.info.kind
    if strategy.custom or kind.group == "apiextensions.k8s.io":
        return f"{kind.group}/{kind.plural}"
    return _REGISTRY_PATHS.get(kind.plural, kind.plural)


async def _create_missing(
    cluster: Cluster, call: Call, update: UpdateFunc, options: WriteOptions
) -> tuple[Entry, bool]:
    kind = call.strategy.info.kind
    new = update(None)
    uid = new["metadata"].get("uid", "")
    if uid:
        text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status_errors.conflict(kind.group, kind.plural, call.name, text)
    _read_version(new["metadata"].get("resourceVersion") or "0")
    # A dry run returns fields that would not be stored.
    for name in ("creationTimestamp",) if options.dry_run else ("creationTimestamp", "resourceVersion", "selfLink"):
        new["metadata"].pop(name, None)
    return await create(cluster, call, new, options), True


def _read_version(text: str) -> int:
    try:
        return unsigned(text)
    except ValueError as error:
        raise status_errors.failure(500, str(error)) from None


async def _admit_and_validate(
    cluster: Cluster, call: Call, rules: WriteRules, states: tuple[Document, Document], options: WriteOptions
) -> Document:
    """Run admission and the rules of the endpoint on a new state; return the state to store."""
    new, old = states
    request = admission_request(call, "UPDATE", new, old, options)
    new = await run_mutating_admission(cluster, request)
    warn_of_duplicate_owners(call, new["metadata"], AFTER_ADMISSION)
    _check_version(call, new["metadata"], old["metadata"])
    context = request_context(cluster, call, options)
    _restore_generation(new["metadata"], old["metadata"])
    rules.prepare_update(new, old, context)
    _restore_system_fields(new["metadata"], old["metadata"])
    errors = _update_errors(call.strategy, rules, (new, old), context)
    if errors:
        kind = call.strategy.info.kind
        raise status_errors.invalid(kind.group, kind.kind, call.name, errors)
    call.warnings.extend(rules.warnings_on_update(new, old))
    request.object = new
    await run_validating_admission(cluster, request)
    entries = keep_times(old, new)
    if entries:
        new["metadata"]["managedFields"] = entries
    return new


def _check_version(call: Call, new: Document, old: Document) -> None:
    """Check the resourceVersion of the request against the stored one.

    Raises: StatusError 409 when it differs, 422 when it is missing and required, 500 when it is not a number.
    """
    kind = call.strategy.info.kind
    version = new.get("resourceVersion", "")
    if version not in ("", "0"):
        _read_version(version)
        if version != old["resourceVersion"]:
            raise status_errors.modified(kind.group, kind.plural, call.name)
        return
    if not call.strategy.unconditional_update:
        error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise status_errors.invalid(kind.group, kind.plural, call.name, [error])
    new["resourceVersion"] = old["resourceVersion"]


def _restore_generation(new: Document, old: Document) -> None:
    if "generation" in old:
        new["generation"] = old["generation"]
    else:
        new.pop("generation", None)


def _restore_system_fields(new: Document, old: Document) -> None:
    new.setdefault("uid", old["uid"])
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in old:
            new[name] = old[name]
    if "deletionGracePeriodSeconds" in old:
        new.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])


def _update_errors(
    strategy: Strategy, rules: WriteRules, states: tuple[Document, Document], context: RequestContext
) -> list[FieldError]:
    new, old = states
    metadata, kind = new["metadata"], strategy.info.kind
    # The real server validates metadata first for all kinds and then again for the kind; equal texts are shown once.
    errors = metadata_errors(metadata, namespaced=kind.namespaced, name_rule=path_segment_name_errors, custom=True)
    for custom in (True, strategy.custom):
        errors += metadata_update_errors(metadata, old["metadata"], custom=custom)
    return errors + rules.validate_update(new, old, context)


def _store(
    cluster: Cluster, strategy: Strategy, entry: Entry, state: tuple[Document, object], *, dry_run: bool
) -> Entry:
    """Store the new state; remove the object when its last finalizer is gone; do nothing when nothing changed."""
    document, encoding_version = state
    deletable = _is_deletable(document["metadata"]) and not strategy.is_deletion_blocked(document)
    if not (dry_run or deletable):
        # selfLink is never stored, but a response with a state that is not stored includes it.
        document["metadata"].pop("selfLink", None)
    same = entry_of(entry.key, document, encoding_version, entry.revision)
    if same.raw == entry.raw and entry.encoding_version == encoding_version and not deletable:
        return entry
    if dry_run:
        return same
    collection = cluster.collection(strategy)
    if deletable:
        # This state is never stored: watches receive the last stored state.
        last = entry_of(entry.key, decode(entry.raw), entry.encoding_version, cluster.storage.next_revision)
        cluster.storage.delete(collection, last)
        return same
    updated = entry_of(entry.key, document, encoding_version, cluster.storage.next_revision)
    cluster.storage.put(collection, updated)
    return updated


def _is_deletable(metadata: Document) -> bool:
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and metadata.get("deletionGracePeriodSeconds", 0) == 0
    )
