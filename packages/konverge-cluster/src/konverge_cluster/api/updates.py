"""Change an object: PUT, and the one path that every change takes, whoever computed the new state.

The path starts from the stored object, asks for the new one, and goes through admission and the rules of the endpoint.
If somebody else wrote meanwhile it starts over from the newer state; a request that names a version then conflicts. A
change that changes nothing is not written: same version, no event.
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
"""Gives the new object from the stored one, or from None when there is none; called again when somebody was faster."""

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
    sent = encode(document)

    def make(old: Document | None) -> Document:
        new: Document = decode(sent)
        track(cluster, call, old, new, options)
        return new

    allowed = call.strategy.create_on_update and not call.subresource
    uid = document["metadata"].get("uid")
    entry, created = await guaranteed_update(
        cluster, call, rules, make, options=options, create_missing=allowed, uid=uid
    )
    return await entry_response(cluster, call, entry, 201 if created else 200)


def check_name(call: Call, metadata: Document) -> None:
    """Hold the name of an object against the one in the path.

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
    make: UpdateFunc,
    *,
    options: WriteOptions,
    create_missing: bool = False,
    uid: str | None = None,
) -> tuple[Entry, bool]:
    """Bring the stored object to its new state; return it, and whether it had to be created.

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
            return await _create_missing(cluster, call, make, options)
        old = await cluster.document(call.strategy, entry)
        new = await _new_state(call, make, old)
        changed = await _changed(cluster, call, rules, (new, old), options)
        stored, encoding_version = await call.strategy.to_storage(changed)
        if collection.get(key) is entry:
            return _store(cluster, call.strategy, entry, (stored, encoding_version), dry_run=options.dry_run), False


async def _new_state(call: Call, make: UpdateFunc, old: Document) -> Document:
    """Ask for the new state; conversions that this turns out to need are made in between."""
    warnings = len(call.warnings)
    while True:
        try:
            return make(decode(encode(old)))
        except ConversionRequired as missing:
            await missing.fetch()
            del call.warnings[warnings:]


def _wrong_uid(call: Call, wanted: str, found: str, *, dry_run: bool) -> StatusError:
    kind = call.strategy.info.kind
    root = "" if dry_run else "/registry"
    path = f"{root}/{_registry_path(call.strategy)}/{key_of(call.namespace, call.name)}"
    why = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return status_errors.conflict(kind.group, kind.plural, call.name, why)


def _registry_path(strategy: Strategy) -> str:
    kind = strategy.info.kind
    if strategy.custom or kind.group == "apiextensions.k8s.io":
        return f"{kind.group}/{kind.plural}"
    return _REGISTRY_PATHS.get(kind.plural, kind.plural)


async def _create_missing(cluster: Cluster, call: Call, make: UpdateFunc, options: WriteOptions) -> tuple[Entry, bool]:
    kind = call.strategy.info.kind
    new = make(None)
    uid = new["metadata"].get("uid", "")
    if uid:
        text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status_errors.conflict(kind.group, kind.plural, call.name, text)
    _read_version(new["metadata"].get("resourceVersion") or "0")
    # A rehearsal shows what would not be stored.
    for name in ("creationTimestamp",) if options.dry_run else ("creationTimestamp", "resourceVersion", "selfLink"):
        new["metadata"].pop(name, None)
    return await create(cluster, call, new, options), True


def _read_version(text: str) -> int:
    try:
        return unsigned(text)
    except ValueError as error:
        raise status_errors.failure(500, str(error)) from None


async def _changed(
    cluster: Cluster, call: Call, rules: WriteRules, states: tuple[Document, Document], options: WriteOptions
) -> Document:
    """Take a new state through admission and rules; return it as it will be stored."""
    new, old = states
    request = admission_request(call, "UPDATE", new, old, options)
    new = await run_mutating_admission(cluster, request)
    warn_of_duplicate_owners(call, new["metadata"], AFTER_ADMISSION)
    _check_version(call, new["metadata"], old["metadata"])
    context = request_context(cluster, call, options)
    _protect(new["metadata"], old["metadata"])
    rules.prepare_update(new, old, context)
    _protect_times(new["metadata"], old["metadata"])
    problems = _update_problems(call.strategy, rules, (new, old), context)
    if problems:
        kind = call.strategy.info.kind
        raise status_errors.invalid(kind.group, kind.kind, call.name, problems)
    call.warnings.extend(rules.warnings_on_update(new, old))
    request.object = new
    await run_validating_admission(cluster, request)
    entries = keep_times(old, new)
    if entries:
        new["metadata"]["managedFields"] = entries
    return new


def _check_version(call: Call, new: Document, old: Document) -> None:
    """Hold the version that the writer saw against the stored one.

    Raises: StatusError 409 when it is another, 422 when it has to be given, 500 when it is none.
    """
    kind = call.strategy.info.kind
    version = new.get("resourceVersion", "")
    if version not in ("", "0"):
        _read_version(version)
        if version != old["resourceVersion"]:
            raise status_errors.modified(kind.group, kind.plural, call.name)
        return
    if not call.strategy.unconditional_update:
        problem = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise status_errors.invalid(kind.group, kind.plural, call.name, [problem])
    new["resourceVersion"] = old["resourceVersion"]


def _protect(new: Document, old: Document) -> None:
    if "generation" in old:
        new["generation"] = old["generation"]
    else:
        new.pop("generation", None)


def _protect_times(new: Document, old: Document) -> None:
    new.setdefault("uid", old["uid"])
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in old:
            new[name] = old[name]
    if "deletionGracePeriodSeconds" in old:
        new.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])


def _update_problems(
    strategy: Strategy, rules: WriteRules, states: tuple[Document, Document], context: RequestContext
) -> list[FieldError]:
    new, old = states
    metadata, kind = new["metadata"], strategy.info.kind
    # The server checks metadata for all kinds first and then again for the kind; the texts are shown once.
    problems = metadata_errors(metadata, namespaced=kind.namespaced, name_rule=path_segment_name_errors, custom=True)
    for custom in (True, strategy.custom):
        problems += metadata_update_errors(metadata, old["metadata"], custom=custom)
    return problems + rules.validate_update(new, old, context)


def _store(
    cluster: Cluster, strategy: Strategy, entry: Entry, state: tuple[Document, object], *, dry_run: bool
) -> Entry:
    """Write the new state, remove the object when its last finalizer went, or do nothing when nothing changed."""
    document, encoding_version = state
    done = _is_done(document["metadata"]) and not strategy.is_deletion_blocked(document)
    if not (dry_run or done):
        # It is never stored; an answer that shows no stored state shows it all the same.
        document["metadata"].pop("selfLink", None)
    same = entry_of(entry.key, document, encoding_version, entry.revision)
    if same.raw == entry.raw and entry.encoding_version == encoding_version and not done:
        return entry
    if dry_run:
        return same
    collection = cluster.collection(strategy)
    if done:
        # This state is never stored: whoever watches sees the last one that was.
        last = entry_of(entry.key, decode(entry.raw), entry.encoding_version, cluster.storage.next_revision)
        cluster.storage.delete(collection, last)
        return same
    written = entry_of(entry.key, document, encoding_version, cluster.storage.next_revision)
    cluster.storage.put(collection, written)
    return written


def _is_done(metadata: Document) -> bool:
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and metadata.get("deletionGracePeriodSeconds", 0) == 0
    )
