"""The API storage.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime

from konverge.k8s.core.v1 import PersistentVolumeSpec, TopologySelectorTerm
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects.kinds import Kind, Scope
from konverge.objects.models import Model, field
from konverge.objects.quantities import QuantityText
from konverge.objects.resources import Resource

__all__ = [
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSIStorageCapacity",
    "StorageClass",
    "TokenRequest",
    "VolumeAttachment",
    "VolumeAttachmentSource",
    "VolumeAttachmentSpec",
    "VolumeAttachmentStatus",
    "VolumeAttributesClass",
    "VolumeError",
    "VolumeNodeResources",
]


class CSIDriverSpec(Model):
    """CSIDriverSpec is the specification of a CSIDriver."""

    attach_required: bool | None = None
    """attachRequired indicates this CSI volume driver requires an attach operation (because it implements the CSI
    ControllerPublishVolume() method), and that the Kubernetes attach detach controller should call the attach
    volume interface which checks the volumeattachment status and waits until the volume is attached before
    proceeding to mounting. The CSI external-attacher coordinates with CSI volume driver and updates the
    volumeattachment status when the attach operation is complete. If the value is specified to false, the attach
    operation will be skipped. Otherwise the attach operation will be called.
    """

    fs_group_policy: str | None = None
    """fsGroupPolicy defines if the underlying volume supports changing ownership and permission of the volume before
    being mounted. Refer to the specific FSGroupPolicy values for additional details.
    """

    node_allocatable_update_period_seconds: int | None = None
    """nodeAllocatableUpdatePeriodSeconds specifies the interval between periodic updates of the CSINode allocatable
    capacity for this driver. When set, both periodic updates and updates triggered by capacity-related failures are
    enabled. If not set, no updates occur (neither periodic nor upon detecting capacity-related failures), and the
    allocatable.count remains static. The minimum allowed value for this field is 10 seconds.
    """

    pod_info_on_mount: bool | None = None
    """podInfoOnMount indicates this CSI volume driver requires additional pod information (like podName, podUID, etc.)
    during mount operations, if set to true. If set to false, pod information will not be passed on mount. Default
    is false.
    """

    prevent_pod_scheduling_if_missing: bool | None = None
    """PreventPodSchedulingIfMissing indicates that the CSI driver wants to prevent pod scheduling if the CSI driver on
    the node is missing.
    """

    requires_republish: bool | None = None
    """requiresRepublish indicates the CSI driver wants `NodePublishVolume` being periodically called to reflect any
    possible change in the mounted volume. This field defaults to false.
    """

    se_linux_mount: bool | None = None
    """seLinuxMount specifies if the CSI driver supports "-o context" mount option."""

    service_account_token_in_secrets: bool | None = None
    """serviceAccountTokenInSecrets is an opt-in for CSI drivers to indicate that service account tokens should be
    passed via the Secrets field in NodePublishVolumeRequest instead of the VolumeContext field. The CSI
    specification provides a dedicated Secrets field for sensitive information like tokens, which is the appropriate
    mechanism for handling credentials. This addresses security concerns where sensitive tokens were being logged as
    part of volume context.
    """

    storage_capacity: bool | None = None
    """storageCapacity indicates that the CSI volume driver wants pod scheduling to consider the storage capacity that
    the driver deployment will report by creating CSIStorageCapacity objects with capacity information, if set to
    true.
    """

    token_requests: list[TokenRequest] = field(default_factory=list)
    """tokenRequests indicates the CSI driver needs pods' service account tokens it is mounting volume for to do
    necessary authentication. Kubelet will pass the tokens in VolumeContext in the CSI NodePublishVolume calls. The
    CSI driver should parse and validate the following VolumeContext: "csi.storage.k8s.io/serviceAccount.tokens": {
    "<audience>": { "token": <token>, "expirationTimestamp": <expiration timestamp in RFC3339>, }, ... }
    """

    volume_lifecycle_modes: list[str] = field(default_factory=list)
    """volumeLifecycleModes defines what kind of volumes this CSI volume driver supports. The default if the list is
    empty is "Persistent", which is the usage defined by the CSI specification and implemented in Kubernetes via the
    usual PV/PVC mechanism.
    """


class CSINodeDriver(Model):
    """CSINodeDriver holds information about the specification of one CSI driver installed on a node"""

    allocatable: VolumeNodeResources | None = None
    """allocatable represents the volume resources of a node that are available for scheduling. This field is beta."""

    name: str
    """name represents the name of the CSI driver that this object refers to. This MUST be the same name returned by
    the CSI GetPluginName() call for that driver.
    """

    node_id: str = field(name="nodeID")
    """nodeID of the node from the driver point of view. This field enables Kubernetes to communicate with storage
    systems that do not share the same nomenclature for nodes. For example, Kubernetes may refer to a given node as
    "node1", but the storage system may refer to the same node as "nodeA". When Kubernetes issues a command to the
    storage system to attach a volume to a specific node, it can use this field to refer to the node name using the
    ID that the storage system will understand, e.g. "nodeA" instead of "node1". This field is required.
    """

    topology_keys: list[str] = field(default_factory=list)
    """topologyKeys is the list of keys supported by the driver. When a driver is initialized on a cluster, it provides
    a set of topology keys that it understands (e.g. "company.com/zone", "company.com/region"). When a driver is
    initialized on a node, it provides the same topology keys along with values. Kubelet will expose these topology
    keys as labels on its own node object. When Kubernetes does topology aware provisioning, it can use this list to
    determine which labels it should retrieve from the node object and pass back to the driver. It is possible for
    different nodes to use different topology keys. This can be empty if driver does not support topology.
    """


class CSINodeSpec(Model):
    """CSINodeSpec holds information about the specification of all CSI drivers installed on a node"""

    drivers: list[CSINodeDriver] = field(default_factory=list)
    """drivers is a list of information of all CSI Drivers existing on a node. If all drivers in the list are
    uninstalled, this can become empty.
    """


class TokenRequest(Model):
    """TokenRequest contains parameters of a service account token."""

    audience: str
    """audience is the intended audience of the token in "TokenRequestSpec". It will default to the audiences of kube
    apiserver.
    """

    expiration_seconds: int | None = None
    """expirationSeconds is the duration of validity of the token in "TokenRequestSpec". It has the same default value
    of "ExpirationSeconds" in "TokenRequestSpec".
    """


class VolumeAttachmentSource(Model):
    """VolumeAttachmentSource represents a volume that should be attached. Right now only PersistentVolumes can be
    attached via external attacher, in the future we may allow also inline volumes in pods. Exactly one member can
    be set.
    """

    inline_volume_spec: PersistentVolumeSpec | None = None
    """inlineVolumeSpec contains all the information necessary to attach a persistent volume defined by a pod's inline
    VolumeSource. This field is populated only for the CSIMigration feature. It contains translated fields from a
    pod's inline VolumeSource to a PersistentVolumeSpec. This field is beta-level and is only honored by servers
    that enabled the CSIMigration feature.
    """

    persistent_volume_name: str | None = None
    """persistentVolumeName represents the name of the persistent volume to attach."""


class VolumeAttachmentSpec(Model):
    """VolumeAttachmentSpec is the specification of a VolumeAttachment request."""

    attacher: str
    """attacher indicates the name of the volume driver that MUST handle this request. This is the name returned by
    GetPluginName().
    """

    node_name: str
    """nodeName represents the node that the volume should be attached to."""

    source: VolumeAttachmentSource
    """source represents the volume that should be attached."""


class VolumeAttachmentStatus(Model):
    """VolumeAttachmentStatus is the status of a VolumeAttachment request."""

    attach_error: VolumeError | None = None
    """attachError represents the last error encountered during attach operation, if any. This field must only be set
    by the entity completing the attach operation, i.e. the external-attacher.
    """

    attached: bool | None = None
    """attached indicates the volume is successfully attached. This field must only be set by the entity completing the
    attach operation, i.e. the external-attacher.
    """

    attachment_metadata: dict[str, str] = field(default_factory=dict)
    """attachmentMetadata is populated with any information returned by the attach operation, upon successful attach,
    that must be passed into subsequent WaitForAttach or Mount calls. This field must only be set by the entity
    completing the attach operation, i.e. the external-attacher.
    """

    detach_error: VolumeError | None = None
    """detachError represents the last error encountered during detach operation, if any. This field must only be set
    by the entity completing the detach operation, i.e. the external-attacher.
    """


class VolumeError(Model):
    """VolumeError captures an error encountered during a volume operation."""

    error_code: int | None = None
    """errorCode is a numeric gRPC code representing the error encountered during Attach or Detach operations."""

    message: str | None = None
    """message represents the error encountered during Attach or Detach operation. This string may be logged, so it
    should not contain sensitive information.
    """

    time: datetime | None = None
    """time represents the time the error was encountered."""


class VolumeNodeResources(Model):
    """VolumeNodeResources is a set of resource limits for scheduling of volumes."""

    count: int | None = None
    """count indicates the maximum number of unique volumes managed by the CSI driver that can be used on a node. A
    volume that is both attached and mounted on a node is considered to be used once, not twice. The same rule
    applies for a unique volume that is shared among multiple pods on the same node. If this field is not specified,
    then the supported number of volumes on this node is unbounded.
    """


class CSIDriver(Resource, identity=Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", Scope.CLUSTER)):
    """CSIDriver captures information about a Container Storage Interface (CSI) volume driver deployed on the cluster.
    Kubernetes attach detach controller uses this object to determine whether attach is required. Kubelet uses this
    object to determine whether pod information needs to be passed on mount. CSIDriver objects are non-namespaced.
    """

    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)
    """spec represents the specification of the CSI Driver."""


class CSINode(Resource, identity=Kind("storage.k8s.io", "v1", "CSINode", "csinodes", Scope.CLUSTER)):
    """CSINode holds information about all CSI drivers installed on a node. CSI drivers do not need to create the
    CSINode object directly. As long as they use the node-driver-registrar sidecar container, the kubelet will
    automatically populate the CSINode object for the CSI driver as part of kubelet plugin registration. CSINode has
    the same name as a node. If the object is missing, it means either there are no CSI Drivers available on the
    node, or the Kubelet version is low enough that it doesn't create this object. CSINode has an OwnerReference
    that points to the corresponding node object.
    """

    spec: CSINodeSpec
    """spec is the specification of CSINode"""


class CSIStorageCapacity(Resource, identity=Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities")):
    """CSIStorageCapacity stores the result of one CSI GetCapacity call. For a given StorageClass, this describes the
    available capacity in a particular topology segment. This can be used when considering where to instantiate new
    PersistentVolumes.
    """

    capacity: QuantityText | None = None
    """capacity is the value reported by the CSI driver in its GetCapacityResponse for a GetCapacityRequest with
    topology and parameters that match the previous fields.
    """

    maximum_volume_size: QuantityText | None = None
    """maximumVolumeSize is the value reported by the CSI driver in its GetCapacityResponse for a GetCapacityRequest
    with topology and parameters that match the previous fields.
    """

    node_topology: LabelSelector | None = None
    """nodeTopology defines which nodes have access to the storage for which capacity was reported. If not set, the
    storage is not accessible from any node in the cluster. If empty, the storage is accessible from all nodes. This
    field is immutable.
    """

    storage_class_name: str
    """storageClassName represents the name of the StorageClass that the reported capacity applies to. It must meet the
    same requirements as the name of a StorageClass object (non-empty, DNS subdomain). If that object no longer
    exists, the CSIStorageCapacity object is obsolete and should be removed by its creator. This field is immutable.
    """


class StorageClass(Resource, identity=Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", Scope.CLUSTER)):
    """StorageClass describes the parameters for a class of storage for which PersistentVolumes can be dynamically
    provisioned.
    """

    allow_volume_expansion: bool | None = None
    """allowVolumeExpansion shows whether the storage class allow volume expand."""

    allowed_topologies: list[TopologySelectorTerm] = field(default_factory=list)
    """allowedTopologies restrict the node topologies where volumes can be dynamically provisioned. Each volume plugin
    defines its own supported topology specifications. An empty TopologySelectorTerm list means there is no topology
    restriction. This field is only honored by servers that enable the VolumeScheduling feature.
    """

    mount_options: list[str] = field(default_factory=list)
    """mountOptions controls the mountOptions for dynamically provisioned PersistentVolumes of this storage class. e.g.
    ["ro", "soft"]. Not validated - mount of the PVs will simply fail if one is invalid.
    """

    parameters: dict[str, str] = field(default_factory=dict)
    """parameters holds the parameters for the provisioner that should create volumes of this storage class."""

    provisioner: str
    """provisioner indicates the type of the provisioner."""

    reclaim_policy: str | None = None
    """reclaimPolicy controls the reclaimPolicy for dynamically provisioned PersistentVolumes of this storage class.
    Defaults to Delete.

    One of `Delete`, `Recycle`, `Retain`.
    """

    volume_binding_mode: str | None = None
    """volumeBindingMode indicates how PersistentVolumeClaims should be provisioned and bound. When unset,
    VolumeBindingImmediate is used. This field is only honored by servers that enable the VolumeScheduling feature.

    One of `Immediate`, `WaitForFirstConsumer`.
    """


class VolumeAttachment(
    Resource, identity=Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", Scope.CLUSTER)
):
    """VolumeAttachment captures the intent to attach or detach the specified volume to/from the specified node."""

    spec: VolumeAttachmentSpec
    """spec represents specification of the desired attach/detach volume behavior. Populated by the Kubernetes
    system.
    """

    status: VolumeAttachmentStatus = field(default_factory=VolumeAttachmentStatus)
    """status represents status of the VolumeAttachment request. Populated by the entity completing the attach or
    detach operation, i.e. the external-attacher.
    """


class VolumeAttributesClass(
    Resource, identity=Kind("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", Scope.CLUSTER)
):
    """VolumeAttributesClass represents a specification of mutable volume attributes defined by the CSI driver. The
    class can be specified during dynamic provisioning of PersistentVolumeClaims, and changed in the
    PersistentVolumeClaim spec after provisioning.
    """

    driver_name: str
    """Name of the CSI driver This field is immutable."""

    parameters: dict[str, str] = field(default_factory=dict)
    """parameters hold volume attributes defined by the CSI driver. These values are opaque to the Kubernetes and are
    passed directly to the CSI driver. The underlying storage provider supports changing these attributes on an
    existing volume, however the parameters field itself is immutable. To invoke a volume update, a new
    VolumeAttributesClass should be created with new parameters, and the PersistentVolumeClaim should be updated to
    reference the new VolumeAttributesClass.
    """
