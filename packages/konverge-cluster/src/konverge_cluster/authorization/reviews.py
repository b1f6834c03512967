"""Access reviews: SubjectAccessReview and its self and local forms, and SelfSubjectRulesReview."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.authorization import Attributes, UserInfo
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.documents import read_document
from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.responses import Response
from konverge_cluster.api.server import ApiServer
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.views import document_response
from konverge_cluster.api.writes import match_namespace, track
from konverge_cluster.authorization.rbac import RbacAuthorizer, joined
from konverge_cluster.authorization.rules import ALL_RESOURCES, ALL_URLS, Rule
from konverge_cluster.authorization.selectors import selector_errors, validate_selectors

__all__ = ["attributes_of", "serve_reviews"]

_GROUP: Final = "authorization.k8s.io"
_SELF: Final = "selfsubjectaccessreviews"
_LOCAL: Final = "localsubjectaccessreviews"


def serve_reviews(server: ApiServer) -> None:
    """Serve the kinds of the group authorization.k8s.io."""
    for plural in (_SELF, _LOCAL, "subjectaccessreviews"):
        server.actions[_GROUP, plural, ""] = review_access
    server.actions[_GROUP, "selfsubjectrulesreviews", ""] = review_rules


async def review_access(cluster: Cluster, call: Call) -> Response:
    """Decide about the attributes in the spec: for its user, or for the caller in a self review."""
    document = _read(cluster, call)
    errors = list(_validate(document, call.strategy.info.kind.plural))
    if errors:
        raise status_errors.invalid(_GROUP, "", "", errors)
    spec = document["spec"]
    user = call.user if call.strategy.info.kind.plural == _SELF else _user_of(spec)
    decision = cluster.authorizer.authorize(attributes_of(spec, user))
    status: Document = {"allowed": decision.allowed}
    error = selector_errors(spec.get("resourceAttributes") or {})
    fields = {"denied": decision.denied, "reason": decision.reason, "evaluationError": error}
    document["status"] = status | {name: value for name, value in fields.items() if value}
    return document_response(cluster, call, document, 201)


def _read(cluster: Cluster, call: Call) -> Document:
    options = WriteOptions.read(call.query, "CreateOptions")
    document = read_document(cluster, call, options.validation)
    document.setdefault("spec", {})
    if not call.strategy.info.kind.namespaced:
        document["metadata"].pop("namespace", None)
    match_namespace(call, document["metadata"])
    track(cluster, call, None, document, options)
    return document


def _validate(document: Document, plural: str) -> Iterator[FieldError]:
    spec, metadata = document["spec"], document["metadata"]
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        yield invalid(
            "spec.nonResourceAttributes",
            _url_value(other),
            "cannot be specified in combination with resourceAttributes",
        )
    if resource is None and other is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid("spec.resourceAttributes", None, text)
    if plural != _SELF and not spec.get("user") and not spec.get("groups"):
        yield invalid("spec.user", "", "at least one of user or group must be specified")
    yield from validate_selectors(resource or {})
    allowed = ("managedFields", "namespace") if plural == _LOCAL else ("managedFields",)
    if any(value for name, value in metadata.items() if name not in allowed):
        text = "must be empty except for namespace" if plural == _LOCAL else "must be empty"
        yield invalid("metadata", metadata, text)
    if plural == _LOCAL:
        yield from _validate_local(metadata, resource, other)


def _validate_local(metadata: Document, resource: Document | None, other: Document | None) -> Iterator[FieldError]:
    if resource is not None and resource.get("namespace", "") != metadata.get("namespace", ""):
        namespace = resource.get("namespace", "")
        yield invalid("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace")
    if other is not None:
        yield invalid("spec.nonResourceAttributes", _url_value(other), "disallowed on this kind of request")


def _url_value(attributes: Document) -> Document:
    """Return non-resource attributes as the real server shows them: with the names of its internal type."""
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _user_of(spec: Mapping[str, Any]) -> UserInfo:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def attributes_of(spec: Mapping[str, Any], user: UserInfo) -> Attributes:
    """Return the attributes that the spec of a review describes."""
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes") or {}
    if resource is None:
        return Attributes(user, other.get("verb", ""), other.get("path", ""), resource_request=False)
    names = ("group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(user, resource.get("verb", ""), "", *(resource.get(name, "") for name in names))


async def review_rules(cluster: Cluster, call: Call) -> Response:
    """List the rules that are granted to the caller in a namespace.

    Raises: StatusError 400 without a namespace.
    """
    namespace = _read(cluster, call)["spec"].get("namespace", "")
    if not namespace:
        raise status_errors.bad_request("no namespace on request")
    rules, errors = [ALL_RESOURCES, ALL_URLS], list[str]()
    if isinstance(cluster.authorizer, RbacAuthorizer):
        rules, errors = cluster.authorizer.rules_for(call.user, namespace)
    status: Document = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
        ],
        "incomplete": False,
    }
    if errors:
        status["evaluationError"] = joined(errors)
    kind = call.strategy.info.kind
    head = {"kind": kind.kind, "apiVersion": kind.api_version}
    return document_response(cluster, call, head | {"metadata": {}, "spec": {}, "status": status}, 201)


def _resource_rule(rule: Rule) -> Document:
    parts = {"apiGroups": rule.groups, "resources": rule.resources, "resourceNames": rule.names}
    return {"verbs": list(rule.verbs)} | {name: list(values) for name, values in parts.items() if values}
