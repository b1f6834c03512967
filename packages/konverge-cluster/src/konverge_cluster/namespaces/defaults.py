"""The defaults of every namespace: the service account `default` and the CA bundle of the API server."""

from __future__ import annotations

from typing import Final

from konverge.client import Client
from konverge.errors import AlreadyExists, ApiError, NotFound
from konverge.k8s.core.v1 import ConfigMap, ServiceAccount
from konverge.objects import ObjectMeta
from konverge_cluster.server_messages import is_namespace_terminating

__all__ = ["ROOT_CA", "SERVICE_ACCOUNT", "create_defaults"]

SERVICE_ACCOUNT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
_DESCRIPTION: Final = "kubernetes.io/description"
_DESCRIPTION_TEXT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes"
    " clusters."
)


async def create_defaults(client: Client, namespace: str, root_ca: str) -> None:
    """Create missing defaults and update the CA bundle; a namespace that is deleted meanwhile needs none."""
    try:
        await _ensure_service_account(client, namespace)
        await _ensure_root_ca(client, namespace, root_ca)
    except AlreadyExists:
        pass  # another client created it first
    except ApiError as error:
        deleted = isinstance(error, NotFound)
        if not (deleted or is_namespace_terminating(error)):
            raise


async def _ensure_service_account(client: Client, namespace: str) -> None:
    try:
        await client.get(ServiceAccount, SERVICE_ACCOUNT, namespace=namespace)
    except NotFound:
        await client.create(ServiceAccount(metadata=ObjectMeta(name=SERVICE_ACCOUNT, namespace=namespace)))


async def _ensure_root_ca(client: Client, namespace: str, root_ca: str) -> None:
    data = {"ca.crt": root_ca}
    try:
        found = await client.get(ConfigMap, ROOT_CA, namespace=namespace)
    except NotFound:
        metadata = ObjectMeta(name=ROOT_CA, namespace=namespace, annotations={_DESCRIPTION: _DESCRIPTION_TEXT})
        await client.create(ConfigMap(metadata=metadata, data=data))
        return
    if found.data != data or not found.metadata.annotations.get(_DESCRIPTION):
        found.data = data
        found.metadata.annotations[_DESCRIPTION] = _DESCRIPTION_TEXT
        await client.update(found)
