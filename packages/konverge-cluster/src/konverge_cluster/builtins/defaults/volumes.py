"""Defaults of pod volumes, claims, persistent volumes and storage classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge_cluster.builtins.defaults.images import pull_policy
from konverge_cluster.builtins.defaults.resources import round_resources

__all__ = [
    "default_claim",
    "default_claim_spec",
    "default_csi_driver",
    "default_persistent_volume",
    "default_storage_class",
    "default_volume",
]

_FILE_MODE: Final = 0o644


def default_volume(volume: dict[str, Any]) -> None:
    """Default a pod volume. A volume without a source is an emptyDir."""
    sources = [name for name in volume if name != "name"]
    if not sources:
        volume["emptyDir"] = {}
    for name in sources:
        set_defaults = _SOURCES.get(name)
        if set_defaults is not None:
            set_defaults(volume[name])


def _default_host_path(source: dict[str, Any]) -> None:
    source.setdefault("type", "")


def _default_mode(source: dict[str, Any]) -> None:
    source.setdefault("defaultMode", _FILE_MODE)


def _default_downward(source: dict[str, Any]) -> None:
    source.setdefault("defaultMode", _FILE_MODE)
    _default_field_references(source)


def _default_field_references(source: dict[str, Any]) -> None:
    for item in source.get("items", ()):
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _default_projected(source: dict[str, Any]) -> None:
    source.setdefault("defaultMode", _FILE_MODE)
    for inner in source["sources"] or ():
        if "downwardAPI" in inner:
            _default_field_references(inner["downwardAPI"])
        if "serviceAccountToken" in inner:
            inner["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _default_iscsi(source: dict[str, Any]) -> None:
    source.setdefault("iscsiInterface", "default")


def _default_rbd(source: dict[str, Any]) -> None:
    source.setdefault("pool", "rbd")
    source.setdefault("user", "admin")
    source.setdefault("keyring", "/etc/ceph/keyring")


def _default_azure_disk(source: dict[str, Any]) -> None:
    source.setdefault("cachingMode", "ReadWrite")
    source.setdefault("fsType", "ext4")
    source.setdefault("readOnly", False)
    source.setdefault("kind", "Shared")


def _default_scale_io(source: dict[str, Any]) -> None:
    source.setdefault("storageMode", "ThinProvisioned")
    source.setdefault("fsType", "xfs")


def _default_ephemeral(source: dict[str, Any]) -> None:
    template = source.get("volumeClaimTemplate")
    if template is not None:
        default_claim_spec(template["spec"])


def _default_image(source: dict[str, Any]) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference", "")))


_SOURCES: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "hostPath": _default_host_path,
    "secret": _default_mode,
    "configMap": _default_mode,
    "downwardAPI": _default_downward,
    "projected": _default_projected,
    "iscsi": _default_iscsi,
    "rbd": _default_rbd,
    "azureDisk": _default_azure_disk,
    "scaleIO": _default_scale_io,
    "ephemeral": _default_ephemeral,
    "image": _default_image,
}


def default_claim(claim: dict[str, Any]) -> None:
    claim["status"].setdefault("phase", "Pending")
    default_claim_spec(claim["spec"])
    round_resources(claim["status"].get("capacity"), claim["status"].get("allocatedResources"))


def default_claim_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("volumeMode", "Filesystem")
    round_resources(spec["resources"].get("limits"), spec["resources"].get("requests"))


def default_persistent_volume(volume: dict[str, Any]) -> None:
    spec = volume["spec"]
    volume["status"].setdefault("phase", "Pending")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    round_resources(spec.get("capacity"))
    for name in ("hostPath", "iscsi", "rbd", "azureDisk", "scaleIO"):
        if name in spec:
            _SOURCES[name](spec[name])
    if "scaleIO" in spec:
        _default_scale_io(spec["scaleIO"])


def default_storage_class(storage_class: dict[str, Any]) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def default_csi_driver(driver: dict[str, Any]) -> None:
    spec = driver["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)
