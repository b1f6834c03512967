"""Create, and the parts that all writes share: admission, managed fields, encoding for storage.

There is no `await` between the check that the stored entry is still the one that was read and the write. Code that
awaits (a webhook call) must expect a concurrent write, and start over.
"""

from __future__ import annotations

from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.authorization import Attributes, check_authorized
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, decode, encode, key_of
from konverge_cluster.api.documents import read_document
from konverge_cluster.api.field_errors import invalid
from konverge_cluster.api.metadata import metadata_errors, remove_duplicate_owners
from konverge_cluster.api.names import generate_name, path_segment_name_errors
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

_MAX_NAME_ATTEMPTS: Final = 8
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
    """Set the namespace of an object from the path.

    Raises: StatusError 400 when the object has another namespace.
    """
    namespace = call.namespace if call.strategy.info.kind.namespaced else ""
    if metadata.get("namespace", namespace) != namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise status_errors.bad_request(text)
    if namespace:
        metadata["namespace"] = namespace


def warn_of_duplicate_owners(call: Call, metadata: Document, when: str = "") -> None:
    """Remove duplicate owner references, and add a warning that names them."""
    repeated = remove_duplicate_owners(metadata)
    if repeated:
        call.warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+,"
            " and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )


def endpoint_of(cluster: Cluster, strategy: Strategy, subresource: str) -> Endpoint:
    """Return the endpoint of a write, for managed fields; endpoints are cached for each strategy."""
    kind = strategy.info.kind
    cache_key = (*kind[:4], subresource)
    known = cluster.endpoints.get(cache_key)
    if known is None or known[0] is not strategy:
        known = cluster.endpoints[cache_key] = (strategy, _make_endpoint(strategy, subresource))
    return known[1]


def _make_endpoint(strategy: Strategy, subresource: str) -> Endpoint:
    kind = strategy.info.kind
    rules = strategy.endpoint(subresource)
    reset = make_set(*rules.reset_fields) if rules is not None and rules.reset_fields else {}
    resets = dict.fromkeys(strategy.topologies, reset) if reset else {}
    return Endpoint(kind.api_version, kind.kind, strategy.topologies, subresource, resets, strategy.convert)


def track(cluster: Cluster, call: Call, old: Document | None, new: Document, options: WriteOptions) -> None:
    """Set the managedFields of an object that is written."""
    manager = manager_name(options.manager, call.agent)
    endpoint = endpoint_of(cluster, call.strategy, call.subresource)
    entries = track_update(old, new, manager=manager, endpoint=endpoint, now=cluster.now())
    if entries:
        new["metadata"]["managedFields"] = entries
    else:
        new["metadata"].pop("managedFields", None)


def request_context(cluster: Cluster, call: Call, options: WriteOptions) -> RequestContext:
    """Return the context of a write for the rules of the kind."""
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
        verb=call.verb,
    )


async def run_mutating_admission(cluster: Cluster, request: AdmissionRequest) -> Document:
    """Run `mutate` of every admission plug-in; return the resulting object."""
    for plugin in cluster.admission:
        if plugin.handles(request):
            await plugin.mutate(request)
    assert request.object is not None
    return request.object


async def run_validating_admission(cluster: Cluster, request: AdmissionRequest) -> None:
    """Run `validate` of every admission plug-in on the final object."""
    for plugin in cluster.admission:
        if plugin.handles(request):
            await plugin.validate(request)


async def create(cluster: Cluster, call: Call, document: Document, options: WriteOptions) -> Entry:
    """Run admission and the rules of the kind on a new object, and store it.

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
    _set_name(cluster, call, metadata)
    context = request_context(cluster, call, options)
    strategy.prepare_create(document, context)
    _validate_new(call, document, context)
    call.warnings.extend(strategy.warnings_on_create(document))
    request.object, request.name = document, metadata["name"]
    if call.verb != "create":
        check_authorized(cluster.authorizer, _creation(call))
    await run_validating_admission(cluster, request)
    return await _store_new(cluster, call, document, options)


def _creation(call: Call) -> Attributes:
    """Return the attributes of an update or apply that creates its object: the user needs the right to create too."""
    kind = call.strategy.info.kind
    return Attributes(
        call.user,
        "create",
        call.request.path,
        kind.group,
        kind.version,
        kind.plural,
        namespace=call.namespace,
        name=call.name,
    )


def _set_name(cluster: Cluster, call: Call, metadata: Document) -> None:
    if metadata.get("name") or not metadata.get("generateName"):
        return
    collection = cluster.collection(call.strategy)
    for _ in range(_MAX_NAME_ATTEMPTS):
        metadata["name"] = generate_name(metadata["generateName"], cluster.rng)
        if collection.get(key_of(call.namespace, metadata["name"])) is None:
            return
    raise status_errors.name_not_generated(call.strategy.info.kind, metadata["name"])


def _validate_new(call: Call, document: Document, context: RequestContext) -> None:
    strategy, metadata = call.strategy, document["metadata"]
    kind = strategy.info.kind
    errors = metadata_errors(
        metadata, namespaced=kind.namespaced, name_rule=strategy.name_errors, custom=strategy.custom
    )
    errors += strategy.validate(document, context)
    name = metadata.get("name", "")
    if not errors:
        # Whatever the kind allows, a name must fit into a path segment.
        errors = [invalid("metadata.name", name, text) for text in path_segment_name_errors(name)]
    if errors:
        raise status_errors.invalid(kind.group, kind.kind, name, errors)


def _is_version_set(text: str) -> bool:
    """Report whether a version is set; a value that is not a number is ignored, as on the real server."""
    try:
        return unsigned(text) != 0
    except ValueError:
        return False


async def _store_new(cluster: Cluster, call: Call, document: Document, options: WriteOptions) -> Entry:
    strategy = call.strategy
    if not options.dry_run and _is_version_set(document["metadata"].pop("resourceVersion", "")):
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
    """Encode an object for a revision; None is for a dry run, where the object keeps its version and is not stored.

    Raises: StatusError 500 when the object is too large.
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
    """Return the write rules of the endpoint of a call.

    Raises: StatusError 405 when the endpoint cannot be written.
    """
    rules = call.strategy.endpoint(call.subresource)
    if rules is None:
        raise status_errors.method_not_allowed()
    return rules
