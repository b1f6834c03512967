"""The default roles and bindings: those that a real API server creates when it starts.

They are data of a real server (`tools/generate_builtins.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from konverge_cluster.api.cluster import Cluster
from konverge_cluster.authorization.policies import GROUP
from konverge_cluster.bootstrap import store_object
from konverge_cluster.builtins.addresses import StoredServiceIPs
from konverge_cluster.builtins.data import load
from konverge_cluster.builtins.registration import register_builtins
from konverge_cluster.storage import Entry

__all__ = ["create_default_roles"]


def create_default_roles(cluster: Cluster) -> None:
    """Create the default roles and bindings in an empty cluster."""
    now = cluster.now().encode()
    for each in _templates():
        uid, revision = cluster.new_uid(), cluster.storage.next_revision
        raw = each.entry.raw.replace(each.uid, uid.encode()).replace(each.now, now)
        raw = raw.replace(each.revision, b'"%d"' % revision)
        collection = cluster.storage.collection((GROUP, each.plural))
        cluster.storage.put(collection, replace(each.entry, raw=raw, uid=uid, revision=revision, cache={}))


@dataclass(frozen=True, slots=True)
class _Template:
    """An object of another cluster, and what differs in each cluster."""

    plural: str
    entry: Entry
    uid: bytes
    now: bytes
    revision: bytes


@cache
def _templates() -> tuple[_Template, ...]:
    """Return the objects, encoded once: a server starts in milliseconds, and there are more than a hundred of them."""
    cluster = Cluster(clock=lambda: 0.0)
    register_builtins(cluster.registry, StoredServiceIPs(cluster.storage))
    for plural, items in load("roles").items():
        for item in items:
            store_object(cluster, GROUP, "v1", plural, item)
    now = cluster.now().encode()
    return tuple(
        _Template(plural, entry, entry.uid.encode(), now, b'"%d"' % entry.revision)
        for plural in load("roles")
        for entry in cluster.storage.collection((GROUP, plural)).entries()
    )
