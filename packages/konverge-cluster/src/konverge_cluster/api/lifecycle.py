"""Namespace lifecycle: no write to a missing namespace, no create in one that is being terminated."""

from __future__ import annotations

from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.cluster import decode
from konverge_cluster.storage import Entry, Storage

__all__ = ["NamespaceLifecycle"]

_NAMESPACES: Final = ("", "namespaces")
_PROTECTED: Final = ("default", "kube-system", "kube-public")
_REVIEWS: Final = ("localsubjectaccessreviews", "subjectaccessreviews", "selfsubjectaccessreviews")


class NamespaceLifecycle:
    """The NamespaceLifecycle admission plug-in."""

    def __init__(self, storage: Storage) -> None:
        self._namespaces = storage.collection(_NAMESPACES)

    def handles(self, request: AdmissionRequest) -> bool:
        if request.operation == "DELETE":
            return request.strategy.info.kind.plural == "namespaces"
        return bool(request.namespace)

    async def mutate(self, request: AdmissionRequest) -> None:
        kind = request.strategy.info.kind
        if kind.plural == "namespaces" and not kind.group:
            if request.operation == "DELETE" and request.name in _PROTECTED:
                raise status_errors.forbidden("", "namespaces", request.name, "this namespace may not be deleted")
            return
        if request.operation == "DELETE" or kind.plural in _REVIEWS:
            return
        namespace = self._namespaces.get(request.namespace)
        if namespace is None:
            raise status_errors.not_found("", "namespaces", request.namespace)
        if request.operation == "CREATE" and _is_terminating(namespace):
            raise self._terminating_error(request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Do nothing: `mutate` has checked the request."""

    def _terminating_error(self, request: AdmissionRequest) -> status_errors.StatusError:
        kind, namespace = request.strategy.info.kind, request.namespace
        detail = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
        cause["field"] = "metadata.namespace"
        return status_errors.forbidden(kind.group, kind.plural, request.name, detail, causes=[cause])


def _is_terminating(namespace: Entry) -> bool:
    if "terminating" not in namespace.cache:
        status = decode(namespace.raw).get("status") or {}
        namespace.cache["terminating"] = status.get("phase") == "Terminating"
    return bool(namespace.cache["terminating"])
