"""The API certificates.k8s.io/v1, as Kubernetes v1.36.4 publishes it.

Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see
NOTICE). Do not edit.
"""

from __future__ import annotations

from datetime import datetime

from konverge.objects.kinds import Kind, Scope
from konverge.objects.models import Model, field
from konverge.objects.resources import Resource

__all__ = [
    "CertificateSigningRequest",
    "CertificateSigningRequestCondition",
    "CertificateSigningRequestSpec",
    "CertificateSigningRequestStatus",
]


class CertificateSigningRequestCondition(Model):
    """CertificateSigningRequestCondition describes a condition of a CertificateSigningRequest object"""

    last_transition_time: datetime | None = None
    """lastTransitionTime is the time the condition last transitioned from one status to another. If unset, when a new
    condition type is added or an existing condition's status is changed, the server defaults this to the current
    time.
    """

    last_update_time: datetime | None = None
    """lastUpdateTime is the time of the last update to this condition"""

    message: str | None = None
    """message contains a human readable message with details about the request state"""

    reason: str | None = None
    """reason indicates a brief reason for the request state"""

    status: str
    """status of the condition, one of True, False, Unknown. Approved, Denied, and Failed conditions may not be "False"
    or "Unknown".
    """

    type: str
    """type of the condition. Known conditions are "Approved", "Denied", and "Failed"."""


class CertificateSigningRequestSpec(Model):
    """CertificateSigningRequestSpec contains the certificate request."""

    expiration_seconds: int | None = None
    """expirationSeconds is the requested duration of validity of the issued certificate. The certificate signer may
    issue a certificate with a different validity duration so a client must check the delta between the notBefore
    and and notAfter fields in the issued certificate to determine the actual duration.
    """

    extra: dict[str, list[str]] = field(default_factory=dict)
    """extra contains extra attributes of the user that created the CertificateSigningRequest. Populated by the API
    server on creation and immutable.
    """

    groups: list[str] = field(default_factory=list)
    """groups contains group membership of the user that created the CertificateSigningRequest. Populated by the API
    server on creation and immutable.
    """

    request: bytes
    """request contains an x509 certificate signing request encoded in a "CERTIFICATE REQUEST" PEM block. When
    serialized as JSON or YAML, the data is additionally base64-encoded.
    """

    signer_name: str
    """signerName indicates the requested signer, and is a qualified name."""

    uid: str | None = None
    """uid contains the uid of the user that created the CertificateSigningRequest. Populated by the API server on
    creation and immutable.
    """

    usages: list[str] = field(default_factory=list)
    """usages specifies a set of key usages requested in the issued certificate."""

    username: str | None = None
    """username contains the name of the user that created the CertificateSigningRequest. Populated by the API server
    on creation and immutable.
    """


class CertificateSigningRequestStatus(Model):
    """CertificateSigningRequestStatus contains conditions used to indicate approved/denied/failed status of the
    request, and the issued certificate.
    """

    certificate: bytes | None = None
    """certificate is populated with an issued certificate by the signer after an Approved condition is present. This
    field is set via the /status subresource. Once populated, this field is immutable.
    """

    conditions: list[CertificateSigningRequestCondition] = field(default_factory=list)
    """conditions applied to the request. Known conditions are "Approved", "Denied", and "Failed"."""


class CertificateSigningRequest(
    Resource,
    identity=Kind(
        "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", Scope.CLUSTER
    ),
):
    """CertificateSigningRequest objects provide a mechanism to obtain x509 certificates by submitting a certificate
    signing request, and having it asynchronously approved and issued.
    """

    spec: CertificateSigningRequestSpec
    """spec contains the certificate request, and is immutable after creation. Only the request, signerName,
    expirationSeconds, and usages fields can be set on creation. Other fields are derived by Kubernetes and cannot
    be modified by users.
    """

    status: CertificateSigningRequestStatus = field(default_factory=CertificateSigningRequestStatus)
    """status contains information about whether the request is approved or denied, and the certificate issued by the
    signer, or the failure condition indicating signer failure.
    """
