"""The signers of CertificateSigningRequests: approved requests for the signers of Kubernetes get a certificate.

The certificate has the subject and the names of the request, and the usages that the object lists. Extensions of the
request are dropped. Certificates are valid in real time, which TLS uses, not in the time of the cluster's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from konverge.certificates import Authority, Identity
from konverge.controller import Controller, controller_for
from konverge.k8s.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from konverge.objects import replace
from konverge.reconcile import Context, Reconciler
from konverge.triggers import anything
from konverge_cluster.status_writes import write_status

__all__ = ["CertificateSigner", "certificate_signer", "sign_request"]

_LIFETIME: Final = timedelta(days=365)
_SHORT: Final = timedelta(hours=8)
_BACKDATE: Final = timedelta(minutes=5)
_SHORTEST: Final = timedelta(minutes=10)
_NODES: Final = "system:nodes"
_SUBJECT: Final = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.COMMON_NAME,
    NameOID.SERIAL_NUMBER,
)
_KEY_USAGES: Final[Mapping[str, str]] = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_PURPOSES: Final[Mapping[str, x509.ObjectIdentifier]] = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
}


class CertificateSigner(Reconciler[CertificateSigningRequest]):
    """Signs approved requests; one that its signer does not allow gets the condition Failed."""

    def __init__(self, authority: Callable[[], Authority]) -> None:
        self._authority = authority

    async def reconcile(self, obj: CertificateSigningRequest, ctx: Context) -> None:
        """Sign one request."""
        check = _SIGNERS.get(obj.spec.signer_name)
        types = {each.type for each in obj.status.conditions or () if each.status == "True"}
        if check is None or "Approved" not in types or types & {"Denied", "Failed"} or obj.status.certificate:
            return
        request = x509.load_pem_x509_csr(obj.spec.request)
        error = check(request, obj.spec.usages)
        if error:
            failed = CertificateSigningRequestCondition(
                type="Failed", status="True", reason="SignerValidationFailure", message=error
            )
            status = replace(obj.status, conditions=[*(obj.status.conditions or ()), failed])
        else:
            certificate = sign_request(
                self._authority().identity, request, obj.spec.usages, seconds=obj.spec.expiration_seconds
            )
            status = replace(obj.status, certificate=certificate)
        await write_status(ctx, obj, status)


def sign_request(
    authority: Identity, request: x509.CertificateSigningRequest, usages: Collection[str], *, seconds: int | None = None
) -> bytes:
    """Return the certificate of a request, as PEM. `seconds` may shorten its lifetime, to ten minutes at the least."""
    now = datetime.now(UTC)
    lifetime = _LIFETIME if seconds is None else max(_SHORTEST, min(_LIFETIME, timedelta(seconds=seconds)))
    until = now + lifetime - (timedelta() if lifetime < _SHORT else _BACKDATE)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_subject(request))
        .issuer_name(authority.certificate.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(min(until, authority.certificate.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = _with_usages(builder.add_extension(signer, critical=False), usages)
    names = _alternative_names(request)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _subject(request: x509.CertificateSigningRequest) -> x509.Name:
    """Return the subject as the real signer writes it: in its order, with all values of one attribute together."""
    parts = [request.subject.get_attributes_for_oid(oid) for oid in _SUBJECT]
    return x509.Name([x509.RelativeDistinguishedName(values) for values in parts if values])


def _with_usages(builder: x509.CertificateBuilder, usages: Collection[str]) -> x509.CertificateBuilder:
    used = {_KEY_USAGES[each] for each in usages if each in _KEY_USAGES}
    if used:
        builder = builder.add_extension(
            x509.KeyUsage(**{name: name in used for name in set(_KEY_USAGES.values())}), critical=True
        )
    purposes = [_PURPOSES[each] for each in usages if each in _PURPOSES]
    return builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False) if purposes else builder


def _alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return request.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value  # type: ignore[return-value]
    except x509.ExtensionNotFound:
        return None


def _check_client(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:  # noqa: ARG001
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _check_kubelet_client(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    if _organizations(request) != [_NODES]:
        return "subject organization is not system:nodes"
    for kind in sorted(_name_kinds(request)):
        return f"{kind} subjectAltNames are not allowed"
    return _check_node_name(request) or _check_usages(usages, "client auth")


def _check_kubelet_serving(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    if _organizations(request) != [_NODES]:
        return "subject organization is not system:nodes"
    kinds = _name_kinds(request)
    if not kinds & {"DNS", "IP"}:
        return "DNS or IP subjectAltName is required"
    for kind in sorted(kinds - {"DNS", "IP"}):
        return f"{kind} subjectAltNames are not allowed"
    return _check_usages(usages, "server auth") or _check_node_name(request)


_NAME_KINDS: Final[Mapping[type[x509.GeneralName], str]] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "Email",
    x509.IPAddress: "IP",
    x509.UniformResourceIdentifier: "URI",
}


def _name_kinds(request: x509.CertificateSigningRequest) -> set[str]:
    names = _alternative_names(request)
    return {_NAME_KINDS[type(each)] for each in names or () if type(each) in _NAME_KINDS}


def _organizations(request: x509.CertificateSigningRequest) -> list[str]:
    return [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def _check_node_name(request: x509.CertificateSigningRequest) -> str:
    names = [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    is_node = bool(names) and names[-1].startswith("system:node:")
    return "" if is_node else "subject common name does not begin with system:node:"


def _check_usages(usages: Collection[str], purpose: str) -> str:
    needed = {"digital signature", purpose}
    if set(usages) in (needed, needed | {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(sorted(needed | {'key encipherment'}))}]"


_SIGNERS: Final = {
    "kubernetes.io/kube-apiserver-client": _check_client,
    "kubernetes.io/kube-apiserver-client-kubelet": _check_kubelet_client,
    "kubernetes.io/kubelet-serving": _check_kubelet_serving,
}


def certificate_signer(authority: Callable[[], Authority]) -> Controller[CertificateSigningRequest]:
    """Return the controller that signs requests with the authority of the cluster."""
    builder = controller_for(CertificateSigningRequest).named("certificatesigningrequest-signing").predicate(anything)
    builder.needs(CertificateSigningRequest, "patch", subresource="status")
    return builder.build(CertificateSigner(authority))
