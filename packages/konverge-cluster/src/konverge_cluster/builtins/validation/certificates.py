"""Validation of CertificateSigningRequests."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from konverge.objects.names import dns_label_errors, dns_subdomain_errors
from konverge_cluster.api.field_errors import duplicate, invalid, quote, required, unsupported
from konverge_cluster.builtins.validation.values import FieldErrors

__all__ = ["validate_certificate_conditions", "validate_certificate_request"]

Spec = dict[str, Any]

_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_DECISIONS: Final = ("Approved", "Denied", "Failed")
_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE REQUEST-----\s*([A-Za-z0-9+/=\s]*)-----END CERTIFICATE REQUEST-----", re.ASCII
)


def validate_certificate_request(new: Spec) -> FieldErrors:
    spec = new["spec"]
    request = spec.get("request")
    error = _request_error(base64.b64decode(request or ""))
    if error:
        yield invalid("spec.request", request, error)
    usages = spec.get("usages", [])
    if not usages:
        yield required("spec.usages")
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            yield unsupported(f"spec.usages[{index}]", usage, _USAGES)
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            yield duplicate(f"spec.usages[{index}]", usage)
    yield from _validate_signer(spec["signerName"], "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", seconds, text)


def _request_error(request: bytes) -> str:
    block = _PEM.search(request)
    if block is None:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        parsed = x509.load_der_x509_csr(base64.b64decode(block[1]))
    except ValueError:
        return "asn1: syntax error"
    if parsed.is_signature_valid:
        return ""
    elliptic = isinstance(parsed.public_key(), ec.EllipticCurvePublicKey)
    return "x509: ECDSA verification failure" if elliptic else "crypto/rsa: verification error"


def _validate_signer(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    if name == "kubernetes.io/legacy-unknown":
        yield invalid(path, name, "the legacy signerName is not allowed via this API version")
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, text)
        return
    yield from _validate_labels(domain, dns_label_errors, path)
    if "." not in domain:
        yield invalid(path, domain, "should be a domain with at least two segments separated by dots")
    yield from _validate_labels(rest, dns_subdomain_errors, path)


def _validate_labels(name: str, rule: Any, path: str) -> FieldErrors:
    for label in name.split("."):
        errors = rule(label)
        for text in errors:
            yield invalid(path, name, f"validating label {quote(label)}: {text}")
        if errors:
            return


def validate_certificate_conditions(new: Spec, _old: Spec) -> FieldErrors:
    path = "status.conditions"
    seen: set[str] = set()
    for index, condition in enumerate(new["status"].get("conditions", ())):
        where, kind, status = f"{path}[{index}]", condition["type"], condition["status"]
        if not kind:
            yield required(f"{where}.type")
        allowed = ("True",) if kind in _DECISIONS else ("False", "True", "Unknown")
        if not status:
            yield required(f"{where}.status")
        elif status not in allowed:
            yield unsupported(f"{where}.status", status, allowed)
        if {kind} | (seen & {"Approved", "Denied"}) >= {"Approved", "Denied"}:
            yield invalid(path, kind, "Approved and Denied conditions are mutually exclusive")
        if kind in seen:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)
