# ruff: noqa: E501
"""The API apiextensions.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from konverge.objects.kinds import Kind, Scope
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource

__all__ = [
    "CustomResourceColumnDefinition",
    "CustomResourceConversion",
    "CustomResourceDefinition",
    "CustomResourceDefinitionCondition",
    "CustomResourceDefinitionNames",
    "CustomResourceDefinitionSpec",
    "CustomResourceDefinitionStatus",
    "CustomResourceDefinitionVersion",
    "CustomResourceSubresourceScale",
    "CustomResourceSubresources",
    "CustomResourceValidation",
    "SelectableField",
    "ServiceReference",
    "WebhookClientConfig",
    "WebhookConversion",
]


class CustomResourceColumnDefinition(Model):
    """CustomResourceColumnDefinition specifies a column for server side printing."""

    description: str | None = None
    """description is a human readable description of this column."""

    format: str | None = None
    """format is an optional OpenAPI type definition for this column. The 'name' format is applied to the primary
    identifier column to assist in clients identifying column is the resource name. See
    https://github.com/OAI/OpenAPI-Specification/blob/master/versions/2.0.md#data-types for details.
    """

    json_path: str
    """jsonPath is a simple JSON path (i.e. with array notation) which is evaluated against each custom resource to
    produce the value for this column.
    """

    name: str
    """name is a human readable name for the column."""

    priority: int | None = None
    """priority is an integer defining the relative importance of this column compared to others. Lower numbers are
    considered higher priority. Columns that may be omitted in limited space scenarios should be given a priority
    greater than 0.
    """

    type: str
    """type is an OpenAPI type definition for this column. See
    https://github.com/OAI/OpenAPI-Specification/blob/master/versions/2.0.md#data-types for details.
    """


class CustomResourceConversion(Model):
    """CustomResourceConversion describes how to convert different versions of a CR."""

    strategy: str
    """strategy specifies how custom resources are converted between versions. Allowed values are: - `"None"`: The
    converter only change the apiVersion and would not touch any other field in the custom resource. - `"Webhook"`:
    API Server will call to an external webhook to do the conversion. Additional information is needed for this
    option. This requires spec.preserveUnknownFields to be false, and spec.conversion.webhook to be set.
    """

    webhook: WebhookConversion | None = None
    """webhook describes how to call the conversion webhook. Required when `strategy` is set to `"Webhook"`."""


class CustomResourceDefinitionCondition(Model):
    """CustomResourceDefinitionCondition contains details for the current condition of this pod."""

    last_transition_time: datetime | None = None
    """lastTransitionTime last time the condition transitioned from one status to another."""

    message: str | None = None
    """message is a human-readable message indicating details about last transition."""

    observed_generation: int | None = None
    """observedGeneration represents the .metadata.generation that the condition was set based upon. For instance, if
    .metadata.generation is currently 12, but the .status.conditions[x].observedGeneration is 9, the condition is
    out of date with respect to the current state of the instance.
    """

    reason: str | None = None
    """reason is a unique, one-word, CamelCase reason for the condition's last transition."""

    status: str
    """status is the status of the condition. Can be True, False, Unknown."""

    type: str
    """type is the type of the condition. Types include Established, NamesAccepted and Terminating."""


class CustomResourceDefinitionNames(Model):
    """CustomResourceDefinitionNames indicates the names to serve this CustomResourceDefinition"""

    categories: list[str] = field(default_factory=list)
    """categories is a list of grouped resources this custom resource belongs to (e.g. 'all'). This is published in API
    discovery documents, and used by clients to support invocations like `kubectl get all`.
    """

    kind: str
    """kind is the serialized kind of the resource. It is normally CamelCase and singular. Custom resource instances
    will use this value as the `kind` attribute in API calls.
    """

    list_kind: str | None = None
    """listKind is the serialized kind of the list for this resource. Defaults to "`kind`List"."""

    plural: str
    """plural is the plural name of the resource to serve. The custom resources are served under
    `/apis/<group>/<version>/.../<plural>`. Must match the name of the CustomResourceDefinition (in the form
    `<names.plural>.<group>`). Must be all lowercase.
    """

    short_names: list[str] = field(default_factory=list)
    """shortNames are short names for the resource, exposed in API discovery documents, and used by clients to support
    invocations like `kubectl get <shortname>`. It must be all lowercase.
    """

    singular: str | None = None
    """singular is the singular name of the resource. It must be all lowercase. Defaults to lowercased `kind`."""


class CustomResourceDefinitionSpec(Model):
    """CustomResourceDefinitionSpec describes how a user wants their resource to appear"""

    conversion: CustomResourceConversion | None = None
    """conversion defines conversion settings for the CRD."""

    group: str
    """group is the API group of the defined custom resource. The custom resources are served under
    `/apis/<group>/...`. Must match the name of the CustomResourceDefinition (in the form `<names.plural>.<group>`).
    """

    names: CustomResourceDefinitionNames
    """names specify the resource and kind names for the custom resource."""

    preserve_unknown_fields: bool | None = None
    """preserveUnknownFields indicates that object fields which are not specified in the OpenAPI schema should be
    preserved when persisting to storage. apiVersion, kind, metadata and known fields inside metadata are always
    preserved. This field is deprecated in favor of setting `x-preserve-unknown-fields` to true in
    `spec.versions[*].schema.openAPIV3Schema`. See
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
    for details.
    """

    scope: str
    """scope indicates whether the defined custom resource is cluster- or namespace-scoped. Allowed values are
    `Cluster` and `Namespaced`.
    """

    versions: list[CustomResourceDefinitionVersion] = field(default_factory=list)
    """versions is the list of all API versions of the defined custom resource. Version names are used to compute the
    order in which served versions are listed in API discovery. If the version string is "kube-like", it will sort
    above non "kube-like" version strings, which are ordered lexicographically. "Kube-like" versions start with a
    "v", then are followed by a number (the major version), then optionally the string "alpha" or "beta" and another
    number (the minor version). These are sorted first by GA > beta > alpha (where GA is a version with no suffix
    such as beta or alpha), and then by comparing major version, then minor version. An example sorted list of
    versions: v10, v2, v1, v11beta2, v10beta3, v3beta1, v12alpha1, v11alpha2, foo1, foo10.
    """


class CustomResourceDefinitionStatus(Model):
    """CustomResourceDefinitionStatus indicates the state of the CustomResourceDefinition"""

    accepted_names: CustomResourceDefinitionNames | None = None
    """acceptedNames are the names that are actually being used to serve discovery. They may be different than the
    names in spec.
    """

    conditions: list[CustomResourceDefinitionCondition] = field(default_factory=list)
    """conditions indicate state for particular aspects of a CustomResourceDefinition"""

    observed_generation: int | None = None
    """The generation observed by the CRD controller."""

    stored_versions: list[str] = field(default_factory=list)
    """storedVersions lists all versions of CustomResources that were ever persisted. Tracking these versions allows a
    migration path for stored versions in etcd. The field is mutable so a migration controller can finish a
    migration to another version (ensuring no old objects are left in storage), and then remove the rest of the
    versions from this list. Versions may not be removed from `spec.versions` while they exist in this list.
    """


class CustomResourceDefinitionVersion(Model):
    """CustomResourceDefinitionVersion describes a version for CRD."""

    additional_printer_columns: list[CustomResourceColumnDefinition] = field(default_factory=list)
    """additionalPrinterColumns specifies additional columns returned in Table output. See
    https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables for details. If no
    columns are specified, a single column displaying the age of the custom resource is used.
    """

    deprecated: bool | None = None
    """deprecated indicates this version of the custom resource API is deprecated. When set to true, API requests to
    this version receive a warning header in the server response. Defaults to false.
    """

    deprecation_warning: str | None = None
    """deprecationWarning overrides the default warning returned to API clients. May only be set when `deprecated` is
    true. The default warning indicates this version is deprecated and recommends use of the newest served version
    of equal or greater stability, if one exists.
    """

    name: str
    """name is the version name, e.g. “v1”, “v2beta1”, etc. The custom resources are served under this version at
    `/apis/<group>/<version>/...` if `served` is true.
    """

    schema: CustomResourceValidation | None = None
    """schema describes the schema used for validation, pruning, and defaulting of this version of the custom
    resource.
    """

    selectable_fields: list[SelectableField] = field(default_factory=list)
    """selectableFields specifies paths to fields that may be used as field selectors. A maximum of 8 selectable fields
    are allowed. See https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors
    """

    served: bool
    """served is a flag enabling/disabling this version from being served via REST APIs"""

    storage: bool
    """storage indicates this version should be used when persisting custom resources to storage. There must be exactly
    one version with storage=true.
    """

    subresources: CustomResourceSubresources | None = None
    """subresources specify what subresources this version of the defined custom resource have."""


class CustomResourceSubresourceScale(Model):
    """CustomResourceSubresourceScale defines how to serve the scale subresource for CustomResources."""

    label_selector_path: str | None = None
    """labelSelectorPath defines the JSON path inside of a custom resource that corresponds to Scale `status.selector`.
    Only JSON paths without the array notation are allowed. Must be a JSON Path under `.status` or `.spec`. Must be
    set to work with HorizontalPodAutoscaler. The field pointed by this JSON path must be a string field (not a
    complex selector struct) which contains a serialized label selector in string form. More info:
    https://kubernetes.io/docs/tasks/access-kubernetes-api/custom-resources/custom-resource-definitions#scale-subresource
    If there is no value under the given path in the custom resource, the `status.selector` value in the `/scale`
    subresource will default to the empty string.
    """

    spec_replicas_path: str
    """specReplicasPath defines the JSON path inside of a custom resource that corresponds to Scale `spec.replicas`.
    Only JSON paths without the array notation are allowed. Must be a JSON Path under `.spec`. If there is no value
    under the given path in the custom resource, the `/scale` subresource will return an error on GET.
    """

    status_replicas_path: str
    """statusReplicasPath defines the JSON path inside of a custom resource that corresponds to Scale
    `status.replicas`. Only JSON paths without the array notation are allowed. Must be a JSON Path under `.status`.
    If there is no value under the given path in the custom resource, the `status.replicas` value in the `/scale`
    subresource will default to 0.
    """


class CustomResourceSubresources(Model):
    """CustomResourceSubresources defines the status and scale subresources for CustomResources."""

    scale: CustomResourceSubresourceScale | None = None
    """scale indicates the custom resource should serve a `/scale` subresource that returns an `autoscaling/v1` Scale
    object.
    """

    status: dict[str, Any] | None = None
    """status indicates the custom resource should serve a `/status` subresource. When enabled: 1. requests to the
    custom resource primary endpoint ignore changes to the `status` stanza of the object. 2. requests to the custom
    resource `/status` subresource ignore changes to anything other than the `status` stanza of the object.
    """


class CustomResourceValidation(Model):
    """CustomResourceValidation is a list of validation methods for CustomResources."""

    open_apiv3_schema: dict[str, Any] | None = field(default=None, name="openAPIV3Schema")
    """openAPIV3Schema is the OpenAPI v3 schema to use for validation and pruning."""


class SelectableField(Model):
    """SelectableField specifies the JSON path of a field that may be used with field selectors."""

    json_path: str
    """jsonPath is a simple JSON path which is evaluated against each custom resource to produce a field selector
    value. Only JSON paths without the array notation are allowed. Must point to a field of type string, boolean or
    integer. Types with enum values and strings with formats are allowed. If jsonPath refers to absent field in a
    resource, the jsonPath evaluates to an empty string. Must not point to metdata fields. Required.
    """


class ServiceReference(Model):
    """ServiceReference holds a reference to Service.legacy.k8s.io"""

    name: str
    """name is the name of the service. Required"""

    namespace: str
    """namespace is the namespace of the service. Required"""

    path: str | None = None
    """path is an optional URL path at which the webhook will be contacted."""

    port: int | None = None
    """port is an optional service port at which the webhook will be contacted. `port` should be a valid port number
    (1-65535, inclusive). Defaults to 443 for backward compatibility.
    """


class WebhookClientConfig(Model):
    """WebhookClientConfig contains the information to make a TLS connection with the webhook."""

    ca_bundle: bytes | None = None
    """caBundle is a PEM encoded CA bundle which will be used to validate the webhook's server certificate. If
    unspecified, system trust roots on the apiserver are used.
    """

    service: ServiceReference | None = None
    """service is a reference to the service for this webhook. Either service or url must be specified."""

    url: str | None = None
    """url gives the location of the webhook, in standard URL form (`scheme://host:port/path`). Exactly one of `url` or
    `service` must be specified.
    """


class WebhookConversion(Model):
    """WebhookConversion describes how to call a conversion webhook"""

    client_config: WebhookClientConfig | None = None
    """clientConfig is the instructions for how to call the webhook if strategy is `Webhook`."""

    conversion_review_versions: list[str] = field(default_factory=list)
    """conversionReviewVersions is an ordered list of preferred `ConversionReview` versions the Webhook expects. The
    API server will use the first version in the list which it supports. If none of the versions specified in this
    list are supported by API server, conversion will fail for the custom resource. If a persisted Webhook
    configuration specifies allowed versions and does not include any versions known to the API Server, calls to the
    webhook will fail.
    """


class CustomResourceDefinition(
    Resource,
    identity=Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", Scope.CLUSTER),
):
    """CustomResourceDefinition represents a resource that should be exposed on the API server. Its name MUST be in the
    format <.spec.name>.<.spec.group>.
    """

    spec: CustomResourceDefinitionSpec
    """spec describes how the user wants the resources to appear"""

    status: CustomResourceDefinitionStatus = field(default_factory=CustomResourceDefinitionStatus)
    """status indicates the actual state of the CustomResourceDefinition"""
