"""Who sends a request, what the request asks for, and the decision whether it is allowed.

This is the seam between authentication, authorization and the rest of the server (authentication/user and
authorization/authorizer of the real one). `ApiServer.handle` asks `Cluster.authorizer` about every request before
anything else is done; a write that turns out to create an object is asked about once more, with the verb "create".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from konverge_cluster.api import status_errors
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.status_errors import StatusError

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "ANONYMOUS_NAME",
    "AUTHENTICATED",
    "UNAUTHENTICATED",
    "AlwaysAllow",
    "Attributes",
    "Authorizer",
    "Decision",
    "UserInfo",
    "check_authorized",
    "forbidden_error",
]

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS_NAME: Final = "system:anonymous"
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated user: a name, groups, and optionally a uid and extra information."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the user as in AdmissionReview and TokenReview; empty fields are omitted."""
        extra = {key: list(values) for key, values in self.extra.items()}
        fields = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {key: value for key, value in fields.items() if value}


ADMIN: Final = UserInfo("kubernetes-admin", ("system:masters", AUTHENTICATED))
ANONYMOUS: Final = UserInfo(ANONYMOUS_NAME, (UNAUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request asks for (the real server's authorizer.Attributes).

    A resource request has a `resource`; a request for another path has only `verb` (the method in lower case) and
    `path`. The selectors are those of a list, watch or deletecollection, as text.
    """

    user: UserInfo
    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    resource_request: bool = True
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of an authorizer.

    `denied` separates "no" from "no opinion"; for a request both are 403.
    """

    allowed: bool
    reason: str = ""
    denied: bool = False


class Authorizer(Protocol):
    """Decides which requests are allowed. It only reads memory."""

    def authorize(self, attributes: Attributes) -> Decision: ...


class AlwaysAllow:
    """The authorizer that allows every request."""

    _ALLOWED: Final = Decision(allowed=True)

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002
        return self._ALLOWED


def check_authorized(authorizer: Authorizer, attributes: Attributes) -> None:
    """Check that a request is allowed.

    Raises: StatusError 403.
    """
    decision = authorizer.authorize(attributes)
    if not decision.allowed:
        raise forbidden_error(attributes, decision.reason)


def forbidden_error(attributes: Attributes, reason: str = "") -> StatusError:
    """Return the 403 of a request that is not allowed, with the text of the real server."""
    text = _denial(attributes).translate(_HTML)
    if reason:
        text = f"{text}: {reason}"
    if attributes.resource or attributes.group:
        error = status_errors.forbidden(attributes.group, attributes.resource, attributes.name, text)
    else:
        error = status_errors.failure(403, f"forbidden: {text}", "Forbidden", {})
    error.headers["x-content-type-options"] = "nosniff"
    return error


def _denial(attributes: Attributes) -> str:
    user = f"User {quote(attributes.user.name)}"
    if not attributes.resource_request:
        return f"{user} cannot {attributes.verb} path {quote(attributes.path)}"
    resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    what = f"{user} cannot {attributes.verb} resource {quote(resource)} in API group {quote(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {quote(attributes.namespace)}"
    return f"{what} at the cluster scope"
