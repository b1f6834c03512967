"""Token Secrets and certificate requests on the embedded cluster, on virtual time."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from konverge.certificates import make_key
from konverge.errors import NotFound
from konverge.k8s.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
)
from konverge.k8s.core.v1 import Secret, ServiceAccount
from konverge.objects import ObjectMeta
from konverge.testing import settle
from konverge_cluster import EmbeddedCluster

TYPE = "kubernetes.io/service-account-token"


def token_secret(name: str, account: str) -> Secret:
    annotations = {"kubernetes.io/service-account.name": account}
    return Secret(metadata=ObjectMeta(name=name, namespace="default", annotations=annotations), type=TYPE)


async def test_a_token_secret_is_filled_refilled_and_deleted_with_its_account() -> None:
    async with EmbeddedCluster(nodes=0) as cluster:
        client = cluster.client()
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
        await client.create(token_secret("t", "robot"))
        await settle()
        secret = await client.get(Secret, "t", namespace="default")
        token = secret.data["token"].decode()
        assert secret.data["namespace"] == b"default"
        assert secret.data["ca.crt"] == cluster.server.authority.certificate
        found = cluster.server.authenticator.tokens.authenticate(token)
        assert found is not None
        assert found[0].name == "system:serviceaccount:default:robot"

        await client.patch(Secret, secret.key, {"data": {"token": None, "ca.crt": "eA=="}})
        await settle()
        refilled = await client.get(Secret, "t", namespace="default")
        assert refilled.data["token"]
        assert refilled.data["ca.crt"] == cluster.server.authority.certificate

        await client.delete(ServiceAccount, "robot", namespace="default")
        await settle()
        with pytest.raises(NotFound):
            await client.get(Secret, "t", namespace="default")


async def test_an_approved_request_is_signed_and_a_denied_one_is_not() -> None:
    async with EmbeddedCluster(nodes=0) as cluster:
        client = cluster.client()
        key = make_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
        request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
        pem = request.public_bytes(serialization.Encoding.PEM)
        signer = "kubernetes.io/kube-apiserver-client"
        for each in ("Approved", "Denied", "Nothing"):
            spec = CertificateSigningRequestSpec(request=pem, signer_name=signer, usages=["client auth"])
            created = await client.create(CertificateSigningRequest(metadata=ObjectMeta(name=each.lower()), spec=spec))
            await settle()
            if each != "Nothing":
                condition = CertificateSigningRequestCondition(type=each, status="True")
                created.status.conditions = [condition]
                await client.write_subresource(created, "approval", created, method="PUT")
        await settle()

        found = {each.name: each.status.certificate for each in await client.list(CertificateSigningRequest)}
        assert found["denied"] is None
        assert found["nothing"] is None
        signed = x509.load_pem_x509_certificate(found["approved"] or b"")
        assert signed.subject.rfc4514_string() == "CN=alice"
        signed.verify_directly_issued_by(cluster.server.authority.identity.certificate)
