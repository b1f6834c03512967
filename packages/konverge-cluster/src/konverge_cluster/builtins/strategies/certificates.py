"""Strategy of CertificateSigningRequests. The server records the requesting user; the spec never changes."""

# ruff: noqa: ARG002

from __future__ import annotations

from typing import Any

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.api.strategy import Document, RequestContext, WriteRules
from konverge_cluster.builtins.strategy import BuiltinStrategy, StatusEndpoint
from konverge_cluster.builtins.validation import certificates as rules

__all__ = ["CertificateSigningRequestStrategy"]


class CertificateSigningRequestStrategy(BuiltinStrategy):
    """CertificateSigningRequests."""

    selectable_fields = ("spec.signerName",)
    check = staticmethod(rules.validate_certificate_request)
    check_status = staticmethod(rules.validate_certificate_conditions)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._endpoints["status"] = CertificateStatusEndpoint(self)

    def subresource_endpoints(self) -> dict[str, WriteRules]:
        return {"approval": CertificateApprovalEndpoint()}

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        spec = new["spec"]
        for key in ("username", "uid", "groups", "extra"):
            spec.pop(key, None)
        spec.update(context.user.document())

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        new["spec"] = old["spec"]


class CertificateStatusEndpoint(StatusEndpoint):
    """The status subresource, for signers. It cannot change the Approved and Denied conditions."""

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        decisions = ("Approved", "Denied")
        decided = [each for each in old["status"].get("conditions", ()) if each["type"] in decisions]
        others = [each for each in new["status"].get("conditions", ()) if each["type"] not in decisions]
        if decided or others:
            new["status"]["conditions"] = decided + others
        else:
            new["status"].pop("conditions", None)
        _set_condition_times(new, old, context.now)


class CertificateApprovalEndpoint:
    """The approval subresource, for approvers. It changes conditions only."""

    reset_fields = ("spec", "status.certificate")

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        _set_condition_times(new, old, context.now)
        conditions = new["status"].get("conditions")
        new["spec"] = old["spec"]
        new["status"] = {key: value for key, value in old["status"].items() if key != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return list(rules.validate_certificate_conditions(new, old))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []


def _set_condition_times(new: Document, old: Document, now: str) -> None:
    old_conditions = {(each["type"], each["status"]): each for each in old["status"].get("conditions", ())}
    for condition in new["status"].get("conditions", ()):
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            previous = old_conditions.get((condition["type"], condition["status"]), {})
            condition["lastTransitionTime"] = previous.get("lastTransitionTime") or now
