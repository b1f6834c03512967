"""The storage class of a new cluster: `standard`, as kind creates it."""

from __future__ import annotations

from contextlib import suppress

from konverge.client import Client
from konverge.errors import AlreadyExists
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import ObjectMeta
from konverge_cluster.volumes.annotations import DEFAULT_CLASS
from konverge_cluster.volumes.provisioner import LOCAL_PATH

__all__ = ["create_default_class"]


async def create_default_class(client: Client) -> None:
    """Create the default class `standard`: a directory on the node of the pod, which cannot be expanded."""
    standard = StorageClass(
        metadata=ObjectMeta(name="standard", annotations={DEFAULT_CLASS: "true"}),
        provisioner=LOCAL_PATH,
        reclaim_policy="Delete",
        volume_binding_mode="WaitForFirstConsumer",
    )
    with suppress(AlreadyExists):
        await client.create(standard)
