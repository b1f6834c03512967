"""Claims of members: growing them, and finding out that one is lost.

To grow, the claims come first, then the StatefulSet, whose claim template cannot be changed in place.

The StatefulSet is deleted alone and created again with the new size. Its pods stay, and the new one adopts them.
"""

from __future__ import annotations

from dataclasses import replace

from konverge import Context, NotFound
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import Quantity
from konverge_operators.database.api import Database
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import selector_of
from konverge_operators.manifests import Json

__all__ = [
    "claim_spec",
    "expand_claims",
    "find_expansion_error",
    "find_lost_claims",
    "is_template_stale",
    "template_size",
]


def claim_spec(database: Database, storage: str) -> Json:
    """Return the spec of the claim of a member."""
    claim: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    if database.spec.storage_class_name is not None:
        claim["storageClassName"] = database.spec.storage_class_name
    return claim


def template_size(database: Database, existing: StatefulSet | None) -> str:
    """Return the size for the claim template: that of the existing StatefulSet, which cannot be changed."""
    size = _size_of(existing)
    return str(database.spec.storage_size) if size is None else size


def is_template_stale(facts: Facts) -> bool:
    """Report whether the claims have the size of the spec and the StatefulSet has not."""
    size = _size_of(facts.stateful_set)
    return (
        size is not None and not facts.claims_to_resize and Quantity(size) != Quantity(facts.database.spec.storage_size)
    )


async def find_expansion_error(facts: Facts, ctx: Context) -> str:
    """Return why the claims cannot grow, or "". It asks for the storage class only if one has to grow."""
    for name in {one.spec.storage_class_name or "" for one in facts.claims_to_resize if not _is_requested(facts, one)}:
        if not name:
            return "the claims have no storage class: their size cannot change"
        try:
            found = await ctx.client.get(StorageClass, name)
        except NotFound:
            return f"the storage class {name} does not exist any more"
        if not found.allow_volume_expansion:
            return f"the storage class {name} does not allow expansion"
    return ""


async def find_lost_claims(facts: Facts, ctx: Context) -> tuple[str, ...]:
    """Return the members that run on a claim that does not exist any more: the server decides, a cache may be late."""
    pods = [pod for pod in facts.pods if pod.metadata.deletion_timestamp is None and not facts.has_claim(pod)]
    if not pods:
        return ()
    labels = ",".join(f"{name}={value}" for name, value in selector_of(facts.database).items())
    claims = await ctx.client.list(PersistentVolumeClaim, namespace=facts.database.namespace, labels=labels)
    current = replace(facts, claims=tuple(claims))
    return tuple(pod.name for pod in pods if not current.has_claim(pod))


async def expand_claims(facts: Facts, ctx: Context) -> None:
    """Request the size of the spec for each claim of a member that is smaller."""
    for claim in facts.claims_to_resize:
        if _is_requested(facts, claim):
            continue
        size = str(facts.database.spec.storage_size)
        change = {"spec": {"resources": {"requests": {"storage": size}}}}
        await ctx.client.patch(PersistentVolumeClaim, claim.name, change, namespace=claim.namespace)
        ctx.event("ExpandingStorage", f"{claim.name} grows to {size}", action="Expand")


def _is_requested(facts: Facts, claim: PersistentVolumeClaim) -> bool:
    resources = claim.spec.resources
    requested = (resources.requests or {}).get("storage", "0") if resources is not None else "0"
    return Quantity(str(requested)) >= Quantity(facts.database.spec.storage_size)


def _size_of(found: StatefulSet | None) -> str | None:
    if found is None or not found.spec.volume_claim_templates:
        return None
    resources = found.spec.volume_claim_templates[0].spec.resources
    return str((resources.requests or {})["storage"]) if resources is not None else None
