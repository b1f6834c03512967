"""The built-in admission plug-ins that objects depend on, in the order of the real server.

Each is a small class with one question (is this request mine?) and one change. What they know of other objects they
ask the cluster for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import Admission, AdmissionRequest
from konverge_cluster.api.cluster import Cluster, decode
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.topology import topology_labels

__all__ = [
    "DefaultTolerationSeconds",
    "PodTopologyLabels",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "builtin_admission",
]

Lookup = Callable[[str, str, str, str], Document | None]

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS: Final = 300
_PRIORITY_CLASSES: Final = ("scheduling.k8s.io", "priorityclasses")
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS: Final = 3607


def builtin_admission(cluster: Cluster, *, service_accounts: bool = False) -> list[Admission]:
    """All plug-ins, to stand between the rules of namespaces and the webhooks.

    `service_accounts` says whether pods need an account that exists, and get its token mounted. It needs somebody who
    makes the account `default` in every namespace.
    """
    accounts: list[Admission] = [ServiceAccount(cluster.lookup)] if service_accounts else []
    pods: list[Admission] = [Priority(cluster), DefaultTolerationSeconds()]
    last: list[Admission] = [RuntimeClass(cluster.lookup), PodTopologyLabels(cluster.lookup)]
    return [*accounts, TaintNodesByCondition(), *pods, StorageObjectInUseProtection(), *last]


def _is_new(request: AdmissionRequest, group: str, plural: str) -> bool:
    kind = request.strategy.info.kind
    return request.operation == "CREATE" and not request.subresource and (kind.group, kind.plural) == (group, plural)


def _is_write(request: AdmissionRequest, group: str, plural: str) -> bool:
    kind = request.strategy.info.kind
    return request.operation != "DELETE" and not request.subresource and (kind.group, kind.plural) == (group, plural)


def _name_of(request: AdmissionRequest) -> str:
    """The name of an object, or what its name will begin with."""
    return request.name or str(_object(request)["metadata"].get("generateName", ""))


def _keep(spec: dict[str, Any], old: dict[str, Any]) -> None:
    """Put back what an update left out: clients that do not know these fields drop them."""
    for name in ("priority", "preemptionPolicy"):
        if name not in spec and name in old:
            spec[name] = old[name]


def _object(request: AdmissionRequest) -> dict[str, Any]:
    assert request.object is not None
    return request.object


class _MutatingPlugin:
    """A plug-in that only changes objects."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse nothing."""


class ServiceAccount(_MutatingPlugin):
    """Pods run as the account `default` unless they say otherwise, and get its token, the CA and their namespace."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "pods")

    async def mutate(self, request: AdmissionRequest) -> None:
        pod = _object(request)
        spec = pod["spec"]
        if "kubernetes.io/config.mirror" in pod["metadata"].get("annotations", {}):
            return
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._lookup("", "serviceaccounts", request.namespace, name)
        if account is None:
            why = f"error looking up service account {request.namespace}/{name}: serviceaccount {name!r} not found"
            raise status_errors.forbidden("", "pods", _name_of(request), why.replace("'", '"'))
        if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]


def _mount_token(spec: dict[str, Any]) -> None:
    containers = [*spec.get("initContainers", ()), *(spec["containers"] or ())]
    without = [each for each in containers if not _mounts_token(each)]
    if not without:
        return
    volume = _token_volume(spec)
    for container in without:
        mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]


def _mounts_token(container: dict[str, Any]) -> bool:
    return any(mount.get("mountPath") == _TOKEN_PATH for mount in container.get("volumeMounts", ()))


def _token_volume(spec: dict[str, Any]) -> str:
    """The name of the volume that holds the token, made when the pod has none."""
    for volume in spec.get("volumes", ()):
        if volume["name"].startswith("kube-api-access-"):
            return str(volume["name"])
    # A pod has one such volume, so its name needs no chance to be unique.
    name = "kube-api-access-pxzvl"
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": _NAMESPACE_FIELD}]}},
    ]
    volume = {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}
    spec["volumes"] = [*spec.get("volumes", ()), volume]
    return name


_NAMESPACE_FIELD: Final = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}


class TaintNodesByCondition(_MutatingPlugin):
    """A new node is not ready, and says so."""

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "nodes")

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        taints = spec.get("taints", [])
        if not any((taint.get("key"), taint.get("effect")) == (_NOT_READY, "NoSchedule") for taint in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


class Priority(_MutatingPlugin):
    """The name of a priority class becomes a number; without one the default class counts, or zero."""

    def __init__(self, cluster: Cluster) -> None:
        self._lookup = cluster.lookup
        self._classes = cluster.storage.collection(_PRIORITY_CLASSES)

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_write(request, "", "pods")

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        if request.old_object is not None:
            _keep(spec, request.old_object["spec"])
            return
        name = spec.get("priorityClassName", "")
        found = self._class_of(name, request) if name else self._default_class()
        value, policy = found.get("value", 0), found.get("preemptionPolicy", "PreemptLowerPriority")
        if not name and found:
            spec["priorityClassName"] = found["metadata"]["name"]
        self._check(request, "integer value of priority", spec.get("priority"), value)
        self._check(request, "string value of PreemptionPolicy", spec.get("preemptionPolicy"), policy)
        spec["priority"], spec["preemptionPolicy"] = value, policy

    def _class_of(self, name: str, request: AdmissionRequest) -> Document:
        found = self._lookup(*_PRIORITY_CLASSES, "", name)
        if found is not None:
            return found
        if name in _SYSTEM_PRIORITIES:
            return {"value": _SYSTEM_PRIORITIES[name], "metadata": {"name": name}}
        why = f"no PriorityClass with name {name} was found"
        raise status_errors.forbidden("", "pods", _name_of(request), why)

    def _default_class(self) -> Document:
        every = (decode(entry.raw) for entry in self._classes.entries())
        classes = [each for each in every if each.get("globalDefault")]
        return min(classes, key=lambda each: each.get("value", 0), default={})

    @staticmethod
    def _check(request: AdmissionRequest, what: str, sent: Any, computed: Any) -> None:
        if sent is not None and sent != computed:
            why = (
                f"the {what} ({sent}) must not be provided in pod spec; priority admission controller computed"
                f" {computed} from the given PriorityClass name"
            )
            raise status_errors.forbidden("", "pods", _name_of(request), why)


class DefaultTolerationSeconds:
    """Pods stay five minutes on a node that is not ready or cannot be reached, unless they say otherwise."""

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
        """Refuse nothing."""


def _covers(toleration: dict[str, Any], key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


class RuntimeClass(_MutatingPlugin):
    """The runtime class that a pod names must be there; what it costs is added to the pod."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, request: AdmissionRequest) -> bool:
        return _is_new(request, "", "pods") and bool(_object(request)["spec"].get("runtimeClassName"))

    async def mutate(self, request: AdmissionRequest) -> None:
        spec = _object(request)["spec"]
        name = spec["runtimeClassName"]
        found = self._lookup("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            why = f'pod rejected: RuntimeClass "{name}" not found'
            raise status_errors.forbidden("", "pods", _name_of(request), why)
        overhead = found.get("overhead", {}).get("podFixed")
        if overhead:
            spec["overhead"] = dict(overhead)


class PodTopologyLabels(_MutatingPlugin):
    """A pod that comes with a node gets the labels of where that node is; one that is bound gets them then."""

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
    """Claims and volumes get a finalizer, so that they do not go while they are in use."""

    _NAMES: Final = {"persistentvolumeclaims": "pvc", "persistentvolumes": "pv"}

    def handles(self, request: AdmissionRequest) -> bool:
        return any(_is_new(request, "", plural) for plural in self._NAMES)

    async def mutate(self, request: AdmissionRequest) -> None:
        metadata = _object(request)["metadata"]
        finalizer = f"kubernetes.io/{self._NAMES[request.strategy.info.kind.plural]}-protection"
        finalizers = metadata.get("finalizers", [])
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]
