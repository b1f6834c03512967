"""Bootstrap objects: the namespaces and the few other objects that clients expect in every cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from konverge_cluster.api.cluster import Cluster, key_of
from konverge_cluster.api.documents import decode_and_default
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.api.writes import endpoint_of, entry_of
from konverge_cluster.patches import track_update

__all__ = ["bootstrap", "store_object", "store_server_service"]

_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_SERVICE_ADDRESS: Final = "10.96.0.1"
_PRIORITIES: Final = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
}


def bootstrap(cluster: Cluster, *, address: str = "127.0.0.1", port: int = 6443) -> None:
    """Store the bootstrap objects in an empty cluster; `address` and `port` are those of its API server."""
    for group, version, plural, document in _objects(address, port):
        if cluster.registry.find(group, version, plural) is not None:
            store_object(cluster, group, version, plural, document)


def store_server_service(cluster: Cluster, cluster_ip: str, *, port: int = 6443) -> None:
    """Store the Service of the API server with another address."""
    store_object(cluster, "", "v1", "services", _service(port, cluster_ip))


def _objects(address: str, port: int) -> Iterator[tuple[str, str, str, Document]]:
    for name in _NAMESPACES:
        yield "", "v1", "namespaces", {"metadata": {"name": name}}
    yield "", "v1", "services", _service(port, _SERVICE_ADDRESS)
    yield "", "v1", "endpoints", _endpoints(address, port)
    yield "discovery.k8s.io", "v1", "endpointslices", _endpoint_slice(address, port)
    for name, (value, description) in _PRIORITIES.items():
        document = {"metadata": {"name": name}, "value": value, "description": description}
        yield "scheduling.k8s.io", "v1", "priorityclasses", document


def _metadata(**more: Any) -> Document:
    return {"name": "kubernetes", "namespace": "default", **more}


def _service(port: int, address: str) -> Document:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    spec = {"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "ports": ports}
    spec |= {"sessionAffinity": "None", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}
    return {"metadata": _metadata(labels=labels), "spec": spec}


def _endpoints(address: str, port: int) -> Document:
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return {"metadata": _metadata(labels=labels), "subsets": [{"addresses": [{"ip": address}], "ports": ports}]}


def _endpoint_slice(address: str, port: int) -> Document:
    endpoints = [{"addresses": [address], "conditions": {"ready": True}}]
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    labels = {"kubernetes.io/service-name": "kubernetes"}
    return {"metadata": _metadata(labels=labels), "addressType": "IPv4", "endpoints": endpoints, "ports": ports}


def store_object(cluster: Cluster, group: str, version: str, plural: str, document: Document) -> None:
    """Store an object as the server's own write, without admission and validation.

    Raises: LookupError when the resource is not served.
    """
    strategy = cluster.registry.find(group, version, plural)
    if strategy is None:
        raise LookupError(f"{plural}.{group}/{version} is not served")
    kind, now = strategy.info.kind, cluster.now()
    document |= {"kind": kind.kind, "apiVersion": kind.api_version}
    document, _ = decode_and_default(strategy, document)
    metadata = document["metadata"]
    metadata |= {"uid": cluster.new_uid(), "creationTimestamp": now}
    endpoint = endpoint_of(cluster, strategy, "")
    metadata["managedFields"] = track_update(None, document, manager="kube-apiserver", endpoint=endpoint, now=now)
    namespace = metadata.get("namespace", "")
    strategy.prepare_create(document, RequestContext(now=now, namespace=namespace, lookup=cluster.lookup))
    if not metadata["managedFields"]:
        del metadata["managedFields"]
    entry = entry_of(
        key_of(namespace, metadata["name"]), document, strategy.encoding_version, cluster.storage.next_revision
    )
    cluster.storage.put(cluster.collection(strategy), entry)
