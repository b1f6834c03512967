"""Create an object, and what all writes share: admission, managed fields, the step into storage.

Between the check that an entry is still the one that was read and the write there is no `await`; whoever waits (a
webhook) may find that somebody else was faster, and starts over.
"""

from __future__ import annotations

from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, decode, encode, key_of
from konverge_cluster.api.documents import read_document
from konverge_cluster.api.field_errors import invalid
from konverge_cluster.api.metadata import metadata_errors, remove_duplicate_owners
from konverge_cluster.api.names import generated_name, path_segment_name_errors
from konverge_cluster.api.options import WriteOptions, unsigned
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document, RequestContext, Strategy, WriteRules
from konverge_cluster.api.views import entry_response
from konverge_cluster.patches.endpoints import Endpoint
from konverge_cluster.patches.field_sets import make_set
from konverge_cluster.patches.managers import manager_name
from konverge_cluster.patches.updates import track_update
from konverge_cluster.storage import Entry

__all__ = [
    "AFTER_ADMISSION",
    "admission_request",
    "create",
    "endpoint_of",
    "entry_of",
    "handle_create",
    "match_namespace",
    "request_context",
    "rules_of",
    "run_mutating_admission",
    "run_validating_admission",
    "track",
    "warn_of_duplicate_owners",
]

AFTER_ADMISSION: Final = " after mutating admission happens"

_ATTEMPTS: Final = 8
_SIZE_LIMIT: Final = 1_572_864
_SYSTEM_FIELDS: Final = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


async def handle_create(cluster: Cluster, call: Call) -> Response:
    options = WriteOptions.read(call.query, "CreateOptions")
    document = read_document(cluster, call, options.validation)
    metadata = document["metadata"]
    for name in _SYSTEM_FIELDS:
        metadata.pop(name, None)
    match_namespace(call, metadata)
    warn_of_duplicate_owners(call, metadata)
    track(cluster, call, None, document, options)
    entry = await create(cluster, call, document, options)
    return await entry_response(cluster, call, entry, 201)


def match_namespace(call: Call, metadata: Document) -> None:
    """Take the namespace from the path.

    Raises: StatusError 400 when the object says another one.
    """
    wanted = call.namespace if call.strategy.info.kind.namespaced else ""
    if metadata.get("namespace", wanted) != wanted:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise status_errors.bad_request(text)
    if wanted:
        metadata["namespace"] = wanted


def warn_of_duplicate_owners(call: Call, metadata: Document, when: str = "") -> None:
    """Keep one owner reference of each uid, and warn of the others."""
    repeated = remove_duplicate_owners(metadata)
    if repeated:
        call.warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+,"
            " and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )


def endpoint_of(cluster: Cluster, strategy: Strategy, subresource: str) -> Endpoint:
    """Where managed fields of a write through this endpoint belong."""
    kind = strategy.info.kind
    mark = (*kind[:4], subresource)
    known = cluster.endpoints.get(mark)
    if known is None or known[0] is not strategy:
        known = cluster.endpoints[mark] = (strategy, _make_endpoint(strategy, subresource))
    return known[1]


def _make_endpoint(strategy: Strategy, subresource: str) -> Endpoint:
    kind = strategy.info.kind
    rules = strategy.endpoint(subresource)
    reset = make_set(*rules.reset_fields) if rules is not None and rules.reset_fields else {}
    resets = dict.fromkeys(strategy.topologies, reset) if reset else {}
    return Endpoint(kind.api_version, kind.kind, strategy.topologies, subresource, resets, strategy.convert)


def track(cluster: Cluster, call: Call, old: Document | None, new: Document, options: WriteOptions) -> None:
    """Note in the object who owns what after this write."""
    manager = manager_name(options.manager, call.agent)
    endpoint = endpoint_of(cluster, call.strategy, call.subresource)
    entries = track_update(old, new, manager=manager, endpoint=endpoint, now=cluster.now())
    if entries:
        new["metadata"]["managedFields"] = entries
    else:
        new["metadata"].pop("managedFields", None)


def request_context(cluster: Cluster, call: Call, options: WriteOptions) -> RequestContext:
    """What the rules of the kind may know besides the object."""
    return RequestContext(
        now=cluster.now(),
        namespace=call.namespace,
        dry_run=options.dry_run,
        user=call.user,
        lookup=cluster.lookup,
    )


def admission_request(
    call: Call, operation: str, new: Document | None, old: Document | None, options: WriteOptions
) -> AdmissionRequest:
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    return AdmissionRequest(
        strategy=call.strategy,
        operation=operation,
        namespace=call.namespace,
        name=call.name or ((new or {}).get("metadata") or {}).get("name", ""),
        object=new,
        old_object=old,
        subresource=call.subresource,
        options=options.document(kind),
        dry_run=options.dry_run,
        user=call.user,
        warnings=call.warnings,
    )


async def run_mutating_admission(cluster: Cluster, request: AdmissionRequest) -> Document:
    """Let every plug-in change the object; return what it has become."""
    for plugin in cluster.admission:
        if plugin.handles(request):
            await plugin.mutate(request)
    assert request.object is not None
    return request.object


async def run_validating_admission(cluster: Cluster, request: AdmissionRequest) -> None:
    """Let every plug-in refuse the object in its final form."""
    for plugin in cluster.admission:
        if plugin.handles(request):
            await plugin.validate(request)


async def create(cluster: Cluster, call: Call, document: Document, options: WriteOptions) -> Entry:
    """Take a document through admission and the rules of its kind, and store it.

    Raises: StatusError.
    """
    strategy = call.strategy
    request = admission_request(call, "CREATE", document, None, options)
    document = await run_mutating_admission(cluster, request)
    metadata = document["metadata"]
    match_namespace(call, metadata)
    warn_of_duplicate_owners(call, metadata, AFTER_ADMISSION)
    if "uid" not in metadata:
        metadata["uid"] = cluster.new_uid()
    metadata["creationTimestamp"] = cluster.now()
    _name(cluster, call, metadata)
    context = request_context(cluster, call, options)
    strategy.prepare_create(document, context)
    _check_new(call, document, context)
    call.warnings.extend(strategy.warnings_on_create(document))
    request.object, request.name = document, metadata["name"]
    await run_validating_admission(cluster, request)
    return await _store_new(cluster, call, document, options)


def _name(cluster: Cluster, call: Call, metadata: Document) -> None:
    if metadata.get("name") or not metadata.get("generateName"):
        return
    collection = cluster.collection(call.strategy)
    for _ in range(_ATTEMPTS):
        metadata["name"] = generated_name(metadata["generateName"], cluster.rng)
        if collection.get(key_of(call.namespace, metadata["name"])) is None:
            return
    raise status_errors.name_not_generated(call.strategy.info.kind, metadata["name"])


def _check_new(call: Call, document: Document, context: RequestContext) -> None:
    strategy, metadata = call.strategy, document["metadata"]
    kind = strategy.info.kind
    problems = metadata_errors(
        metadata, namespaced=kind.namespaced, name_rule=strategy.name_errors, custom=strategy.custom
    )
    problems += strategy.validate(document, context)
    name = metadata.get("name", "")
    if not problems:
        # Whatever the kind allows, a name must fit into a path.
        problems = [invalid("metadata.name", name, text) for text in path_segment_name_errors(name)]
    if problems:
        raise status_errors.invalid(kind.group, kind.kind, name, problems)


def _is_version(text: str) -> bool:
    """Whether a version is set; what is no number is overlooked, as the real server does."""
    try:
        return unsigned(text) != 0
    except ValueError:
        return False


async def _store_new(cluster: Cluster, call: Call, document: Document, options: WriteOptions) -> Entry:
    strategy = call.strategy
    if not options.dry_run and _is_version(document["metadata"].pop("resourceVersion", "")):
        raise status_errors.failure(500, "resourceVersion should not be set on objects to be created")
    stored, encoding_version = await strategy.to_storage(document)
    name = document["metadata"]["name"]
    key = key_of(call.namespace if strategy.info.kind.namespaced else "", name)
    collection = cluster.collection(strategy)
    existing = collection.get(key)
    if existing is not None:
        kind = strategy.info.kind
        deleted = "deletionTimestamp" in decode(existing.raw)["metadata"]
        raise status_errors.already_exists(kind.group, kind.plural, name, being_deleted=deleted)
    if options.dry_run:
        return entry_of(key, stored, encoding_version, None)
    entry = entry_of(key, stored, encoding_version, cluster.storage.next_revision)
    cluster.storage.put(collection, entry)
    return entry


def entry_of(key: str, document: Document, encoding_version: object, revision: int | None) -> Entry:
    """Encode an object for a revision; None makes one that is only shown (dry run), with whatever version it has.

    Raises: StatusError 500 when it is too large to be stored.
    """
    body = {name: value for name, value in document.items() if name not in ("kind", "apiVersion")}
    metadata = body["metadata"]
    if revision is not None:
        metadata["resourceVersion"] = str(revision)
    raw = encode(body)
    if len(raw) > _SIZE_LIMIT:
        raise status_errors.failure(500, "etcdserver: request is too large")
    return Entry(key, raw, revision or 0, metadata["uid"], metadata.get("labels"), encoding_version)


def rules_of(call: Call) -> WriteRules:
    """The rules of the endpoint that a call goes to.

    Raises: StatusError 405 when it cannot be written.
    """
    rules = call.strategy.endpoint(call.subresource)
    if rules is None:
        raise status_errors.method_not_allowed()
    return rules
