"""The subresource `token` of a service account: a TokenRequest returns a new token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from konverge.objects.kinds import Kind, Scope, split_api_version
from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.documents import read_document
from konverge_cluster.api.field_errors import FieldError, invalid, quote
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.responses import Response, json_response
from konverge_cluster.api.strategy import Document, ResourceInfo
from konverge_cluster.api.writes import (
    admission_request,
    match_namespace,
    run_mutating_admission,
    run_validating_admission,
)
from konverge_cluster.authentication.service_account_tokens import ISSUER, ServiceAccountTokens
from konverge_cluster.builtins.strategy import BuiltinStrategy

__all__ = ["TokenRequests"]

_GROUP: Final = "authentication.k8s.io"
_KIND: Final = Kind(_GROUP, "v1", "TokenRequest", "tokenrequests", Scope.NAMESPACED)
_DEFAULT_SECONDS: Final = 3600
_MIN_SECONDS: Final = 600
_MAX_SECONDS: Final = 1 << 32
_WARN_ONLY_SECONDS: Final = 3607
"""What the projected volume of a pod requests; such a token is valid for a year, since old clients do not renew it."""
_EXTENDED_SECONDS: Final = 365 * 24 * 3600
_BOUND: Final = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


class _TokenRequestStrategy(BuiltinStrategy):
    """Decoding and defaults of TokenRequests, which are not stored."""

    @staticmethod
    def set_defaults(document: Document, /) -> None:
        if document["spec"].get("expirationSeconds") is None:
            document["spec"]["expirationSeconds"] = _DEFAULT_SECONDS


class TokenRequests:
    """The handler of TokenRequests."""

    def __init__(self, tokens: ServiceAccountTokens) -> None:
        self._tokens = tokens
        self._strategy = _TokenRequestStrategy(ResourceInfo(kind=_KIND, storage=(_GROUP, _KIND.plural)))

    async def create(self, cluster: Cluster, call: Call) -> Response:
        """Issue a token.

        Raises: StatusError.
        """
        options = WriteOptions.read(call.query, "CreateOptions")
        document = read_document(cluster, replace(call, strategy=self._strategy), options.validation)
        match_namespace(call, document["metadata"])
        admission = admission_request(call, "CREATE", document, None, options)
        document = admission.object = await run_mutating_admission(cluster, admission)
        account = self._prepare(cluster, call, document)
        await run_validating_admission(cluster, admission)
        spec = document["spec"]
        bound = _bound_objects(cluster, call, spec.get("boundObjectRef"))
        seconds = warn_after = spec["expirationSeconds"]
        extended = "pod" in bound and seconds == _WARN_ONLY_SECONDS and set(spec["audiences"]) <= {ISSUER}
        token = self._tokens.generate(
            account,
            audiences=spec["audiences"],
            seconds=_EXTENDED_SECONDS if extended else seconds,
            bound=bound,
            warn_after=warn_after if extended else 0,
        )
        document["status"] = {"token": token, "expirationTimestamp": cluster.time_text(cluster.clock() + seconds)}
        return json_response(201, document)

    def _prepare(self, cluster: Cluster, call: Call, document: Document) -> Document:
        """Complete the request from its service account, and validate it; return the account."""
        metadata, spec = document["metadata"], document["spec"]
        if metadata.get("name", call.name) != call.name:
            error = invalid("metadata.name", metadata["name"], "must match the service account name if specified")
            raise status_errors.invalid(_GROUP, "TokenRequest", call.name, [error])
        account = cluster.lookup("", "serviceaccounts", call.namespace, call.name)
        if account is None:
            raise status_errors.not_found("", "serviceaccounts", call.name)
        uid = account["metadata"]["uid"]
        if metadata.get("uid", uid) != uid:
            text = f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account"
            raise status_errors.conflict(_GROUP, "TokenRequest", call.name, f"{text} ({uid})")
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        metadata |= {"name": call.name, "uid": uid, "creationTimestamp": cluster.now()}
        errors = _errors(spec["expirationSeconds"])
        if errors:
            raise status_errors.invalid(_GROUP, "TokenRequest", "", errors)
        return account


def _errors(seconds: int) -> list[FieldError]:
    path = "spec.expirationSeconds"
    if seconds < _MIN_SECONDS:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_SECONDS:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _bound_objects(cluster: Cluster, call: Call, reference: Mapping[str, Any] | None) -> dict[str, dict[str, str]]:
    """Return the references that the token contains: the bound object, and the node of a bound pod."""
    if reference is None:
        return {}
    api_version, kind, name = (reference.get(key, "") for key in ("apiVersion", "kind", "name"))
    group, version = split_api_version(api_version)
    plural = _BOUND.get(kind)
    if group or plural is None:
        text = f"{group}/{version}, Kind={kind}"
        raise status_errors.bad_request(f"cannot bind token to object of type {text}")
    found = cluster.lookup("", plural, "" if kind == "Node" else call.namespace, name)
    if found is None:
        raise status_errors.not_found("", plural, name)
    if kind == "Pod" and found["spec"].get("serviceAccountName", "") != call.name:
        text = "to pod running with different serviceaccount name."
        raise status_errors.bad_request(f"cannot bind token for serviceaccount {quote(call.name)} {text}")
    uid = found["metadata"]["uid"]
    if reference.get("uid", uid) != uid:
        text = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
        text += " The object might have been deleted and then recreated"
        raise status_errors.conflict("", kind, name, text)
    bound = {kind.lower(): {"name": name, "uid": uid}}
    node = found["spec"].get("nodeName", "") if kind == "Pod" else ""
    return bound | ({"node": _node_reference(cluster, node)} if node else {})


def _node_reference(cluster: Cluster, name: str) -> dict[str, str]:
    node = cluster.lookup("", "nodes", "", name)
    return {"name": name} if node is None else {"name": name, "uid": node["metadata"]["uid"]}
