"""The Secrets with tokens of service accounts (type `kubernetes.io/service-account-token`).

Such a Secret names its account in an annotation. It gets the token, the CA bundle and the namespace, and it is deleted
with the account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from konverge.cache import CacheOptions, Event
from konverge.client import Client
from konverge.controller import Controller, controller_for
from konverge.errors import Conflict, NotFound
from konverge.k8s.core.v1 import Secret, ServiceAccount
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler
from konverge.triggers import CacheReader, anything
from konverge_cluster.status_writes import controller_client

__all__ = ["GenerateToken", "TokenSecretReconciler", "token_secret_controller"]

GenerateToken: TypeAlias = Callable[[tuple[str, str, str], str], str]
"""Returns a token for an account (namespace, name, uid) and a Secret's name."""

_TYPE: Final = "kubernetes.io/service-account-token"
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


class TokenSecretReconciler(Reconciler[Secret]):
    """Fills the Secrets of existing accounts, and deletes those of accounts that do not exist."""

    def __init__(self, root_ca: Callable[[], bytes], generate: GenerateToken) -> None:
        self._root_ca = root_ca
        self._generate = generate

    async def reconcile(self, obj: Secret, ctx: Context) -> None:
        """Fill or delete one Secret."""
        name, uid = (obj.metadata.annotations.get(each, "") for each in (_ACCOUNT_NAME, _ACCOUNT_UID))
        if not name:
            return
        client = controller_client(ctx)
        account = await _find(client, Key(obj.namespace, name))
        if account is None or uid not in ("", account.uid):
            await _delete(client, obj)
        else:
            await self._fill(client, obj, account)

    async def _fill(self, client: Client, secret: Secret, account: ServiceAccount) -> None:
        data = dict(secret.data)
        data["ca.crt"] = self._root_ca()
        data["namespace"] = data.get("namespace") or secret.namespace.encode()
        if not data.get("token"):
            data["token"] = self._generate((account.namespace, account.name, account.uid), secret.name).encode()
        if data == secret.data:
            return
        secret.data = data
        secret.metadata.annotations |= {_ACCOUNT_NAME: account.name, _ACCOUNT_UID: account.uid}
        try:
            await client.update(secret)
        except (Conflict, NotFound):
            return  # the event of the other change is reconciled


async def _find(client: Client, key: Key) -> ServiceAccount | None:
    try:
        return await client.get(ServiceAccount, key)
    except NotFound:
        return None


async def _delete(client: Client, secret: Secret) -> None:
    try:
        await client.delete(secret)
    except (NotFound, Conflict):
        return


def _to_secrets(event: Event, reader: CacheReader) -> Iterable[Key]:
    """Map an account to its Secrets; there are few of this type, so that no index is needed."""
    secrets = reader.list(Secret, namespace=event.key.namespace)
    return [each.key for each in secrets if each.metadata.annotations.get(_ACCOUNT_NAME) == event.key.name]


def token_secret_controller(root_ca: Callable[[], bytes], generate: GenerateToken) -> Controller[Secret]:
    """Return the controller of token Secrets; `root_ca` returns the CA bundle of the API server."""
    builder = controller_for(Secret).named("serviceaccount-token").predicate(anything)
    builder.options(CacheOptions(fields=f"type={_TYPE}"))
    builder.watches(ServiceAccount, _to_secrets, options=CacheOptions(metadata_only=True))
    builder.needs(Secret, "update", "delete").needs(ServiceAccount, "get")
    return builder.build(TokenSecretReconciler(root_ca, generate))
