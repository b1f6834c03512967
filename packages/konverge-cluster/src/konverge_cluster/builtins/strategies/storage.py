"""Strategies of volumes, claims, storage classes and CSI objects."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins import warnings
from konverge_cluster.builtins.defaults import volumes
from konverge_cluster.builtins.strategy import BuiltinStrategy, StatusEndpoint
from konverge_cluster.builtins.validation import claims
from konverge_cluster.builtins.validation import storage as rules

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
    """PersistentVolumeClaims. `dataSource` and `dataSourceRef` are kept equal."""

    set_defaults = staticmethod(volumes.default_claim)
    returns_deleted = True
    check_change = staticmethod(claims.validate_claim_update)

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        return claims.validate_claim_spec(new["spec"], "spec")

    def warnings_on_create(self, new: Document) -> list[str]:
        return list(warnings.claim_warnings(new["spec"], "spec"))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return list(warnings.claim_warnings(new["spec"], "spec"))

    def initial_status(self) -> Any:
        return {"phase": "Pending"}

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        _normalize_data_sources(new["spec"], {})

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        _normalize_data_sources(new["spec"], old["spec"])


def _normalize_data_sources(spec: Document, old: Document) -> None:
    # Data sources in other namespaces are a feature that a 1.36 server disables by default.
    if spec.get("dataSourceRef", {}).get("namespace") and "dataSourceRef" not in old:
        del spec["dataSourceRef"]
    is_plain = _is_supported_data_source(spec.get("dataSource", {}))
    if "dataSource" not in old and "dataSourceRef" not in spec and not is_plain:
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and not reference.get("namespace"):
        spec["dataSource"] = {name: reference[name] for name in ("apiGroup", "kind", "name")}


def _is_supported_data_source(source: Document) -> bool:
    """Report whether `dataSource` supports the kind; the server has always dropped others there."""
    supported = ((None, "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
    return (source.get("apiGroup") or None, source.get("kind")) in supported


class PersistentVolumeStrategy(BuiltinStrategy):
    """PersistentVolumes. The time of a phase change is recorded."""

    set_defaults = staticmethod(volumes.default_persistent_volume)
    returns_deleted = True
    check = staticmethod(rules.validate_persistent_volume)
    check_change = staticmethod(rules.validate_persistent_volume_update)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._endpoints["status"] = PersistentVolumeStatusEndpoint(self)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now}


class PersistentVolumeStatusEndpoint(StatusEndpoint):
    """The status subresource of a PersistentVolume."""

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        status, old_status = new["status"], old["status"]
        transition_time = status.get("lastPhaseTransitionTime")
        if status.get("phase") == old_status.get("phase"):
            if transition_time is None and "lastPhaseTransitionTime" in old_status:
                status["lastPhaseTransitionTime"] = old_status["lastPhaseTransitionTime"]
        elif transition_time is None or transition_time == old_status.get("lastPhaseTransitionTime"):
            status["lastPhaseTransitionTime"] = context.now


class StorageClassStrategy(BuiltinStrategy):
    """StorageClasses."""

    set_defaults = staticmethod(volumes.default_storage_class)
    returns_deleted = True
    check = staticmethod(rules.validate_storage_class)
    check_change = staticmethod(rules.validate_storage_class_update)


class CSIDriverStrategy(BuiltinStrategy):
    """CSIDrivers. The generation starts at zero."""

    set_defaults = staticmethod(volumes.default_csi_driver)
    returns_deleted = True
    unconditional_update = False
    check = staticmethod(rules.validate_csi_driver)
    check_change = staticmethod(rules.validate_csi_driver_update)

    def warnings_on_create(self, new: Document) -> list[str]:
        return list(warnings.driver_warnings(new["spec"]))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        if new["spec"].get("tokenRequests") == old["spec"].get("tokenRequests"):
            return []
        return list(warnings.driver_warnings(new["spec"]))

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        # A feature that a 1.36 server disables by default.
        new["spec"].pop("preventPodSchedulingIfMissing", None)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        new["spec"].pop("preventPodSchedulingIfMissing", None)
        if new["spec"] != old["spec"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


class CSINodeStrategy(BuiltinStrategy):
    """CSINodes."""

    returns_deleted = True
    unconditional_update = False
    check = staticmethod(rules.validate_csi_node)


class CSIStorageCapacityStrategy(BuiltinStrategy):
    """CSIStorageCapacities."""

    unconditional_update = False


class VolumeAttachmentStrategy(BuiltinStrategy):
    """VolumeAttachments."""

    returns_deleted = True
    unconditional_update = False
    status_reset_fields = ("metadata", "spec")
    check = staticmethod(rules.validate_volume_attachment)


class VolumeAttributesClassStrategy(BuiltinStrategy):
    """VolumeAttributesClasses."""

    returns_deleted = True
