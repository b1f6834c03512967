"""Admission of CertificateSigningRequests: who may approve and sign, and that nobody requests to be an admin."""

from __future__ import annotations

import base64

from cryptography import x509
from cryptography.x509.oid import NameOID

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import Admission, AdmissionRequest
from konverge_cluster.api.authorization import Attributes
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document

__all__ = ["CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "certificate_admission"]

_GROUP = "certificates.k8s.io"
_PLURAL = "certificatesigningrequests"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


def certificate_admission(cluster: Cluster) -> list[Admission]:
    """Return the plugins of CertificateSigningRequests."""
    return [CertificateApproval(cluster), CertificateSigning(cluster), CertificateSubjectRestriction()]


class _CertificatePlugin:
    """A plugin that only validates requests for CertificateSigningRequests: one operation of one endpoint."""

    operation = "UPDATE"
    subresource = ""

    def handles(self, request: AdmissionRequest) -> bool:
        kind = request.strategy.info.kind
        if (kind.group, kind.plural) != (_GROUP, _PLURAL):
            return False
        return (request.operation, request.subresource) == (self.operation, self.subresource)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Change nothing."""


class _SignerPlugin(_CertificatePlugin):
    """A plugin that requires a right on the signer that a request names."""

    verb = ""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def validate(self, request: AdmissionRequest) -> None:
        """Check that the user may act for the signer. The stored object counts, since the sent one may lie."""
        assert request.old_object is not None
        signer = request.old_object["spec"]["signerName"]
        if self._needs_right(request) and not self._is_allowed(request, signer):
            raise _forbidden(request, f"user not permitted to {self.verb} requests with signerName {quote(signer)}")

    def _needs_right(self, request: AdmissionRequest) -> bool:  # noqa: ARG002
        return True

    def _is_allowed(self, request: AdmissionRequest, signer: str) -> bool:
        domain = signer.partition("/")[0]
        return any(
            self._cluster.authorizer.authorize(
                Attributes(request.user, self.verb, group=_GROUP, version="*", resource="signers", name=name)
            ).allowed
            for name in (signer, f"{domain}/*")
        )


class CertificateApproval(_SignerPlugin):
    """Require the right to approve for the signer."""

    subresource = "approval"
    verb = "approve"


class CertificateSigning(_SignerPlugin):
    """Require the right to sign for the signer, for a change of the certificate or the conditions."""

    subresource = "status"
    verb = "sign"

    def _needs_right(self, request: AdmissionRequest) -> bool:
        assert request.object is not None
        assert request.old_object is not None
        new, old = request.object.get("status", {}), request.old_object.get("status", {})
        return any(new.get(key) != old.get(key) for key in ("certificate", "conditions"))


class CertificateSubjectRestriction(_CertificatePlugin):
    """Reject requests for a client certificate in the group system:masters."""

    operation = "CREATE"

    async def validate(self, request: AdmissionRequest) -> None:
        """Check the groups of the requested subject."""
        assert request.object is not None
        spec = request.object["spec"]
        if spec["signerName"] == _CLIENT_SIGNER and "system:masters" in _organizations(spec):
            raise _forbidden(request, f"use of {_CLIENT_SIGNER} signer with system:masters group is not allowed")


def _organizations(spec: Document) -> list[str]:
    parsed = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
    return [str(each.value) for each in parsed.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def _forbidden(request: AdmissionRequest, text: str) -> StatusError:
    return status_errors.forbidden(_GROUP, _PLURAL, request.name, text)
