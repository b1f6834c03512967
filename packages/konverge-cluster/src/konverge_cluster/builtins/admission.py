"""The built-in admission plugins that objects depend on, in the order of the real server.

Each is a small class with one predicate, `handles`, and one change, `mutate`. Plugins look up other objects in the
cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import Admission, AdmissionRequest
from konverge_cluster.api.cluster import Cluster, decode
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.topology import topology_labels
from konverge_cluster.builtins.certificate_admission import certificate_admission
from konverge_cluster.builtins.service_account_admission import ServiceAccount

__all__ = [
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "PersistentVolumeClaimResize",
    "PodTopologyLabels",
    "Priority",
    "RuntimeClass",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "builtin_admission",
]

Lookup = Callable[[str, str, str, str], Document | None]

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS: Final = 300
_PRIORITY_CLASSES: Final = ("scheduling.k8s.io", "priorityclasses")
_STORAGE_CLASSES: Final = ("storage.k8s.io", "storageclasses")
_BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def builtin_admission(cluster: Cluster, *, service_accounts: bool = False) -> list[Admission]:
    """Return all plugins; they run after NamespaceLifecycle and before the webhooks.

    With `service_accounts`, a pod needs a service account that exists, and gets its token mounted. This requires a
    controller that creates the account `default` in every namespace.
    """
    accounts: list[Admission] = [ServiceAccount(cluster.lookup)] if service_accounts else []
    pods: list[Admission] = [Priority(cluster), DefaultTolerationSeconds()]
    last: list[Admission] = [RuntimeClass(cluster.lookup), PodTopologyLabels(cluster.lookup)]
    volumes: list[Admission] = [
        DefaultStorageClass(cluster),
        StorageObjectInUseProtection(),
        PersistentVolumeClaimResize(cluster.lookup),
    ]
    return [*accounts, TaintNodesByCondition(), *pods, *volumes, *certificate_admission(cluster), *last]


def _is_new(request: AdmissionRequest, group: str, plural: str) -> bool:
    kind = request.strategy.info.kind
    return request.operation == "CREATE" and not request.subresource and (kind.group, kind.plural) == (group, plural)


def _is_write(request: AdmissionRequest, group: str, plural: str) -> bool:
    kind = request.strategy.info.kind
    return request.operation != "DELETE" and not request.subresource and (kind.group, kind.plural) == (group, plural)


def _name_of(request: AdmissionRequest) -> str:
    """Return the name of an object, or the prefix of its generated name."""
    return request.name or str(_object(request)["metadata"].get("generateName", ""))


def _restore_fields(spec: dict[str, Any], old: dict[str, Any]) -> None:
    """Restore fields that an update omits: clients that do not know these fields drop them."""
    for name in ("priority", "preemptionPolicy"):
        if name not in spec and name in old:
            spec[name] = old[name]


def _object(request: AdmissionRequest) -> dict[str, Any]:
    assert request.object is not None
    return request.object


class _MutatingPlugin:
    """A plugin that changes objects and never rejects a request in its validating phase."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Accept every request."""


class TaintNodesByCondition(_MutatingPlugin):
    """Add the not-ready taint to a new node."""

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "nodes")

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        taints = spec.get("taints", [])
        if not any((taint.get("key"), taint.get("effect")) == (_NOT_READY, "NoSchedule") for taint in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


class Priority(_MutatingPlugin):
    """Resolve the priority class of a pod to its value; without a name the default class applies, or zero."""

    def __init__(self, cluster: Cluster) -> None:
        self._lookup = cluster.lookup
        self._classes = cluster.storage.collection(_PRIORITY_CLASSES)

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_write(request, "", "pods")

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        if request.old_object is not None:
            _restore_fields(spec, request.old_object["spec"])
            return
        name = spec.get("priorityClassName", "")
        priority_class = self._class_of(name, request) if name else self._default_class()
        value, policy = priority_class.get("value", 0), priority_class.get("preemptionPolicy", "PreemptLowerPriority")
        if not name and priority_class:
            spec["priorityClassName"] = priority_class["metadata"]["name"]
        self._check(request, "integer value of priority", spec.get("priority"), value)
        self._check(request, "string value of PreemptionPolicy", spec.get("preemptionPolicy"), policy)
        spec["priority"], spec["preemptionPolicy"] = value, policy

    def _class_of(self, name: str, request: AdmissionRequest) -> Document:
        priority_class = self._lookup(*_PRIORITY_CLASSES, "", name)
        if priority_class is not None:
            return priority_class
        if name in _SYSTEM_PRIORITIES:
            return {"value": _SYSTEM_PRIORITIES[name], "metadata": {"name": name}}
        reason = f"no PriorityClass with name {name} was found"
        raise status_errors.forbidden("", "pods", _name_of(request), reason)

    def _default_class(self) -> Document:
        documents = (decode(entry.raw) for entry in self._classes.entries())
        classes = [each for each in documents if each.get("globalDefault")]
        return min(classes, key=lambda each: each.get("value", 0), default={})

    @staticmethod
    def _check(request: AdmissionRequest, what: str, sent: Any, computed: Any) -> None:
        if sent is not None and sent != computed:
            reason = (
                f"the {what} ({sent}) must not be provided in pod spec; priority admission controller computed"
                f" {computed} from the given PriorityClass name"
            )
            raise status_errors.forbidden("", "pods", _name_of(request), reason)


class DefaultTolerationSeconds:
    """Let pods tolerate a not-ready or unreachable node for five minutes, unless they have such tolerations."""

    def handles(self, request: AdmissionRequest) -> bool:
        kind = request.strategy.info.kind
        return (kind.group, kind.plural) == ("", "pods") and not request.subresource and request.object is not None

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        tolerations = spec.get("tolerations", [])
        missing = [key for key in (_NOT_READY, _UNREACHABLE) if not any(_covers(each, key) for each in tolerations)]
        if missing:
            common = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            spec["tolerations"] = [*tolerations, *({"key": key, **common} for key in missing)]

    async def validate(self, request: AdmissionRequest) -> None:
        """Accept every request."""


def _covers(toleration: dict[str, Any], key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


class RuntimeClass(_MutatingPlugin):
    """Require the runtime class that a pod names, and set the overhead of the pod from it."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "pods") and bool(_object(request)["spec"].get("runtimeClassName"))

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        name = spec["runtimeClassName"]
        runtime_class = self._lookup("node.k8s.io", "runtimeclasses", "", name)
        if runtime_class is None:
            reason = f'pod rejected: RuntimeClass "{name}" not found'
            raise status_errors.forbidden("", "pods", _name_of(request), reason)
        overhead = runtime_class.get("overhead", {}).get("podFixed")
        if overhead:
            spec["overhead"] = dict(overhead)


class PodTopologyLabels(_MutatingPlugin):
    """Copy the topology labels of the node to a pod that is created with a node name.

    The binding subresource does the same for a pod that is bound later.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "pods") and bool(_object(request)["spec"].get("nodeName"))

    async def mutate(self, request: AdmissionRequest) -> None:
        pod = _object(request)
        labels = topology_labels(self._lookup, pod["spec"]["nodeName"])
        if labels:
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}


class StorageObjectInUseProtection(_MutatingPlugin):
    """Add a finalizer to claims and volumes, so that they are not removed while in use."""

    _NAMES: Final = {"persistentvolumeclaims": "pvc", "persistentvolumes": "pv"}

    def handles(self, request: AdmissionRequest) -> bool:
        return any(_is_new(request, "", plural) for plural in self._NAMES)

    async def mutate(self, request: AdmissionRequest) -> None:
        metadata = _object(request)["metadata"]
        finalizer = f"kubernetes.io/{self._NAMES[request.strategy.info.kind.plural]}-protection"
        finalizers = metadata.get("finalizers", [])
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]


class DefaultStorageClass(_MutatingPlugin):
    """Set the default storage class on a claim without one: the newest class that is marked as the default."""

    def __init__(self, cluster: Cluster) -> None:
        self._classes = cluster.storage.collection(_STORAGE_CLASSES)

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "persistentvolumeclaims")

    async def mutate(self, request: AdmissionRequest) -> None:
        claim = _object(request)
        annotations = claim["metadata"].get("annotations") or {}
        if _BETA_STORAGE_CLASS in annotations or "storageClassName" in claim["spec"]:
            return
        name = self._default_class()
        if name:
            claim["spec"]["storageClassName"] = name

    def _default_class(self) -> str:
        documents = (decode(entry.raw)["metadata"] for entry in self._classes.entries())
        marked = [each for each in documents if _is_marked_default(each.get("annotations") or {})]
        by_name = sorted(marked, key=lambda each: str(each["name"]))
        newest = max(by_name, key=lambda each: str(each["creationTimestamp"]), default={"name": ""})
        return str(newest["name"])


def _is_marked_default(annotations: dict[str, str]) -> bool:
    return any(annotations.get(mark) == "true" for mark in _DEFAULT_CLASS_MARKS)


class PersistentVolumeClaimResize:
    """Reject an expansion of a claim that is not bound, or whose class does not allow it."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, request: AdmissionRequest) -> bool:
        is_update = request.operation == "UPDATE" and request.old_object is not None
        return is_update and _is_write(request, "", "persistentvolumeclaims")

    async def mutate(self, request: AdmissionRequest) -> None:
        """Change nothing."""

    async def validate(self, request: AdmissionRequest) -> None:
        assert request.old_object is not None
        old, new = request.old_object, _object(request)
        if _storage_request(new) <= _storage_request(old):
            return
        if old.get("status", {}).get("phase") != "Bound":
            raise self._forbidden(request, "Only bound persistent volume claims can be expanded")
        if not self._can_expand(_claim_class(old), _claim_class(new)):
            reason = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
                " support resize"
            )
            raise self._forbidden(request, reason)

    def _can_expand(self, old: str, new: str) -> bool:
        found = self._lookup(*_STORAGE_CLASSES, "", new) if new and new == old else None
        return found is not None and bool(found.get("allowVolumeExpansion"))

    @staticmethod
    def _forbidden(request: AdmissionRequest, reason: str) -> Exception:
        return status_errors.forbidden("", "persistentvolumeclaims", request.name, reason)


def _storage_request(claim: Document) -> Quantity:
    return Quantity(claim["spec"].get("resources", {}).get("requests", {}).get("storage", "0"))


def _claim_class(claim: Document) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(_BETA_STORAGE_CLASS) or claim["spec"].get("storageClassName", ""))
