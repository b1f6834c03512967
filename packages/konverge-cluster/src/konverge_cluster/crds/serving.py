"""Serving of custom resources: names, registration and deletion of definitions.

Everything happens in the write of a definition, before its response: names are accepted, the
resource is registered (and with it discovery and OpenAPI), and only then does the definition become Established. The
real server does this asynchronously; the order, and the events of a watch, are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from konverge_cluster.api.cluster import Cluster, decode, encode
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.writes import endpoint_of, entry_of
from konverge_cluster.builtins.registration import builtin_strategies
from konverge_cluster.crds.approvals import approval_condition
from konverge_cluster.crds.compiled import CompiledSchema
from konverge_cluster.crds.conditions import CLEANUP, set_condition
from konverge_cluster.crds.conversions import Converter, NoConversion, WebhookCaller, WebhookConversion
from konverge_cluster.crds.definition_strategy import DefinitionStrategy
from konverge_cluster.crds.definitions import Definition, condition_of, is_true, read_definition
from konverge_cluster.crds.lazy_rules import LazyRules
from konverge_cluster.crds.name_conflicts import accept_names
from konverge_cluster.crds.resources import CustomResourceStrategy
from konverge_cluster.patches import track_update
from konverge_cluster.storage import DELETED, Collection, Entry

__all__ = ["CustomResources"]

_GROUP: Final = "apiextensions.k8s.io"
_PLURAL: Final = "customresourcedefinitions"
_MANAGER: Final = "kube-apiserver"


class CustomResources:
    """Serves the resources that the definitions of a cluster define.

    Promises: when the write of a definition is answered, the definition is Established (or its conditions say why not)
    and its resource is served; a changed schema applies to the next request; while a definition is being deleted no
    instance is created, and the definition is removed after its last instance. Watches of its objects end when the spec
    of a definition changes and when it is removed.

    `call_webhook` calls conversion webhooks; without it no webhook conversion is possible.
    """

    def __init__(self, cluster: Cluster, *, call_webhook: WebhookCaller | None = None) -> None:
        self._cluster = cluster
        self._rules = LazyRules()
        self._call_webhook = call_webhook
        plain = next(each for each in builtin_strategies() if each.info.storage == (_GROUP, _PLURAL))
        self._strategy = DefinitionStrategy(plain.info, plain.columns, self._rules)
        cluster.registry.add(self._strategy)
        self._definitions = cluster.collection(self._strategy)
        self._position = self._definitions.position_after(cluster.storage.revision)
        self._busy = False
        self._served: dict[str, tuple[bytes, Definition]] = {}
        for entry in self._definitions.entries():
            self._sync(entry.key)
        self._definitions.subscribe(self, self._handle_changes)

    def _handle_changes(self) -> None:
        """Process every change of a definition, including those that this causes."""
        if self._busy:
            return
        self._busy = True
        try:
            while changes := self._definitions.changes_from(self._position):
                self._position += 1
                change = changes[0]
                if change.kind == DELETED:
                    self._forget(change.entry.key)
                else:
                    self._sync(change.entry.key)
        finally:
            self._busy = False

    # Definitions.

    def _sync(self, name: str) -> None:
        """Advance a definition to its next state, if there is one."""
        document = self._read(name)
        if document is None:
            return
        if not self._accept_names(document) and not self._set_approval_condition(document):
            self._serve(document)
            if not self._establish(document):
                self._clean_up(document)

    def _read(self, name: str) -> Document | None:
        entry = self._definitions.get(name)
        return self._decoded(entry) if entry is not None else None

    def _decoded(self, entry: Entry) -> Document:
        kind = self._strategy.info.kind
        return {"kind": kind.kind, "apiVersion": kind.api_version, **decode(entry.raw)}

    def _all(self) -> Iterator[Document]:
        return (self._decoded(entry) for entry in self._definitions.entries())

    def _write(self, document: Document) -> None:
        """Store a definition as a status write of the server itself; without finalizers left, delete it."""
        cluster, metadata = self._cluster, document["metadata"]
        old = self._read(metadata["name"])
        endpoint = endpoint_of(cluster, self._strategy, "status")
        entries = track_update(old, document, manager=_MANAGER, endpoint=endpoint, now=cluster.now())
        metadata.pop("managedFields", None)
        if entries:
            metadata["managedFields"] = entries
        entry = entry_of(metadata["name"], document, self._strategy.encoding_version, cluster.storage.next_revision)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            cluster.storage.delete(self._definitions, entry)
        else:
            cluster.storage.put(self._definitions, entry)

    def _set(self, document: Document, kind: str, status: str, reason: str, message: str) -> None:
        set_condition(document, kind, status, reason, message, now=self._cluster.now())

    # Names.

    def _accept_names(self, document: Document) -> bool:
        """Accept the names without conflicts; report whether the definition was written."""
        spec, accepted = document["spec"], document["status"].get("acceptedNames") or {}
        if _same_names(spec["names"], accepted):
            return False
        others = [each for each in self._group_of(document) if each["metadata"]["uid"] != document["metadata"]["uid"]]
        naming = accept_names(spec["names"], accepted, [each["status"].get("acceptedNames") or {} for each in others])
        before = condition_of(document, "NamesAccepted")
        status = "True" if naming.is_complete else "False"
        reported = (before["status"], before["reason"], before["message"]) if before is not None else None
        if naming.accepted == accepted and reported == (status, naming.reason, naming.message):
            return False
        document["status"] = {**document["status"], "acceptedNames": {"plural": "", "kind": "", **naming.accepted}}
        self._set(document, "NamesAccepted", status, naming.reason, naming.message)
        if not is_true(document, "Established"):
            reason = ("Installing", "the initial names have been accepted") if naming.is_complete else None
            self._set(document, "Established", "False", *(reason or ("NotAccepted", "not all names are accepted")))
        self._write(document)
        self._retry_names(others)
        return True

    def _group_of(self, document: Document) -> list[Document]:
        return [each for each in self._all() if each["spec"]["group"] == document["spec"]["group"]]

    def _retry_names(self, others: list[Document]) -> None:
        """Process definitions again that may get a name which another one no longer uses."""
        for each in others:
            if not _same_names(each["spec"]["names"], each["status"].get("acceptedNames") or {}):
                self._sync(each["metadata"]["name"])

    def _set_approval_condition(self, document: Document) -> bool:
        requested = approval_condition(document)
        if requested is None:
            return False
        before = condition_of(document, "KubernetesAPIApprovalPolicyConformant")
        if before is not None and (before["status"], before["reason"], before["message"]) == requested:
            return False
        self._set(document, "KubernetesAPIApprovalPolicyConformant", *requested)
        self._write(document)
        return True

    # Serving.

    def _serve(self, document: Document) -> None:
        """Register the resource as it is defined now, and remove versions that are no longer served."""
        if not is_true(document, "NamesAccepted") and not is_true(document, "Established"):
            return
        name = document["metadata"]["name"]
        definition = read_definition(document)
        mark = encode([document["spec"], document["status"]["acceptedNames"]])
        before = self._served.get(name)
        if before is not None and before[0] == mark and before[1].terminating == definition.terminating:
            return
        schemas = {one.name: _compile(encode(one.schema)) for one in definition.versions}
        converter = self._converter(definition)
        self._stop_serving(name, keep=definition, same=before is not None and before[0] == mark)
        self._served[name] = (mark, definition)
        for version in definition.versions:
            if version.served:
                strategy = CustomResourceStrategy(definition, version, schemas, converter)
                self._cluster.registry.add(strategy)

    def _converter(self, definition: Definition) -> Converter:
        if definition.conversion.get("strategy") != "Webhook":
            return NoConversion()
        webhook = definition.conversion.get("webhook") or {}
        return WebhookConversion(definition.name, webhook, self._call_webhook, self._cluster.new_uid)

    def _stop_serving(self, name: str, *, keep: Definition | None = None, same: bool = False) -> None:
        """Stop serving the versions of a definition that are not kept; watches end unless it is unchanged."""
        _, served = self._served.pop(name, (b"", None))
        if served is None:
            return
        if not same:
            self._cluster.end_watches(served.storage)
        kept = {(keep.group, each.name, keep.plural) for each in keep.versions if each.served} if keep else set()
        for version in served.versions:
            if (served.group, version.name, served.plural) not in kept:
                self._cluster.registry.remove(served.group, version.name, served.plural)

    def _establish(self, document: Document) -> bool:
        if not is_true(document, "NamesAccepted") or is_true(document, "Established"):
            return False
        text = "the initial names have been accepted"
        self._set(document, "Established", "True", "InitialNamesAccepted", text)
        self._write(document)
        return True

    # Deletion.

    def _clean_up(self, document: Document) -> None:
        """Delete the instances of a definition that is being deleted, and remove its finalizer when there are none."""
        metadata = document["metadata"]
        if "deletionTimestamp" not in metadata or CLEANUP not in metadata.get("finalizers", ()):
            return
        condition = condition_of(document, "Terminating")
        if condition is not None and condition["reason"] == "InstanceDeletionPending":
            text = "CustomResource deletion is in progress"
            self._set(document, "Terminating", "True", "InstanceDeletionInProgress", text)
            self._write(document)
            return
        if not is_true(document, "Established"):
            self._set(document, "Terminating", "False", "NeverEstablished", "resource was never established")
            self._release(document)
            return
        instances = self._cluster.storage.collection(read_definition(document).storage)
        self._delete_instances(instances)
        if len(instances):
            instances.subscribe(self, lambda: self._check_instances(metadata["name"], instances))
            return
        self._set(document, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
        self._release(document)

    def _delete_instances(self, instances: Collection) -> None:
        storage, now = self._cluster.storage, self._cluster.now()
        for entry in instances.entries():
            document = decode(entry.raw)
            metadata = document["metadata"]
            if not metadata.get("finalizers"):
                storage.delete(instances, entry_of(entry.key, document, entry.encoding_version, storage.next_revision))
            elif "deletionTimestamp" not in metadata:
                metadata |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
                metadata["generation"] = metadata.get("generation", 0) + 1
                storage.put(instances, entry_of(entry.key, document, entry.encoding_version, storage.next_revision))

    def _check_instances(self, name: str, instances: Collection) -> None:
        if len(instances) == 0:
            instances.unsubscribe(self)
            document = self._read(name)
            if document is not None:
                self._clean_up(document)

    def _release(self, document: Document) -> None:
        metadata = document["metadata"]
        metadata["finalizers"] = [each for each in metadata["finalizers"] if each != CLEANUP]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        self._write(document)

    def _forget(self, name: str) -> None:
        """Stop serving the resources of a deleted definition; its names are free."""
        self._stop_serving(name)
        group = name.partition(".")[2]
        self._retry_names([each for each in self._all() if each["spec"]["group"] == group])


@lru_cache(maxsize=128)
def _compile(schema: bytes) -> CompiledSchema:
    """Compile a schema; equal ones are shared, also by the clusters of a process."""
    compiled = CompiledSchema(decode(schema))
    compiled.rules = LazyRules().compile(compiled.structural)
    return compiled


def _same_names(requested: Mapping[str, Any], accepted: Mapping[str, Any]) -> bool:
    return {key: value for key, value in requested.items() if value} == {
        key: value for key, value in accepted.items() if value
    }
