"""Validation of persistent volumes, storage classes, CSI drivers and volume attachments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import duplicate, forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.claims import ACCESS_MODES, VOLUME_MODES
from konverge_cluster.builtins.validation.labels import sorted_labels
from konverge_cluster.builtins.validation.legacy_volumes import validate_legacy_volume
from konverge_cluster.builtins.validation.scheduling import validate_node_selector
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_subdomain,
    validate_immutable,
    validate_no_backsteps,
    validate_qualified_name,
)
from konverge_cluster.builtins.validation.volumes import validate_driver_name, validate_host_path, validate_nfs

__all__ = [
    "validate_csi_driver",
    "validate_csi_driver_update",
    "validate_csi_node",
    "validate_persistent_volume",
    "validate_persistent_volume_update",
    "validate_storage_class",
    "validate_storage_class_update",
    "validate_volume_attachment",
]

Spec = dict[str, Any]

_PLUGINS: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_ONE_TYPE: Final = "may not specify more than 1 volume type"
_RECLAIM: Final = ("Delete", "Recycle", "Retain")


def validate_persistent_volume(new: Spec) -> FieldErrors:
    spec = new["spec"]
    yield from _validate_access(spec)
    yield from _validate_capacity(spec.get("capacity", {}))
    if spec["persistentVolumeReclaimPolicy"] not in _RECLAIM:
        yield unsupported("spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], _RECLAIM)
    if "nodeAffinity" in spec:
        yield from _validate_node_affinity(spec["nodeAffinity"], "spec.nodeAffinity")
    yield from _validate_plugin(spec)
    root = spec.get("hostPath", {}).get("path", "").rstrip("/") == "" and "hostPath" in spec
    if root and spec["persistentVolumeReclaimPolicy"] == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden("spec.persistentVolumeReclaimPolicy", text)
    if spec.get("storageClassName"):
        yield from validate_dns_subdomain(spec["storageClassName"], "spec.storageClassName")
    if spec["volumeMode"] not in VOLUME_MODES:
        yield unsupported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES)
    yield from _validate_attributes_class(spec, "spec.volumeAttributesClassName")


def _validate_attributes_class(spec: Spec, path: str) -> FieldErrors:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    if not name:
        yield required(path, "an empty string is disallowed")
    else:
        yield from validate_dns_subdomain(name, path)
    if "csi" not in spec:
        yield required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _validate_access(spec: Spec) -> FieldErrors:
    modes = spec.get("accessModes", [])
    if not modes:
        yield required("spec.accessModes")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield unsupported("spec.accessModes", mode, ACCESS_MODES)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _validate_capacity(capacity: dict[str, str]) -> FieldErrors:
    if not capacity:
        yield required("spec.capacity")
    if list(capacity) != ["storage"]:
        yield unsupported("spec.capacity", dict(sorted(capacity.items())) or None, ("storage",))
    for name, amount in capacity.items():
        path = f"spec.capacity[{name}]"
        if Quantity(amount) < 0:
            yield invalid(path, Quantity(amount).whole(), "must be a valid resource quantity")
        if Quantity(amount) <= 0:
            yield invalid(path, amount, "must be greater than zero")


def _validate_node_affinity(affinity: Spec, path: str) -> FieldErrors:
    if "required" in affinity:
        yield from validate_node_selector(affinity["required"], f"{path}.required")
    else:
        yield required(f"{path}.required", "must specify required node constraints")


def _validate_plugin(spec: Spec) -> FieldErrors:
    present = [name for name in _PLUGINS if name in spec]
    if not present:
        yield required("spec", "must specify a volume type")
    for at, name in enumerate(present):
        path = f"spec.{name}"
        # The real server does not count this one.
        if at and name != "flexVolume":
            yield forbidden("spec.cephFS" if name == "cephfs" else path, _ONE_TYPE)
        elif name == "hostPath":
            yield from validate_host_path(spec[name], path)
        elif name == "nfs":
            yield from validate_nfs(spec[name], path)
        elif name == "local":
            yield from _validate_local(spec, path)
        elif name == "csi":
            yield from _validate_csi(spec[name], path)
        else:
            yield from validate_legacy_volume(name, spec[name], "spec")


def _validate_local(spec: Spec, path: str) -> FieldErrors:
    place = spec["local"]["path"]
    if not place:
        yield required(f"{path}.path")
    else:
        yield from validate_no_backsteps(place, f"{path}.path")
    if "required" not in spec.get("nodeAffinity", {}):
        yield required("spec.nodeAffinity", "Local volume requires node affinity")


def _validate_csi(source: Spec, path: str) -> FieldErrors:
    yield from validate_driver_name(source["driver"], f"{path}.driver")
    if not source["volumeHandle"]:
        yield required(f"{path}.volumeHandle")


def validate_persistent_volume_update(new: Spec, old: Spec) -> FieldErrors:
    sources = [{name: each["spec"].get(name) for name in _PLUGINS} for each in (new, old)]
    if sources[0] != sources[1]:
        text = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", text)
    yield from validate_immutable(new["spec"]["volumeMode"], old["spec"]["volumeMode"], "volumeMode")


def validate_storage_class(new: Spec) -> FieldErrors:
    name = new["provisioner"]
    if not name:
        yield required("provisioner")
    else:
        yield from validate_qualified_name(name.lower(), "provisioner")
    for key in new.get("parameters", {}):
        if not key:
            yield invalid("parameters", key, "field can not be empty.")
    if new["reclaimPolicy"] not in ("", "Delete", "Retain"):
        yield unsupported("reclaimPolicy", new["reclaimPolicy"], ("Delete", "Retain"))
    if new["volumeBindingMode"] not in ("Immediate", "WaitForFirstConsumer"):
        yield unsupported("volumeBindingMode", new["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))
    yield from _validate_topologies(new.get("allowedTopologies", ()))


def _validate_topologies(terms: Iterable[Spec]) -> FieldErrors:
    # The real server treats an empty term as a duplicate.
    seen: list[dict[str, set[str]]] = [{}]
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        expressions: dict[str, set[str]] = {}
        for at, each in enumerate(term.get("matchLabelExpressions", ())):
            yield from _validate_topology(each, f"{path}[{at}]")
            if each["key"] in expressions:
                yield duplicate(f"{path}[{at}].key", each["key"])
            expressions[each["key"]] = set(each["values"] or ())
        if expressions in seen:
            yield duplicate(path, "")
        seen.append(expressions)


def _validate_topology(expression: Spec, path: str) -> FieldErrors:
    values = expression["values"] or []
    if not values:
        yield required(f"{path}.values")
    for index, value in enumerate(values):
        if value in values[:index]:
            yield duplicate(f"{path}.values[{index}]", value)
    yield from validate_qualified_name(expression["key"], f"{path}.key")


def validate_storage_class_update(new: Spec, old: Spec) -> FieldErrors:
    yield from validate_immutable(
        sorted_labels(new.get("parameters")), sorted_labels(old.get("parameters")), "parameters"
    )
    for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from validate_immutable(new[name], old[name], name)


def validate_csi_driver(new: Spec) -> FieldErrors:
    policy = new["spec"].get("fsGroupPolicy")
    allowed = ("File", "None", "ReadWriteOnceWithFSType")
    if policy is not None and policy not in allowed:
        yield unsupported("spec.fsGroupPolicy", policy, allowed)
    yield from _validate_tokens(new["spec"])
    for mode in new["spec"].get("volumeLifecycleModes", ()):
        if mode not in ("Persistent", "Ephemeral"):
            yield unsupported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    period = new["spec"].get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text = "must be greater than or equal to 10 seconds"
        yield invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text)
    in_secrets = new["spec"].get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not new["spec"].get("tokenRequests"):
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid("spec.serviceAccountTokenInSecrets", in_secrets, text)


def _validate_tokens(spec: Spec) -> FieldErrors:
    seen: set[str] = set()
    for index, token in enumerate(spec.get("tokenRequests", ())):
        path = f"spec.tokenRequests[{index}]"
        if token["audience"] in seen:
            yield duplicate(f"{path}.audience", token["audience"])
            continue
        seen.add(token["audience"])
        seconds = token.get("expirationSeconds", 600)
        if seconds < 600:
            yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")


def validate_csi_driver_update(new: Spec, old: Spec) -> FieldErrors:
    spec, old_spec = new["spec"], old["spec"]
    yield from validate_immutable(spec["attachRequired"], old_spec["attachRequired"], "spec.attachedRequired")
    yield from validate_immutable(
        spec["volumeLifecycleModes"], old_spec["volumeLifecycleModes"], "spec.volumeLifecycleModes"
    )


def validate_csi_node(new: Spec) -> FieldErrors:
    seen: set[str] = set()
    for index, driver in enumerate(new["spec"]["drivers"] or ()):
        path = f"spec.drivers[{index}]"
        yield from validate_driver_name(driver["name"], f"{path}.name")
        if not driver["nodeID"]:
            yield required(f"{path}.nodeID")
        if driver["name"] in seen:
            yield duplicate(f"{path}.name", driver["name"])
        seen.add(driver["name"])
        yield from _validate_topology_keys(driver["topologyKeys"] or (), path)


def _validate_topology_keys(keys: Iterable[str], path: str) -> FieldErrors:
    seen: set[str] = set()
    for key in keys:
        if not key:
            yield required(path)
        if key in seen:
            yield duplicate(path, key)
        seen.add(key)
        yield from validate_qualified_name(key, path)


def validate_volume_attachment(new: Spec) -> FieldErrors:
    spec = new["spec"]
    yield from validate_driver_name(spec["attacher"], "spec.attacher")
    source = spec["source"]
    if "inlineVolumeSpec" not in source and not source.get("persistentVolumeName"):
        yield required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    if not spec["nodeName"]:
        yield required("spec.nodeName")
    else:
        yield from validate_dns_subdomain(spec["nodeName"], "spec.nodeName")
