"""The API resource.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from konverge.k8s.core.v1 import NodeSelector
from konverge.objects.conditions import Condition
from konverge.objects.kinds import Kind, Scope
from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, field
from konverge.objects.quantities import QuantityText
from konverge.objects.resources import Resource

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CELDeviceSelector",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceCounterConsumption",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSelector",
    "DeviceSubRequest",
    "DeviceTaint",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "NodeAllocatableResourceMapping",
    "OpaqueDeviceConfiguration",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


class AllocatedDeviceStatus(Model):
    """AllocatedDeviceStatus contains the status of an allocated device, if the driver chooses to report it. This may
    include driver-specific information.
    """

    conditions: list[Condition] = field(default_factory=list)
    """Conditions contains the latest observation of the device's state. If the device has been configured according to
    the class and claim config references, the `Ready` condition should be True.
    """

    data: dict[str, Any] | None = None
    """Data contains arbitrary driver-specific data."""

    device: str
    """Device references one device instance via its name in the driver's resource pool. It must be a DNS label."""

    driver: str
    """Driver specifies the name of the DRA driver whose kubelet plugin should be invoked to process the allocation
    once the claim is needed on a node.
    """

    network_data: NetworkDeviceData | None = None
    """NetworkData contains network-related information specific to the device."""

    pool: str
    """This name together with the driver name and the device name field identify which device was allocated (`<driver
    name>/<pool name>/<device name>`).
    """

    share_id: str | None = field(default=None, name="shareID")
    """ShareID uniquely identifies an individual allocation share of the device."""


class AllocationResult(Model):
    """AllocationResult contains attributes of an allocated resource."""

    allocation_timestamp: datetime | None = None
    """AllocationTimestamp stores the time when the resources were allocated. This field is not guaranteed to be set,
    in which case that time is unknown.
    """

    devices: DeviceAllocationResult | None = None
    """Devices is the result of allocating devices."""

    node_selector: NodeSelector | None = None
    """NodeSelector defines where the allocated resources are available. If unset, they are available everywhere."""


class CELDeviceSelector(Model):
    """CELDeviceSelector contains a CEL expression for selecting a device."""

    expression: str
    """Expression is a CEL expression which evaluates a single device. It must evaluate to true when the device under
    consideration satisfies the desired criteria, and false when it does not. Any other result is an error and
    causes allocation of devices to abort.
    """


class CapacityRequestPolicy(Model):
    """CapacityRequestPolicy defines how requests consume device capacity."""

    default: QuantityText | None = None
    """Default specifies how much of this capacity is consumed by a request that does not contain an entry for it in
    DeviceRequest's Capacity.
    """

    valid_range: CapacityRequestPolicyRange | None = None
    """ValidRange defines an acceptable quantity value range in consuming requests."""

    valid_values: list[QuantityText] = field(default_factory=list)
    """ValidValues defines a set of acceptable quantity values in consuming requests."""


class CapacityRequestPolicyRange(Model):
    """CapacityRequestPolicyRange defines a valid range for consumable capacity values."""

    max: QuantityText | None = None
    """Max defines the upper limit for capacity that can be requested."""

    min: QuantityText
    """Min specifies the minimum capacity allowed for a consumption request."""

    step: QuantityText | None = None
    """Step defines the step size between valid capacity amounts within the range."""


class CapacityRequirements(Model):
    """CapacityRequirements defines the capacity requirements for a specific device request."""

    requests: dict[str, QuantityText] = field(default_factory=dict)
    """Requests represent individual device resource requests for distinct resources, all of which must be provided by
    the device.
    """


class Counter(Model):
    """Counter describes a quantity associated with a device."""

    value: QuantityText
    """Value defines how much of a certain device counter is available."""


class CounterSet(Model):
    """CounterSet defines a named set of counters that are available to be used by devices defined in the
    ResourcePool.
    """

    counters: dict[str, Counter] = field(default_factory=dict)
    """Counters defines the set of counters for this CounterSet The name of each counter must be unique in that set and
    must be a DNS label.
    """

    name: str
    """Name defines the name of the counter set. It must be a DNS label."""


class Device(Model):
    """Device represents one individual hardware instance that can be selected based on its attributes. Besides the
    name, exactly one field must be set.
    """

    all_nodes: bool | None = None
    """AllNodes indicates that all nodes have access to the device."""

    allow_multiple_allocations: bool | None = None
    """AllowMultipleAllocations marks whether the device is allowed to be allocated to multiple DeviceRequests."""

    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    """Attributes defines the set of attributes for this device. The name of each attribute must be unique in that
    set.
    """

    binding_conditions: list[str] = field(default_factory=list)
    """BindingConditions defines the conditions for proceeding with binding. All of these conditions must be set in the
    per-device status conditions with a value of True to proceed with binding the pod to the node while scheduling
    the pod.
    """

    binding_failure_conditions: list[str] = field(default_factory=list)
    """BindingFailureConditions defines the conditions for binding failure. They may be set in the per-device status
    conditions. If any is set to "True", a binding failure occurred.
    """

    binds_to_node: bool | None = None
    """BindsToNode indicates if the usage of an allocation involving this device has to be limited to exactly the node
    that was chosen when allocating the claim. If set to true, the scheduler will set the
    ResourceClaim.Status.Allocation.NodeSelector to match the node where the allocation was made.
    """

    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    """Capacity defines the set of capacities for this device. The name of each capacity must be unique in that
    set.
    """

    consumes_counters: list[DeviceCounterConsumption] = field(default_factory=list)
    """ConsumesCounters defines a list of references to sharedCounters and the set of counters that the device will
    consume from those counter sets.
    """

    name: str
    """Name is unique identifier among all devices managed by the driver in the pool. It must be a DNS label."""

    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = field(default_factory=dict)
    """NodeAllocatableResourceMappings defines the mapping of node resources that are managed by the DRA driver
    exposing this device. This includes resources currently reported in v1.Node `status.allocatable` that are not
    extended resources (see
    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources). Examples
    include "cpu", "memory", "ephemeral-storage", and hugepages. In addition to standard requests made through the
    Pod `spec`, these resources can also be requested through claims and allocated by the DRA driver. For example, a
    CPU DRA driver might allocate exclusive CPUs or auxiliary node memory dependencies of an accelerator device. The
    keys of this map are the node-allocatable resource names (e.g., "cpu", "memory"). Extended resource names are
    not permitted as keys.
    """

    node_name: str | None = None
    """NodeName identifies the node where the device is available."""

    node_selector: NodeSelector | None = None
    """NodeSelector defines the nodes where the device is available."""

    taints: list[DeviceTaint] = field(default_factory=list)
    """If specified, these are the driver-defined taints."""


class DeviceAllocationConfiguration(Model):
    """DeviceAllocationConfiguration gets embedded in an AllocationResult."""

    opaque: OpaqueDeviceConfiguration | None = None
    """Opaque provides driver-specific configuration parameters."""

    requests: list[str] = field(default_factory=list)
    """Requests lists the names of requests where the configuration applies. If empty, its applies to all requests."""

    source: str
    """Source records whether the configuration comes from a class and thus is not something that a normal user would
    have been able to set or from a claim.

    One of `FromClaim`, `FromClass`.
    """


class DeviceAllocationResult(Model):
    """DeviceAllocationResult is the result of allocating devices."""

    config: list[DeviceAllocationConfiguration] = field(default_factory=list)
    """This field is a combination of all the claim and class configuration parameters. Drivers can distinguish between
    those based on a flag.
    """

    results: list[DeviceRequestAllocationResult] = field(default_factory=list)
    """Results lists all allocated devices."""


class DeviceAttribute(Model):
    """DeviceAttribute must have exactly one field set."""

    bool_: bool | None = None
    """BoolValue is a true/false value."""

    bools: list[bool] = field(default_factory=list)
    """BoolValues is a non-empty list of true/false values."""

    int_: int | None = None
    """IntValue is a number."""

    ints: list[int] = field(default_factory=list)
    """IntValues is a non-empty list of numbers."""

    string: str | None = None
    """StringValue is a string. Must not be longer than 64 characters."""

    strings: list[str] = field(default_factory=list)
    """StringValues is a non-empty list of strings. Each string must not be longer than 64 characters."""

    version: str | None = None
    """VersionValue is a semantic version according to semver.org spec 2.0.0. Must not be longer than 64
    characters.
    """

    versions: list[str] = field(default_factory=list)
    """VersionValues is a non-empty list of semantic versions according to semver.org spec 2.0.0. Each version string
    must not be longer than 64 characters.
    """


class DeviceCapacity(Model):
    """DeviceCapacity describes a quantity associated with a device."""

    request_policy: CapacityRequestPolicy | None = None
    """RequestPolicy defines how this DeviceCapacity must be consumed when the device is allowed to be shared by
    multiple allocations.
    """

    value: QuantityText
    """Value defines how much of a certain capacity that device has."""


class DeviceClaim(Model):
    """DeviceClaim defines how to request devices with a ResourceClaim."""

    config: list[DeviceClaimConfiguration] = field(default_factory=list)
    """This field holds configuration for multiple potential drivers which could satisfy requests in this claim. It is
    ignored while allocating the claim.
    """

    constraints: list[DeviceConstraint] = field(default_factory=list)
    """These constraints must be satisfied by the set of devices that get allocated for the claim."""

    requests: list[DeviceRequest] = field(default_factory=list)
    """Requests represent individual requests for distinct devices which must all be satisfied. If empty, nothing needs
    to be allocated.
    """


class DeviceClaimConfiguration(Model):
    """DeviceClaimConfiguration is used for configuration parameters in DeviceClaim."""

    opaque: OpaqueDeviceConfiguration | None = None
    """Opaque provides driver-specific configuration parameters."""

    requests: list[str] = field(default_factory=list)
    """Requests lists the names of requests where the configuration applies. If empty, it applies to all requests."""


class DeviceClassConfiguration(Model):
    """DeviceClassConfiguration is used in DeviceClass."""

    opaque: OpaqueDeviceConfiguration | None = None
    """Opaque provides driver-specific configuration parameters."""


class DeviceClassSpec(Model):
    """DeviceClassSpec is used in a [DeviceClass] to define what can be allocated and how to configure it."""

    config: list[DeviceClassConfiguration] = field(default_factory=list)
    """Config defines configuration parameters that apply to each device that is claimed via this class. Some classses
    may potentially be satisfied by multiple drivers, so each instance of a vendor configuration applies to exactly
    one driver.
    """

    extended_resource_name: str | None = None
    """ExtendedResourceName is the extended resource name for the devices of this class. The devices of this class can
    be used to satisfy a pod's extended resource requests. It has the same format as the name of a pod's extended
    resource. It should be unique among all the device classes in a cluster. If two device classes have the same
    name, then the class created later is picked to satisfy a pod's extended resource requests. If two classes are
    created at the same time, then the name of the class lexicographically sorted first is picked.
    """

    selectors: list[DeviceSelector] = field(default_factory=list)
    """Each selector must be satisfied by a device which is claimed via this class."""


class DeviceConstraint(Model):
    """DeviceConstraint must have exactly one field set besides Requests."""

    distinct_attribute: str | None = None
    """DistinctAttribute requires that all devices in question have this attribute and that its type and value are
    unique across those devices.
    """

    match_attribute: str | None = None
    """MatchAttribute requires that all devices in question have this attribute and that its type and value are the
    same across those devices.
    """

    requests: list[str] = field(default_factory=list)
    """Requests is a list of the one or more requests in this claim which must co-satisfy this constraint. If a request
    is fulfilled by multiple devices, then all of the devices must satisfy the constraint. If this is not specified,
    this constraint applies to all requests in this claim.
    """


class DeviceCounterConsumption(Model):
    """DeviceCounterConsumption defines a set of counters that a device will consume from a CounterSet."""

    counter_set: str
    """CounterSet is the name of the set from which the counters defined will be consumed."""

    counters: dict[str, Counter] = field(default_factory=dict)
    """Counters defines the counters that will be consumed by the device."""


class DeviceRequest(Model):
    """DeviceRequest is a request for devices required for a claim. This is typically a request for a single resource
    like a device, but can also ask for several identical devices. With FirstAvailable it is also possible to
    provide a prioritized list of requests.
    """

    exactly: ExactDeviceRequest | None = None
    """Exactly specifies the details for a single request that must be met exactly for the request to be satisfied."""

    first_available: list[DeviceSubRequest] = field(default_factory=list)
    """FirstAvailable contains subrequests, of which exactly one will be selected by the scheduler. It tries to satisfy
    them in the order in which they are listed here. So if there are two entries in the list, the scheduler will
    only check the second one if it determines that the first one can not be used.
    """

    name: str
    """Name can be used to reference this request in a pod.spec.containers[].resources.claims entry and in a constraint
    of the claim.
    """


class DeviceRequestAllocationResult(Model):
    """DeviceRequestAllocationResult contains the allocation result for one request."""

    admin_access: bool | None = None
    """AdminAccess indicates that this device was allocated for administrative access. See the corresponding request
    field for a definition of mode.
    """

    binding_conditions: list[str] = field(default_factory=list)
    """BindingConditions contains a copy of the BindingConditions from the corresponding ResourceSlice at the time of
    allocation.
    """

    binding_failure_conditions: list[str] = field(default_factory=list)
    """BindingFailureConditions contains a copy of the BindingFailureConditions from the corresponding ResourceSlice at
    the time of allocation.
    """

    consumed_capacity: dict[str, QuantityText] = field(default_factory=dict)
    """ConsumedCapacity tracks the amount of capacity consumed per device as part of the claim request. The consumed
    amount may differ from the requested amount: it is rounded up to the nearest valid value based on the device’s
    requestPolicy if applicable (i.e., may not be less than the requested amount).
    """

    device: str
    """Device references one device instance via its name in the driver's resource pool. It must be a DNS label."""

    driver: str
    """Driver specifies the name of the DRA driver whose kubelet plugin should be invoked to process the allocation
    once the claim is needed on a node.
    """

    pool: str
    """This name together with the driver name and the device name field identify which device was allocated (`<driver
    name>/<pool name>/<device name>`).
    """

    request: str
    """Request is the name of the request in the claim which caused this device to be allocated. If it references a
    subrequest in the firstAvailable list on a DeviceRequest, this field must include both the name of the main
    request and the subrequest using the format <main request>/<subrequest>.
    """

    share_id: str | None = field(default=None, name="shareID")
    """ShareID uniquely identifies an individual allocation share of the device, used when the device supports multiple
    simultaneous allocations. It serves as an additional map key to differentiate concurrent shares of the same
    device.
    """

    tolerations: list[DeviceToleration] = field(default_factory=list)
    """A copy of all tolerations specified in the request at the time when the device got allocated."""


class DeviceSelector(Model):
    """DeviceSelector must have exactly one field set."""

    cel: CELDeviceSelector | None = None
    """CEL contains a CEL expression for selecting a device."""


class DeviceSubRequest(Model):
    """DeviceSubRequest describes a request for device provided in the claim.spec.devices.requests[].firstAvailable
    array. Each is typically a request for a single resource like a device, but can also ask for several identical
    devices.
    """

    allocation_mode: str | None = None
    """AllocationMode and its related fields define how devices are allocated to satisfy this subrequest. Supported
    values are:

    One of `All`, `ExactCount`.
    """

    capacity: CapacityRequirements | None = None
    """Capacity define resource requirements against each capacity."""

    count: int | None = None
    """Count is used only when the count mode is "ExactCount". Must be greater than zero. If AllocationMode is
    ExactCount and this field is not specified, the default is one.
    """

    device_class_name: str
    """DeviceClassName references a specific DeviceClass, which can define additional configuration and selectors to be
    inherited by this subrequest.
    """

    name: str
    """Name can be used to reference this subrequest in the list of constraints or the list of configurations for the
    claim. References must use the format <main request>/<subrequest>.
    """

    selectors: list[DeviceSelector] = field(default_factory=list)
    """Selectors define criteria which must be satisfied by a specific device in order for that device to be considered
    for this subrequest. All selectors must be satisfied for a device to be considered.
    """

    tolerations: list[DeviceToleration] = field(default_factory=list)
    """If specified, the request's tolerations."""


class DeviceTaint(Model):
    """The device this taint is attached to has the "effect" on any claim which does not tolerate the taint and,
    through the claim, to pods using the claim.
    """

    effect: str
    """The effect of the taint on claims that do not tolerate the taint and through such claims on the pods using
    them.

    One of `NoExecute`, `NoSchedule`, `None`.
    """

    key: str
    """The taint key to be applied to a device. Must be a label name."""

    time_added: datetime | None = None
    """TimeAdded represents the time at which the taint was added or (only in a DeviceTaintRule) the effect was
    modified. Added automatically during create or update if not set.
    """

    value: str | None = None
    """The taint value corresponding to the taint key. Must be a label value."""


class DeviceToleration(Model):
    """The ResourceClaim this DeviceToleration is attached to tolerates any taint that matches the triple
    <key,value,effect> using the matching operator <operator>.
    """

    effect: str | None = None
    """Effect indicates the taint effect to match. Empty means match all taint effects. When specified, allowed values
    are NoSchedule and NoExecute.

    One of `NoExecute`, `NoSchedule`, `None`.
    """

    key: str | None = None
    """Key is the taint key that the toleration applies to. Empty means match all taint keys. If the key is empty,
    operator must be Exists; this combination means to match all values and all keys. Must be a label name.
    """

    operator: str | None = None
    """Operator represents a key's relationship to the value. Valid operators are Exists and Equal. Defaults to Equal.
    Exists is equivalent to wildcard for value, so that a ResourceClaim can tolerate all taints of a particular
    category.

    One of `Equal`, `Exists`.
    """

    toleration_seconds: int | None = None
    """TolerationSeconds represents the period of time the toleration (which must be of effect NoExecute, otherwise
    this field is ignored) tolerates the taint. By default, it is not set, which means tolerate the taint forever
    (do not evict). Zero and negative values will be treated as 0 (evict immediately) by the system. If larger than
    zero, the time when the pod needs to be evicted is calculated as <time when taint was adedd> + <toleration
    seconds>.
    """

    value: str | None = None
    """Value is the taint value the toleration matches to. If the operator is Exists, the value must be empty,
    otherwise just a regular string. Must be a label value.
    """


class ExactDeviceRequest(Model):
    """ExactDeviceRequest is a request for one or more identical devices."""

    admin_access: bool | None = None
    """AdminAccess indicates that this is a claim for administrative access to the device(s). Claims with AdminAccess
    are expected to be used for monitoring or other management services for a device. They ignore all ordinary
    claims to the device with respect to access modes and any resource allocations.
    """

    allocation_mode: str | None = None
    """AllocationMode and its related fields define how devices are allocated to satisfy this request. Supported values
    are:

    One of `All`, `ExactCount`.
    """

    capacity: CapacityRequirements | None = None
    """Capacity define resource requirements against each capacity."""

    count: int | None = None
    """Count is used only when the count mode is "ExactCount". Must be greater than zero. If AllocationMode is
    ExactCount and this field is not specified, the default is one.
    """

    device_class_name: str
    """DeviceClassName references a specific DeviceClass, which can define additional configuration and selectors to be
    inherited by this request.
    """

    selectors: list[DeviceSelector] = field(default_factory=list)
    """Selectors define criteria which must be satisfied by a specific device in order for that device to be considered
    for this request. All selectors must be satisfied for a device to be considered.
    """

    tolerations: list[DeviceToleration] = field(default_factory=list)
    """If specified, the request's tolerations."""


class NetworkDeviceData(Model):
    """NetworkDeviceData provides network-related details for the allocated device. This information may be filled by
    drivers or other components to configure or identify the device within a network context.
    """

    hardware_address: str | None = None
    """HardwareAddress represents the hardware address (e.g. MAC Address) of the device's network interface."""

    interface_name: str | None = None
    """InterfaceName specifies the name of the network interface associated with the allocated device. This might be
    the name of a physical or virtual network interface being configured in the pod.
    """

    ips: list[str] = field(default_factory=list)
    """IPs lists the network addresses assigned to the device's network interface. This can include both IPv4 and IPv6
    addresses. The IPs are in the CIDR notation, which includes both the address and the associated subnet mask.
    e.g.: "192.0.2.5/24" for IPv4 and "2001:db8::5/64" for IPv6.
    """


class NodeAllocatableResourceMapping(Model):
    """NodeAllocatableResourceMapping defines the translation between the DRA device/capacity units requested to the
    corresponding quantity of the node allocatable resource.
    """

    allocation_multiplier: QuantityText | None = None
    """AllocationMultiplier is used as a multiplier for the allocated device count or the allocated capacity in the
    claim. It defaults to 1 if not specified. How the field is used also depends on whether `capacityKey` is set. 1.
    If `capacityKey` is NOT set: `allocationMultiplier` multiplies the device count allocated to the claim. a. A DRA
    driver representing each CPU core as a device would have {ResourceName: "cpu", allocationMultiplier: "2"} in its
    `nodeAllocatableResourceMappings`. If 4 devices are allocated to the claim, 4 * 2 CPUs would be considered as
    allocated and subtracted from the node's capacity. b. A GPU device that needs additional node memory per GPU
    allocation would have {ResourceName: "memory", allocationMultiplier: "2Gi"}. Each allocated GPU device instance
    of this type will account for 2Gi of memory.
    """

    capacity_key: str | None = None
    """CapacityKey references a capacity name defined as a key in the `spec.devices[*].capacity` map. When this field
    is set, the value associated with this key in the `status.allocation.devices.results[*].consumedCapacity` map
    (for a specific claim allocation) determines the base quantity for the node allocatable resource. If
    `allocationMultiplier` is also set, it is multiplied with the base quantity. For example, if
    `spec.devices[*].capacity` has an entry "dra.example.com/memory": "128Gi", and this field is set to
    "dra.example.com/memory", then for a claim allocation that consumes { "dra.example.com/memory": "4Gi" } the base
    quantity for the node allocatable resource mapping will be "4Gi", and `allocationMultiplier` should be omitted
    or set to "1".
    """


class OpaqueDeviceConfiguration(Model):
    """OpaqueDeviceConfiguration contains configuration parameters for a driver in a format defined by the driver
    vendor.
    """

    driver: str
    """Driver is used to determine which kubelet plugin needs to be passed these configuration parameters."""

    parameters: dict[str, Any]
    """Parameters can contain arbitrary data. It is the responsibility of the driver developer to handle validation and
    versioning. Typically this includes self-identification and a version ("kind" + "apiVersion" for Kubernetes
    types), with conversion between different versions.
    """


class ResourceClaimConsumerReference(Model):
    """ResourceClaimConsumerReference contains enough information to let you locate the consumer of a ResourceClaim.
    The user must be a resource in the same namespace as the ResourceClaim.
    """

    api_group: str | None = None
    """APIGroup is the group for the resource being referenced. It is empty for the core API. This matches the group in
    the APIVersion that is used when creating the resources.
    """

    name: str
    """Name is the name of resource being referenced."""

    resource: str
    """Resource is the type of resource being referenced, for example "pods"."""

    uid: str
    """UID identifies exactly one incarnation of the resource."""


class ResourceClaimSpec(Model):
    """ResourceClaimSpec defines what is being requested in a ResourceClaim and how to configure it."""

    devices: DeviceClaim | None = None
    """Devices defines how to request devices."""


class ResourceClaimStatus(Model):
    """ResourceClaimStatus tracks whether the resource has been allocated and what the result of that was."""

    allocation: AllocationResult | None = None
    """Allocation is set once the claim has been allocated successfully."""

    devices: list[AllocatedDeviceStatus] = field(default_factory=list)
    """Devices contains the status of each device allocated for this claim, as reported by the driver. This can include
    driver-specific information. Entries are owned by their respective drivers.
    """

    reserved_for: list[ResourceClaimConsumerReference] = field(default_factory=list)
    """ReservedFor indicates which entities are currently allowed to use the claim. A Pod which references a
    ResourceClaim which is not reserved for that Pod will not be started. A claim that is in use or might be in use
    because it has been reserved must not get deallocated.
    """


class ResourceClaimTemplateSpec(Model):
    """ResourceClaimTemplateSpec contains the metadata and fields for a ResourceClaim."""

    metadata: ObjectMeta | None = None
    """ObjectMeta may contain labels and annotations that will be copied into the ResourceClaim when creating it. No
    other fields are allowed and will be rejected during validation.
    """

    spec: ResourceClaimSpec
    """Spec for the ResourceClaim. The entire content is copied unchanged into the ResourceClaim that gets created from
    this template. The same fields as in a ResourceClaim are also valid here.
    """


class ResourcePool(Model):
    """ResourcePool describes the pool that ResourceSlices belong to."""

    generation: int
    """Generation tracks the change in a pool over time. Whenever a driver changes something about one or more of the
    resources in a pool, it must change the generation in all ResourceSlices which are part of that pool. Consumers
    of ResourceSlices should only consider resources from the pool with the highest generation number. The
    generation may be reset by drivers, which should be fine for consumers, assuming that all ResourceSlices in a
    pool are updated to match or deleted.
    """

    name: str
    """Name is used to identify the pool. For node-local devices, this is often the node name, but this is not
    required.
    """

    resource_slice_count: int
    """ResourceSliceCount is the total number of ResourceSlices in the pool at this generation number. Must be greater
    than zero.
    """


class ResourceSliceSpec(Model):
    """ResourceSliceSpec contains the information published by the driver in one ResourceSlice."""

    all_nodes: bool | None = None
    """AllNodes indicates that all nodes have access to the resources in the pool."""

    devices: list[Device] = field(default_factory=list)
    """Devices lists some or all of the devices in this pool."""

    driver: str
    """Driver identifies the DRA driver providing the capacity information. A field selector can be used to list only
    ResourceSlice objects with a certain driver name.
    """

    node_name: str | None = None
    """NodeName identifies the node which provides the resources in this pool. A field selector can be used to list
    only ResourceSlice objects belonging to a certain node.
    """

    node_selector: NodeSelector | None = None
    """NodeSelector defines which nodes have access to the resources in the pool, when that pool is not limited to a
    single node.
    """

    per_device_node_selection: bool | None = None
    """PerDeviceNodeSelection defines whether the access from nodes to resources in the pool is set on the
    ResourceSlice level or on each device. If it is set to true, every device defined the ResourceSlice must specify
    this individually.
    """

    pool: ResourcePool
    """Pool describes the pool that this ResourceSlice belongs to."""

    shared_counters: list[CounterSet] = field(default_factory=list)
    """SharedCounters defines a list of counter sets, each of which has a name and a list of counters available."""


class DeviceClass(Resource, identity=Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", Scope.CLUSTER)):
    """DeviceClass is a vendor- or admin-provided resource that contains device configuration and selectors. It can be
    referenced in the device requests of a claim to apply these presets. Cluster scoped.
    """

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)
    """Spec defines what can be allocated and how to configure it."""


class ResourceClaim(Resource, identity=Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")):
    """ResourceClaim describes a request for access to resources in the cluster, for use by workloads. For example, if
    a workload needs an accelerator device with specific properties, this is how that request is expressed. The
    status stanza tracks whether this claim has been satisfied and what specific resources have been allocated.
    """

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    """Spec describes what is being requested and how to configure it. The spec is immutable."""

    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)
    """Status describes whether the claim is ready to use and what has been allocated."""


class ResourceClaimTemplate(
    Resource, identity=Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
):
    """ResourceClaimTemplate is used to produce ResourceClaim objects."""

    spec: ResourceClaimTemplateSpec
    """Describes the ResourceClaim that is to be generated."""


class ResourceSlice(Resource, identity=Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", Scope.CLUSTER)):
    """ResourceSlice represents one or more resources in a pool of similar resources, managed by a common driver. A
    pool may span more than one ResourceSlice, and exactly how many ResourceSlices comprise a pool is determined by
    the driver.
    """

    spec: ResourceSliceSpec
    """Contains the information published by the driver."""
