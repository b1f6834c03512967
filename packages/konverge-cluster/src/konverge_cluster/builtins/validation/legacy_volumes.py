"""Validation of deprecated volume plugins: their required fields."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import required
from konverge_cluster.builtins.validation.values import FieldErrors

__all__ = ["validate_legacy_volume"]

_NEEDED: Final = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "storageos": ("volumeName",),
    "vsphereVolume": ("volumePath",),
}
_SPELT: Final = {"gcePersistentDisk": "persistentDisk"}


def validate_legacy_volume(name: str, source: dict[str, Any], path: str) -> FieldErrors:
    """Validate the source of a deprecated plugin; `path` is the path of the volume."""
    for field in _NEEDED.get(name, ()):
        if not source.get(field):
            yield required(f"{path}.{_SPELT.get(name, name)}.{field}")
