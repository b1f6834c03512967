"""Table rows of namespaces, nodes, storage, configuration and events."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.strategy import Document
from konverge_cluster.api.tables import age_of
from konverge_cluster.builtins.rows.formats import NONE, UNSET, access_modes, age

__all__ = [
    "component_status_cells",
    "config_map_cells",
    "csi_driver_cells",
    "csi_node_cells",
    "event_cells",
    "lease_cells",
    "namespace_cells",
    "node_cells",
    "persistent_volume_cells",
    "persistent_volume_claim_cells",
    "resource_quota_cells",
    "secret_cells",
    "service_account_cells",
    "storage_class_cells",
    "volume_attachment_cells",
    "volume_attributes_class_cells",
]

_ROLE: Final = "node-role.kubernetes.io/"
_UNKNOWN: Final = "<unknown>"


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def component_status_cells(component: Document, now: float) -> list[Any]:  # noqa: ARG001
    for condition in component.get("conditions", ()):
        if condition["type"] == "Healthy":
            status = "Healthy" if condition["status"] == "True" else "Unhealthy"
            return [_name(component), status, condition.get("message", ""), condition.get("error", "")]
    return [_name(component), "Unknown", "", ""]


def config_map_cells(config_map: Document, now: float) -> list[Any]:
    count = len(config_map.get("data", ())) + len(config_map.get("binaryData", ()))
    return [_name(config_map), count, age(config_map, now)]


def secret_cells(secret: Document, now: float) -> list[Any]:
    return [_name(secret), secret["type"], len(secret.get("data", ())), age(secret, now)]


def service_account_cells(account: Document, now: float) -> list[Any]:
    return [_name(account), age(account, now)]


def namespace_cells(namespace: Document, now: float) -> list[Any]:
    return [_name(namespace), namespace["status"].get("phase", ""), age(namespace, now)]


def node_cells(node: Document, now: float) -> list[Any]:
    info = node["status"].get("nodeInfo", {})
    addresses = {each["type"]: each["address"] for each in reversed(node["status"].get("addresses", ()))}
    kernel = info.get("kernelVersion") or _UNKNOWN
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        _name(node),
        _node_state(node),
        ",".join(_roles(node["metadata"].get("labels", {}))) or NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or _UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _node_state(node: Document) -> str:
    ready = [each["status"] for each in node["status"].get("conditions", ()) if each["type"] == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[-1] == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if node["spec"].get("unschedulable") else state


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    return sorted((roles | {labels.get("kubernetes.io/role", "")}) - {""})


def persistent_volume_cells(volume: Document, now: float) -> list[Any]:
    spec, status = volume["spec"], volume["status"]
    claim = spec.get("claimRef")
    return [
        _name(volume),
        spec.get("capacity", {}).get("storage", "0"),
        access_modes(spec.get("accessModes", ())),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(volume),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _storage_class(volume),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        age(volume, now),
        spec.get("volumeMode", UNSET),
    ]


def _phase(document: Document) -> str:
    is_deleted = "deletionTimestamp" in document["metadata"]
    return "Terminating" if is_deleted else str(document["status"].get("phase", ""))


def _storage_class(document: Document) -> str:
    annotations = document["metadata"].get("annotations", {})
    default = document["spec"].get("storageClassName", "")
    return str(annotations.get("volume.beta.kubernetes.io/storage-class", default))


def persistent_volume_claim_cells(claim: Document, now: float) -> list[Any]:
    spec, status = claim["spec"], claim["status"]
    bound = bool(spec.get("volumeName"))
    return [
        _name(claim),
        _phase(claim),
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", "0") if bound else "",
        access_modes(status.get("accessModes", ())) if bound else "",
        _storage_class(claim),
        spec.get("volumeAttributesClassName", UNSET),
        age(claim, now),
        spec.get("volumeMode", UNSET),
    ]


def storage_class_cells(storage_class: Document, now: float) -> list[Any]:
    annotations = storage_class["metadata"].get("annotations", {})
    names = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    default = any(annotations.get(name) == "true" for name in names)
    return [
        f"{_name(storage_class)} (default)" if default else _name(storage_class),
        storage_class["provisioner"],
        storage_class["reclaimPolicy"],
        storage_class["volumeBindingMode"],
        storage_class.get("allowVolumeExpansion", False),
        age(storage_class, now),
    ]


def csi_driver_cells(driver: Document, now: float) -> list[Any]:
    spec = driver["spec"]
    tokens = spec.get("tokenRequests")
    return [
        _name(driver),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if tokens is None else ",".join(each["audience"] for each in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes", ())) or NONE,
        age(driver, now),
    ]


def csi_node_cells(node: Document, now: float) -> list[Any]:
    return [_name(node), len(node["spec"]["drivers"] or ()), age(node, now)]


def volume_attachment_cells(attachment: Document, now: float) -> list[Any]:
    spec = attachment["spec"]
    source = spec["source"].get("persistentVolumeName", "")
    attached = attachment["status"]["attached"]
    return [_name(attachment), spec["attacher"], source, spec["nodeName"], attached, age(attachment, now)]


def volume_attributes_class_cells(attributes: Document, now: float) -> list[Any]:
    return [_name(attributes), attributes["driverName"], age(attributes, now)]


def lease_cells(lease: Document, now: float) -> list[Any]:
    return [_name(lease), lease["spec"].get("holderIdentity", ""), age(lease, now)]


def resource_quota_cells(quota: Document, now: float) -> list[Any]:
    hard, used = quota["status"].get("hard", {}), quota["status"].get("used", {})
    columns: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        columns[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [_name(quota), ", ".join(columns[False]), ", ".join(columns[True]), age(quota, now)]


def event_cells(event: Document, now: float) -> list[Any]:
    """Return the row of an event in the form of the core group."""
    series, involved = event.get("series"), event["involvedObject"]
    first = age_of(event.get("firstTimestamp") or event.get("eventTime"), now)
    last = age_of(event["lastTimestamp"], now) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    if series is not None:
        last, count = age_of(series.get("lastObservedTime"), now), series.get("count", 0)
    kind = involved.get("kind", "").lower()
    target = f"{kind}/{involved['name']}" if involved.get("name") else kind
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        target,
        involved.get("fieldPath", ""),
        _source(event),
        event.get("message", "").strip(),
        first,
        count,
        _name(event),
    ]


def _source(event: Document) -> str:
    component = event["source"].get("component") or event.get("reportingComponent", "")
    instance = event["source"].get("host") or event.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else component
