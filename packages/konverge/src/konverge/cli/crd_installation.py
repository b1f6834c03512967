"""Install the CRDs of an operator."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.client import Client, has_condition
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.objects import Unstructured

__all__ = ["install_crds"]


async def install_crds(client: Client, crds: Iterable[Unstructured]) -> None:
    """Apply CRDs, and wait until the server serves them.

    Raises: WaitTimeout when a CRD is not established within a minute; ApiError when the server rejects one.
    """
    for crd in crds:
        await client.apply(crd, force=True)
        await client.wait_for(CustomResourceDefinition, crd.name, has_condition("Established"))
