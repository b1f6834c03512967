"""The API authorization.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from konverge.k8s.meta.v1 import FieldSelectorRequirement, LabelSelectorRequirement
from konverge.objects.kinds import Kind, Scope
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource

__all__ = [
    "FieldSelectorAttributes",
    "LabelSelectorAttributes",
    "LocalSubjectAccessReview",
    "NonResourceAttributes",
    "NonResourceRule",
    "ResourceAttributes",
    "ResourceRule",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReviewSpec",
    "SubjectAccessReview",
    "SubjectAccessReviewSpec",
    "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus",
]


class FieldSelectorAttributes(Model):
    """FieldSelectorAttributes indicates a field limited access. Webhook authors are encouraged to * ensure rawSelector
    and requirements are not both set * consider the requirements field if set * not try to parse or consider the
    rawSelector field if set. This is to avoid another CVE-2022-2880 (i.e. getting different systems to agree on how
    exactly to parse a query is not something we want), see
    https://www.oxeye.io/resources/golang-parameter-smuggling-attack for more details. For the *SubjectAccessReview
    endpoints of the kube-apiserver: * If rawSelector is empty and requirements are empty, the request is not
    limited. * If rawSelector is present and requirements are empty, the rawSelector will be parsed and limited if
    the parsing succeeds. * If rawSelector is empty and requirements are present, the requirements should be honored
    * If rawSelector is present and requirements are present, the request is invalid.
    """

    raw_selector: str | None = None
    """rawSelector is the serialization of a field selector that would be included in a query parameter. Webhook
    implementations are encouraged to ignore rawSelector. The kube-apiserver's *SubjectAccessReview will parse the
    rawSelector as long as the requirements are not present.
    """

    requirements: list[FieldSelectorRequirement] = field(default_factory=list)
    """requirements is the parsed interpretation of a field selector. All requirements must be met for a resource
    instance to match the selector. Webhook implementations should handle requirements, but how to handle them is up
    to the webhook. Since requirements can only limit the request, it is safe to authorize as unlimited request if
    the requirements are not understood.
    """


class LabelSelectorAttributes(Model):
    """LabelSelectorAttributes indicates a label limited access. Webhook authors are encouraged to * ensure rawSelector
    and requirements are not both set * consider the requirements field if set * not try to parse or consider the
    rawSelector field if set. This is to avoid another CVE-2022-2880 (i.e. getting different systems to agree on how
    exactly to parse a query is not something we want), see
    https://www.oxeye.io/resources/golang-parameter-smuggling-attack for more details. For the *SubjectAccessReview
    endpoints of the kube-apiserver: * If rawSelector is empty and requirements are empty, the request is not
    limited. * If rawSelector is present and requirements are empty, the rawSelector will be parsed and limited if
    the parsing succeeds. * If rawSelector is empty and requirements are present, the requirements should be honored
    * If rawSelector is present and requirements are present, the request is invalid.
    """

    raw_selector: str | None = None
    """rawSelector is the serialization of a field selector that would be included in a query parameter. Webhook
    implementations are encouraged to ignore rawSelector. The kube-apiserver's *SubjectAccessReview will parse the
    rawSelector as long as the requirements are not present.
    """

    requirements: list[LabelSelectorRequirement] = field(default_factory=list)
    """requirements is the parsed interpretation of a label selector. All requirements must be met for a resource
    instance to match the selector. Webhook implementations should handle requirements, but how to handle them is up
    to the webhook. Since requirements can only limit the request, it is safe to authorize as unlimited request if
    the requirements are not understood.
    """


class NonResourceAttributes(Model):
    """NonResourceAttributes includes the authorization attributes available for non-resource requests to the
    Authorizer interface
    """

    path: str | None = None
    """path is the URL path of the request"""

    verb: str | None = None
    """verb is the standard HTTP verb"""


class NonResourceRule(Model):
    """NonResourceRule holds information that describes a rule for the non-resource"""

    non_resource_urls: list[str] = field(default_factory=list)
    """nonResourceURLs is a set of partial urls that a user should have access to. *s are allowed, but only as the
    full, final step in the path. "*" means all.
    """

    verbs: list[str] = field(default_factory=list)
    """verbs is a list of kubernetes non-resource API verbs, like: get, post, put, delete, patch, head, options. "*"
    means all.
    """


class ResourceAttributes(Model):
    """ResourceAttributes includes the authorization attributes available for resource requests to the Authorizer
    interface
    """

    field_selector: FieldSelectorAttributes | None = None
    """fieldSelector describes the limitation on access based on field. It can only limit access, not broaden it."""

    group: str | None = None
    """group is the API Group of the Resource. "*" means all."""

    label_selector: LabelSelectorAttributes | None = None
    """labelSelector describes the limitation on access based on labels. It can only limit access, not broaden it."""

    name: str | None = None
    """name is the name of the resource being requested for a "get" or deleted for a "delete". "" (empty) means
    all.
    """

    namespace: str | None = None
    """namespace is the namespace of the action being requested. Currently, there is no distinction between no
    namespace and all namespaces "" (empty) is defaulted for LocalSubjectAccessReviews "" (empty) is empty for
    cluster-scoped resources "" (empty) means "all" for namespace scoped resources from a SubjectAccessReview or
    SelfSubjectAccessReview
    """

    resource: str | None = None
    """resource is one of the existing resource types. "*" means all."""

    subresource: str | None = None
    """subresource is one of the existing resource types. "" means none."""

    verb: str | None = None
    """verb is a kubernetes resource API verb, like: get, list, watch, create, update, delete, proxy. "*" means
    all.
    """

    version: str | None = None
    """version is the API Version of the Resource. "*" means all."""


class ResourceRule(Model):
    """ResourceRule is the list of actions the subject is allowed to perform on resources. The list ordering isn't
    significant, may contain duplicates, and possibly be incomplete.
    """

    api_groups: list[str] = field(default_factory=list)
    """apiGroups is the name of the APIGroup that contains the resources. If multiple API groups are specified, any
    action requested against one of the enumerated resources in any API group will be allowed. "*" means all.
    """

    resource_names: list[str] = field(default_factory=list)
    """resourceNames is an optional white list of names that the rule applies to. An empty set means that everything is
    allowed. "*" means all.
    """

    resources: list[str] = field(default_factory=list)
    """resources is a list of resources this rule applies to. "*" means all in the specified apiGroups. "*/foo"
    represents the subresource 'foo' for all resources in the specified apiGroups.
    """

    verbs: list[str] = field(default_factory=list)
    """verbs is a list of kubernetes resource API verbs, like: get, list, watch, create, update, delete, proxy. "*"
    means all.
    """


class SelfSubjectAccessReviewSpec(Model):
    """SelfSubjectAccessReviewSpec is a description of the access request. Exactly one of resourceAttributes and
    nonResourceAttributes must be set
    """

    non_resource_attributes: NonResourceAttributes | None = None
    """nonResourceAttributes describes information for a non-resource access request"""

    resource_attributes: ResourceAttributes | None = None
    """resourceAttributes describes information for a resource access request"""


class SelfSubjectRulesReviewSpec(Model):
    """SelfSubjectRulesReviewSpec defines the specification for SelfSubjectRulesReview."""

    namespace: str | None = None
    """namespace to evaluate rules for. Required."""


class SubjectAccessReviewSpec(Model):
    """SubjectAccessReviewSpec is a description of the access request. Exactly one of resourceAttributes and
    nonResourceAttributes must be set
    """

    extra: dict[str, list[str]] = field(default_factory=dict)
    """extra corresponds to the user.Info.GetExtra() method from the authenticator. Since that is input to the
    authorizer it needs a reflection here.
    """

    groups: list[str] = field(default_factory=list)
    """groups is the groups you're testing for."""

    non_resource_attributes: NonResourceAttributes | None = None
    """nonResourceAttributes describes information for a non-resource access request"""

    resource_attributes: ResourceAttributes | None = None
    """resourceAttributes describes information for a resource access request"""

    uid: str | None = None
    """uid information about the requesting user."""

    user: str | None = None
    """user is the user you're testing for. If you specify "User" but not "Groups", then is it interpreted as "What if
    User were not a member of any groups
    """


class SubjectAccessReviewStatus(Model):
    """SubjectAccessReviewStatus"""

    allowed: bool | None = None
    """allowed is required. True if the action would be allowed, false otherwise."""

    denied: bool | None = None
    """denied is optional. True if the action would be denied, otherwise false. If both allowed is false and denied is
    false, then the authorizer has no opinion on whether to authorize the action. Denied may not be true if Allowed
    is true.
    """

    evaluation_error: str | None = None
    """evaluationError is an indication that some error occurred during the authorization check. It is entirely
    possible to get an error and be able to continue determine authorization status in spite of it. For instance,
    RBAC can be missing a role, but enough roles are still present and bound to reason about the request.
    """

    reason: str | None = None
    """reason is optional. It indicates why a request was allowed or denied."""


class SubjectRulesReviewStatus(Model):
    """SubjectRulesReviewStatus contains the result of a rules check. This check can be incomplete depending on the set
    of authorizers the server is configured with and any errors experienced during evaluation. Because authorization
    rules are additive, if a rule appears in a list it's safe to assume the subject has that permission, even if
    that list is incomplete.
    """

    evaluation_error: str | None = None
    """evaluationError can appear in combination with Rules. It indicates an error occurred during rule evaluation,
    such as an authorizer that doesn't support rule evaluation, and that ResourceRules and/or NonResourceRules may
    be incomplete.
    """

    incomplete: bool | None = None
    """incomplete is true when the rules returned by this call are incomplete. This is most commonly encountered when
    an authorizer, such as an external authorizer, doesn't support rules evaluation.
    """

    non_resource_rules: list[NonResourceRule] = field(default_factory=list)
    """nonResourceRules is the list of actions the subject is allowed to perform on non-resources. The list ordering
    isn't significant, may contain duplicates, and possibly be incomplete.
    """

    resource_rules: list[ResourceRule] = field(default_factory=list)
    """resourceRules is the list of actions the subject is allowed to perform on resources. The list ordering isn't
    significant, may contain duplicates, and possibly be incomplete.
    """


class LocalSubjectAccessReview(
    Resource, identity=Kind("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews")
):
    """LocalSubjectAccessReview checks whether or not a user or group can perform an action in a given namespace.
    Having a namespace scoped resource makes it much easier to grant namespace scoped policy that includes
    permissions checking.
    """

    spec: SubjectAccessReviewSpec = field(default_factory=SubjectAccessReviewSpec)
    """spec holds information about the request being evaluated. spec.namespace must be equal to the namespace you made
    the request against. If empty, it is defaulted.
    """

    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)
    """status is filled in by the server and indicates whether the request is allowed or not"""


class SelfSubjectAccessReview(
    Resource,
    identity=Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", Scope.CLUSTER),
):
    """SelfSubjectAccessReview checks whether or the current user can perform an action. Not filling in a
    spec.namespace means "in all namespaces". Self is a special case, because users should always be able to check
    whether they can perform an action
    """

    spec: SelfSubjectAccessReviewSpec = field(default_factory=SelfSubjectAccessReviewSpec)
    """spec holds information about the request being evaluated. user and groups must be empty"""

    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)
    """status is filled in by the server and indicates whether the request is allowed or not"""


class SelfSubjectRulesReview(
    Resource,
    identity=Kind("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", Scope.CLUSTER),
):
    """SelfSubjectRulesReview enumerates the set of actions the current user can perform within a namespace. The
    returned list of actions may be incomplete depending on the server's authorization mode, and any errors
    experienced during the evaluation. SelfSubjectRulesReview should be used by UIs to show/hide actions, or to
    quickly let an end user reason about their permissions. It should NOT Be used by external systems to drive
    authorization decisions as this raises confused deputy, cache lifetime/revocation, and correctness concerns.
    SubjectAccessReview, and LocalAccessReview are the correct way to defer authorization decisions to the API
    server.
    """

    spec: SelfSubjectRulesReviewSpec = field(default_factory=SelfSubjectRulesReviewSpec)
    """spec holds information about the request being evaluated."""

    status: SubjectRulesReviewStatus = field(default_factory=SubjectRulesReviewStatus)
    """status is filled in by the server and indicates the set of actions a user can perform."""


class SubjectAccessReview(
    Resource, identity=Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", Scope.CLUSTER)
):
    """SubjectAccessReview checks whether or not a user or group can perform an action."""

    spec: SubjectAccessReviewSpec = field(default_factory=SubjectAccessReviewSpec)
    """spec holds information about the request being evaluated"""

    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)
    """status is filled in by the server and indicates whether the request is allowed or not"""
