"""What every namespace has: an account for its pods, and the certificate by which they know the API server."""

from __future__ import annotations

from typing import Final

from konverge.client import Client
from konverge.errors import AlreadyExists, ApiError, NotFound
from konverge.k8s.core.v1 import ConfigMap, ServiceAccount
from konverge.objects import ObjectMeta
from konverge_cluster.server_messages import is_namespace_terminating

__all__ = ["ACCOUNT", "ROOT_CA", "furnish"]

ACCOUNT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
_ABOUT: Final = "kubernetes.io/description"
_WORDS: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes"
    " clusters."
)


async def furnish(client: Client, namespace: str, root_ca: str) -> None:
    """Make what is missing, and put the certificate right; a namespace that goes meanwhile needs nothing."""
    try:
        await _account(client, namespace)
        await _certificate(client, namespace, root_ca)
    except AlreadyExists:
        pass  # somebody was faster
    except ApiError as error:
        gone = isinstance(error, NotFound)
        if not (gone or is_namespace_terminating(error)):
            raise


async def _account(client: Client, namespace: str) -> None:
    try:
        await client.get(ServiceAccount, ACCOUNT, namespace=namespace)
    except NotFound:
        await client.create(ServiceAccount(metadata=ObjectMeta(name=ACCOUNT, namespace=namespace)))


async def _certificate(client: Client, namespace: str, root_ca: str) -> None:
    data = {"ca.crt": root_ca}
    try:
        found = await client.get(ConfigMap, ROOT_CA, namespace=namespace)
    except NotFound:
        metadata = ObjectMeta(name=ROOT_CA, namespace=namespace, annotations={_ABOUT: _WORDS})
        await client.create(ConfigMap(metadata=metadata, data=data))
        return
    if found.data != data or not found.metadata.annotations.get(_ABOUT):
        found.data = data
        found.metadata.annotations[_ABOUT] = _WORDS
        await client.update(found)
