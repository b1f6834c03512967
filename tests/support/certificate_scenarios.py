"""Certificate requests: which are stored, approved and signed, and who their certificates are."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from authentication_clusters import AuthenticationCluster, Pair, Reply, masked
from authentication_scenarios import Answers, Json
from konverge.certificates import make_key, private_pem

__all__ = ["CERTIFICATE_SCENARIOS", "client_certificate"]

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
NODE = "system:node:a"
NODES = ("system:nodes",)
KUBELET_USAGES = ("digital signature", "client auth")
SERVING_USAGES = ("digital signature", "server auth")


def signing_request(name: str, groups: Iterable[str] = (), names: Sequence[x509.GeneralName] = ()) -> Pair:
    """Return a request and its key, as PEM."""
    key = make_key()
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), private_pem(key)


def create(
    cluster: AuthenticationCluster,
    name: str,
    request: bytes,
    *,
    signer: str = CLIENT,
    usages: Iterable[str] = ("client auth",),
    **more: Any,
) -> Reply:
    encoded = base64.b64encode(request).decode()
    spec = {"request": encoded, "signerName": signer, "usages": list(usages), **more}
    return cluster.request("POST", REQUESTS, {"metadata": {"name": name}, "spec": spec})


def without_request(reply: Reply) -> Any:
    """Return the comparable part of a response without the request, whose key is random."""
    status, document, warnings = reply.masked
    if isinstance(document.get("spec"), dict):
        document["spec"].pop("request")
    return status, document.get("spec", document), warnings


def decide(cluster: AuthenticationCluster, name: str, decision: str = "Approved", **how: Any) -> Reply:
    document = cluster.good("GET", f"{REQUESTS}/{name}")
    document["status"]["conditions"] = [{"type": decision, "status": "True", "reason": "R", "message": "M"}]
    return cluster.request("PUT", f"{REQUESTS}/{name}/approval", document, **how)


def signed(cluster: AuthenticationCluster, name: str) -> bytes:
    """Wait for the certificate of a request."""

    def find() -> Any:
        return cluster.good("GET", f"{REQUESTS}/{name}")["status"].get("certificate")

    return base64.b64decode(cluster.until(find))


def client_certificate(cluster: AuthenticationCluster, name: str, groups: Iterable[str] = ()) -> Pair:
    """Return a client certificate that the cluster has signed, and its key."""
    request, key = signing_request(name, groups)
    assert create(cluster, name, request).status == 201
    assert decide(cluster, name).status == 200
    return signed(cluster, name), key


def extensions(certificate: bytes) -> Any:
    """Return what both signers decide: subject, extensions, usages."""
    parsed = x509.load_pem_x509_certificate(certificate)
    found = {each.oid.dotted_string: (each.critical, repr(each.value)) for each in parsed.extensions}
    found.pop("2.5.29.35")  # identifies the authority
    return parsed.subject.rfc4514_string(), sorted(found.items())


def client_certificates(cluster: AuthenticationCluster) -> Answers:
    """An approved request gets a certificate, and the certificate is a user."""
    request, key = signing_request("alice", ["devs", "ops"])
    answers: Answers = {"created": without_request(create(cluster, "alice", request))}
    answers["approved"] = decide(cluster, "alice").status
    pair = (signed(cluster, "alice"), key)
    answers["certificate"] = extensions(pair[0])
    answers["user"] = masked(cluster.whoami(pair=pair))
    answers["before a token"] = masked(cluster.whoami(pair=pair, token="nonsense"))
    answers["conditions"] = masked(cluster.good("GET", f"{REQUESTS}/alice")["status"]["conditions"])
    short, _ = signing_request("short")
    usages = ("client auth", "digital signature", "key encipherment")
    create(cluster, "short", short, usages=usages, expirationSeconds=3600)
    decide(cluster, "short")
    certificate = signed(cluster, "short")
    parsed = x509.load_pem_x509_certificate(certificate)
    answers["short"] = extensions(certificate)
    answers["lifetime"] = (parsed.not_valid_after_utc - parsed.not_valid_before_utc).total_seconds()
    return answers


def rejected_requests(cluster: AuthenticationCluster) -> Answers:
    """Requests that are not stored."""
    request, _ = signing_request("x")
    content = bytearray(base64.b64decode(b"".join(request.splitlines()[1:-1])))
    content[-3] ^= 1
    lines = request.splitlines()
    broken = b"\n".join([lines[0], base64.b64encode(bytes(content)), lines[-1]])
    junk = b"\n".join([lines[0], b"!!", lines[-1]])
    replies = {
        "admins": create(cluster, "x", signing_request("x", ["system:masters"])[0]),
        "no PEM": create(cluster, "x", b"junk"),
        "no base64": create(cluster, "x", junk),
        "signature": create(cluster, "x", broken),
    }
    sent = base64.b64encode(broken).decode()
    return {label: reply.message.replace(sent, "<request>") for label, reply in replies.items()}


def failed_requests(cluster: AuthenticationCluster) -> Answers:
    """Approved requests that the signer does not allow."""
    dns, uri = x509.DNSName("a"), x509.UniformResourceIdentifier("http://a")
    cases: dict[str, tuple[Pair, str, Sequence[str]]] = {
        "server": (signing_request("a"), CLIENT, ("client auth", "server auth")),
        "no-client": (signing_request("a"), CLIENT, ("digital signature",)),
        "kubelet-group": (signing_request(NODE, ["x"]), KUBELET, KUBELET_USAGES),
        "kubelet-name": (signing_request("a", NODES), KUBELET, KUBELET_USAGES),
        "kubelet-usages": (signing_request(NODE, NODES), KUBELET, ("digital signature",)),
        "kubelet-host": (signing_request(NODE, NODES, [dns]), KUBELET, KUBELET_USAGES),
        "serving-no-host": (signing_request(NODE, NODES), SERVING, SERVING_USAGES),
        "serving-uri": (signing_request(NODE, NODES, [dns, uri]), SERVING, SERVING_USAGES),
        "serving-usages": (signing_request(NODE, NODES, [dns]), SERVING, KUBELET_USAGES),
        "serving-name": (signing_request("a", NODES, [dns]), SERVING, SERVING_USAGES),
    }
    for name, (pair, signer, usages) in cases.items():
        assert create(cluster, name, pair[0], signer=signer, usages=usages).status == 201
        assert decide(cluster, name).status == 200
    return {name: _failure(cluster, name) for name in cases}


def _failure(cluster: AuthenticationCluster, name: str) -> Any:
    def find() -> Json | None:
        conditions = cluster.good("GET", f"{REQUESTS}/{name}")["status"]["conditions"]
        return next((each for each in conditions if each["type"] == "Failed"), None)

    return masked(cluster.until(find))


def serving_certificates(cluster: AuthenticationCluster) -> Answers:
    """A node gets a certificate for its names."""
    request, _ = signing_request(NODE, NODES, [x509.DNSName("a")])
    create(cluster, "serving", request, signer=SERVING, usages=SERVING_USAGES)
    decide(cluster, "serving")
    return {"certificate": extensions(signed(cluster, "serving"))}


CERTIFICATE_SCENARIOS = (client_certificates, rejected_requests, failed_requests, serving_certificates)
