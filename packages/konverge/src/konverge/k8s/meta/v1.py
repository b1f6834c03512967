"""What the APIs share, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from konverge.objects.metadata import ListMeta
from konverge.objects.models import Model, field

__all__ = [
    "DeleteOptions",
    "FieldSelectorRequirement",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Preconditions",
    "Status",
    "StatusCause",
    "StatusDetails",
]


class DeleteOptions(Model):
    """DeleteOptions may be provided when deleting an API object."""

    api_version: str | None = None
    """APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized
    schemas to the latest internal value, and may reject unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """

    dry_run: list[str] = field(default_factory=list)
    """When present, indicates that modifications should not be persisted. An invalid or unrecognized dryRun directive
    will result in an error response and no further processing of the request. Valid values are: - All: all dry run
    stages will be processed
    """

    grace_period_seconds: int | None = None
    """The duration in seconds before the object should be deleted. Value must be non-negative integer. The value zero
    indicates delete immediately. If this value is nil, the default grace period for the specified type will be
    used. Defaults to a per object value if not specified. zero means delete immediately.
    """

    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    """if set to true, it will trigger an unsafe deletion of the resource in case the normal deletion flow fails with a
    corrupt object error. A resource is considered corrupt if it can not be retrieved from the underlying storage
    successfully because of a) its data can not be transformed e.g. decryption failure, or b) it fails to decode
    into an object. NOTE: unsafe deletion ignores finalizer constraints, skips precondition checks, and removes the
    object from the storage. WARNING: This may potentially break the cluster if the workload associated with the
    resource being unsafe-deleted relies on normal deletion flow. Use only if you REALLY know what you are doing.
    The default value is false, and the user must opt in to enable it
    """

    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may infer this from the
    endpoint the client submits requests to. Cannot be updated. In CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """

    orphan_dependents: bool | None = None
    """Deprecated: please use the PropagationPolicy, this field will be deprecated in 1.7. Should the dependent objects
    be orphaned. If true/false, the "orphan" finalizer will be added to/removed from the object's finalizers list.
    Either this field or PropagationPolicy may be set, but not both.
    """

    preconditions: Preconditions | None = None
    """Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict status will be returned."""

    propagation_policy: str | None = None
    """Whether and how garbage collection will be performed. Either this field or OrphanDependents may be set, but not
    both. The default policy is decided by the existing finalizer set in the metadata.finalizers and the
    resource-specific default policy. Acceptable values are: 'Orphan' - orphan the dependents; 'Background' - allow
    the garbage collector to delete the dependents in the background; 'Foreground' - a cascading policy that deletes
    all dependents in the foreground.
    """


class FieldSelectorRequirement(Model):
    """FieldSelectorRequirement is a selector that contains values, a key, and an operator that relates the key and
    values.
    """

    key: str
    """key is the field selector key that the requirement applies to."""

    operator: str
    """operator represents a key's relationship to a set of values. Valid operators are In, NotIn, Exists,
    DoesNotExist. The list of operators may grow in the future.
    """

    values: list[str] = field(default_factory=list)
    """values is an array of string values. If the operator is In or NotIn, the values array must be non-empty. If the
    operator is Exists or DoesNotExist, the values array must be empty.
    """


class LabelSelector(Model):
    """A label selector is a label query over a set of resources. The result of matchLabels and matchExpressions are
    ANDed. An empty label selector matches all objects. A null label selector matches no objects.
    """

    match_expressions: list[LabelSelectorRequirement] = field(default_factory=list)
    """matchExpressions is a list of label selector requirements. The requirements are ANDed."""

    match_labels: dict[str, str] = field(default_factory=dict)
    """matchLabels is a map of {key,value} pairs. A single {key,value} in the matchLabels map is equivalent to an
    element of matchExpressions, whose key field is "key", the operator is "In", and the values array contains only
    "value". The requirements are ANDed.
    """


class LabelSelectorRequirement(Model):
    """A label selector requirement is a selector that contains values, a key, and an operator that relates the key and
    values.
    """

    key: str
    """key is the label key that the selector applies to."""

    operator: str
    """operator represents a key's relationship to a set of values. Valid operators are In, NotIn, Exists and
    DoesNotExist.
    """

    values: list[str] = field(default_factory=list)
    """values is an array of string values. If the operator is In or NotIn, the values array must be non-empty. If the
    operator is Exists or DoesNotExist, the values array must be empty. This array is replaced during a strategic
    merge patch.
    """


class Preconditions(Model):
    """Preconditions must be fulfilled before an operation (update, delete, etc.) is carried out."""

    resource_version: str | None = None
    """Specifies the target ResourceVersion"""

    uid: str | None = None
    """Specifies the target UID."""


class Status(Model):
    """Status is a return value for calls that don't return other objects."""

    api_version: str | None = None
    """APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized
    schemas to the latest internal value, and may reject unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """

    code: int | None = None
    """Suggested HTTP return code for this status, 0 if not set."""

    details: StatusDetails | None = None
    """Extended data associated with the reason. Each reason may define its own extended details. This field is
    optional and the data returned is not guaranteed to conform to any schema except that defined by the reason
    type.
    """

    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may infer this from the
    endpoint the client submits requests to. Cannot be updated. In CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """

    message: str | None = None
    """A human-readable description of the status of this operation."""

    metadata: ListMeta | None = None
    """Standard list metadata. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """

    reason: str | None = None
    """A machine-readable description of why this operation is in the "Failure" status. If this value is empty there is
    no information available. A Reason clarifies an HTTP status code but does not override it.
    """

    status: str | None = None
    """Status of the operation. One of: "Success" or "Failure". More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    """


class StatusCause(Model):
    """StatusCause provides more information about an api.Status failure, including cases when multiple errors are
    encountered.
    """

    field_: str | None = None
    """The field of the resource that has caused this error, as named by its JSON serialization. May include dot and
    postfix notation for nested attributes. Arrays are zero-indexed. Fields may appear more than once in an array of
    causes due to fields having multiple errors. Optional.
    """

    message: str | None = None
    """A human-readable description of the cause of the error. This field may be presented as-is to a reader."""

    reason: str | None = None
    """A machine-readable description of the cause of the error. If this value is empty there is no information
    available.
    """


class StatusDetails(Model):
    """StatusDetails is a set of additional properties that MAY be set by the server to provide additional information
    about a response. The Reason field of a Status object defines what attributes will be set. Clients must ignore
    fields that do not match the defined type of each attribute, and should assume that any attribute may be empty,
    invalid, or under defined.
    """

    causes: list[StatusCause] = field(default_factory=list)
    """The Causes array includes more details associated with the StatusReason failure. Not all StatusReasons may
    provide detailed causes.
    """

    group: str | None = None
    """The group attribute of the resource associated with the status StatusReason."""

    kind: str | None = None
    """The kind attribute of the resource associated with the status StatusReason. On some operations may differ from
    the requested resource Kind. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """

    name: str | None = None
    """The name attribute of the resource associated with the status StatusReason (when there is a single name which
    can be described).
    """

    retry_after_seconds: int | None = None
    """If specified, the time in seconds before the operation should be retried. Some errors may indicate the client
    must take an alternate action - for those errors this field may indicate how long to wait before taking the
    alternate action.
    """

    uid: str | None = None
    """UID of the resource. (when there is a single resource which can be described). More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids
    """
