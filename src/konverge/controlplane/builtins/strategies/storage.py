"""Volumes, claims, storage classes, and what drivers say about themselves."""

from __future__ import annotations

from typing import Any

from konverge.controlplane.api.strategy import Document, Surroundings
from konverge.controlplane.builtins.defaults import volumes
from konverge.controlplane.builtins.kinds import BuiltinStrategy, StatusEndpoint

__all__ = [
    "CSIDriverStrategy",
    "CSINodeStrategy",
    "CSIStorageCapacityStrategy",
    "PersistentVolumeClaimStrategy",
    "PersistentVolumeStrategy",
    "StorageClassStrategy",
    "VolumeAttachmentStrategy",
    "VolumeAttributesClassStrategy",
]


class PersistentVolumeClaimStrategy(BuiltinStrategy):
    """A wish for storage; what it takes its first content from is written in two places, which agree."""

    fill = staticmethod(volumes.default_claim)
    returns_deleted = True

    def wiped_status(self) -> Any:
        return {"phase": "Pending"}

    def prepare_create(self, new: Document, around: Surroundings) -> None:
        super().prepare_create(new, around)
        _agree_on_source(new["spec"], {})

    def prepare_update(self, new: Document, old: Document, around: Surroundings) -> None:
        super().prepare_update(new, old, around)
        _agree_on_source(new["spec"], old["spec"])


def _agree_on_source(spec: Document, old: Document) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and "namespace" not in reference and "dataSourceRef" not in old:
        spec["dataSource"] = dict(reference)


class PersistentVolumeStrategy(BuiltinStrategy):
    """A piece of storage; when its phase changes, the time is noted."""

    fill = staticmethod(volumes.default_persistent_volume)
    returns_deleted = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._endpoints["status"] = PersistentVolumeStatusEndpoint(self)

    def prepare_create(self, new: Document, around: Surroundings) -> None:
        super().prepare_create(new, around)
        new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": around.now}


class PersistentVolumeStatusEndpoint(StatusEndpoint):
    """The status of a volume."""

    def prepare_update(self, new: Document, old: Document, around: Surroundings) -> None:
        super().prepare_update(new, old, around)
        present, former = new["status"], old["status"]
        noted = present.get("lastPhaseTransitionTime")
        if present.get("phase") == former.get("phase"):
            if noted is None and "lastPhaseTransitionTime" in former:
                present["lastPhaseTransitionTime"] = former["lastPhaseTransitionTime"]
        elif noted is None or noted == former.get("lastPhaseTransitionTime"):
            present["lastPhaseTransitionTime"] = around.now


class StorageClassStrategy(BuiltinStrategy):
    """A kind of storage on offer."""

    fill = staticmethod(volumes.default_storage_class)
    returns_deleted = True


class CSIDriverStrategy(BuiltinStrategy):
    """What a storage driver can do. Its generation counts from zero."""

    fill = staticmethod(volumes.default_csi_driver)
    returns_deleted = True
    unconditional_update = False

    def prepare_update(self, new: Document, old: Document, around: Surroundings) -> None:
        super().prepare_update(new, old, around)
        if new["spec"] != old["spec"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


class CSINodeStrategy(BuiltinStrategy):
    """Which storage drivers a node has."""

    returns_deleted = True
    unconditional_update = False


class CSIStorageCapacityStrategy(BuiltinStrategy):
    """How much storage a driver has left."""

    unconditional_update = False


class VolumeAttachmentStrategy(BuiltinStrategy):
    """That a volume is, or shall be, attached to a node."""

    returns_deleted = True
    unconditional_update = False
    status_resets = ("metadata", "spec")


class VolumeAttributesClassStrategy(BuiltinStrategy):
    """Settings of volumes that can change."""

    returns_deleted = True
