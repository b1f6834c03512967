"""The annotations and finalizers by which the volume controllers, a provisioner and the scheduler work together."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BETA_CLASS",
    "BETA_STORAGE_PROVISIONER",
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "CLAIM_PROTECTION",
    "DEFAULT_CLASS",
    "NO_PROVISIONER",
    "PRE_RESIZE_CAPACITY",
    "PROVISIONED_BY",
    "SELECTED_NODE",
    "STORAGE_PROVISIONER",
    "VOLUME_PROTECTION",
]

BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The class of a claim or volume, in the form that precedes `storageClassName`."""
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes are created by hand."""
PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
