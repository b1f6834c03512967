"""The API authentication.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime

from konverge.objects.kinds import Kind, Scope
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource

__all__ = [
    "BoundObjectReference",
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenRequest",
    "TokenRequestSpec",
    "TokenRequestStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
]


class BoundObjectReference(Model):
    """BoundObjectReference is a reference to an object that a token is bound to."""

    api_version: str | None = None
    """apiVersion is API version of the referent."""

    kind: str | None = None
    """kind of the referent. Valid kinds are 'Pod' and 'Secret'."""

    name: str | None = None
    """name of the referent."""

    uid: str | None = None
    """uid of the referent."""


class SelfSubjectReviewStatus(Model):
    """SelfSubjectReviewStatus is filled by the kube-apiserver and sent back to a user."""

    user_info: UserInfo | None = None
    """userInfo is a set of attributes belonging to the user making this request."""


class TokenRequestSpec(Model):
    """TokenRequestSpec contains client provided parameters of a token request."""

    audiences: list[str] = field(default_factory=list)
    """audiences are the intendend audiences of the token. A recipient of a token must identify themself with an
    identifier in the list of audiences of the token, and otherwise should reject the token. A token issued for
    multiple audiences may be used to authenticate against any of the audiences listed but implies a high degree of
    trust between the target audiences.
    """

    bound_object_ref: BoundObjectReference | None = None
    """boundObjectRef is a reference to an object that the token will be bound to. The token will only be valid for as
    long as the bound object exists. NOTE: The API server's TokenReview endpoint will validate the BoundObjectRef,
    but other audiences may not. Keep ExpirationSeconds small if you want prompt revocation.
    """

    expiration_seconds: int | None = None
    """expirationSeconds is the requested duration of validity of the request. The token issuer may return a token with
    a different validity duration so a client needs to check the 'expiration' field in a response.
    """


class TokenRequestStatus(Model):
    """TokenRequestStatus is the result of a token request."""

    expiration_timestamp: datetime | None = None
    """expirationTimestamp is the time of expiration of the returned token."""

    token: str | None = None
    """token is the opaque bearer token."""


class TokenReviewSpec(Model):
    """TokenReviewSpec is a description of the token authentication request."""

    audiences: list[str] = field(default_factory=list)
    """audiences is a list of the identifiers that the resource server presented with the token identifies as.
    Audience-aware token authenticators will verify that the token was intended for at least one of the audiences in
    this list. If no audiences are provided, the audience will default to the audience of the Kubernetes apiserver.
    """

    token: str
    """token is the opaque bearer token."""


class TokenReviewStatus(Model):
    """TokenReviewStatus is the result of the token authentication request."""

    audiences: list[str] = field(default_factory=list)
    """audiences are audience identifiers chosen by the authenticator that are compatible with both the TokenReview and
    token. An identifier is any identifier in the intersection of the TokenReviewSpec audiences and the token's
    audiences. A client of the TokenReview API that sets the spec.audiences field should validate that a compatible
    audience identifier is returned in the status.audiences field to ensure that the TokenReview server is audience
    aware. If a TokenReview returns an empty status.audience field where status.authenticated is "true", the token
    is valid against the audience of the Kubernetes API server.
    """

    authenticated: bool | None = None
    """authenticated indicates that the token was associated with a known user."""

    error: str | None = None
    """error indicates that the token couldn't be checked"""

    user: UserInfo | None = None
    """user is the UserInfo associated with the provided token."""


class UserInfo(Model):
    """UserInfo holds the information about the user needed to implement the user.Info interface."""

    extra: dict[str, list[str]] = field(default_factory=dict)
    """extra is any additional information provided by the authenticator."""

    groups: list[str] = field(default_factory=list)
    """groups is the names of groups this user is a part of."""

    uid: str | None = None
    """uid is a unique value that identifies this user across time. If this user is deleted and another user by the
    same name is added, they will have different UIDs.
    """

    username: str | None = None
    """username is the name that uniquely identifies this user among all active users."""


class SelfSubjectReview(
    Resource, identity=Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", Scope.CLUSTER)
):
    """SelfSubjectReview contains the user information that the kube-apiserver has about the user making this request.
    When using impersonation, users will receive the user info of the user being impersonated. If impersonation or
    request header authentication is used, any extra keys will have their case ignored and returned as lowercase.
    """

    status: SelfSubjectReviewStatus = field(default_factory=SelfSubjectReviewStatus)
    """status is filled in by the server with the user attributes."""


class TokenRequest(Resource, identity=Kind("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")):
    """TokenRequest requests a token for a given service account.

    It has no collection of its own: it is written to `serviceaccounts/token`.
    """

    spec: TokenRequestSpec = field(default_factory=TokenRequestSpec)
    """spec holds information about the request being evaluated"""

    status: TokenRequestStatus = field(default_factory=TokenRequestStatus)
    """status is filled in by the server and indicates whether the token can be authenticated."""


class TokenReview(Resource, identity=Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", Scope.CLUSTER)):
    """TokenReview attempts to authenticate a token to a known user. Note: TokenReview requests may be cached by the
    webhook token authenticator plugin in the kube-apiserver.
    """

    spec: TokenReviewSpec
    """spec holds information about the request being evaluated"""

    status: TokenReviewStatus = field(default_factory=TokenReviewStatus)
    """status is filled in by the server and indicates whether the request can be authenticated."""
