"""A cluster entry of a kubeconfig: the server's address, its CA, and the cluster as an exec plugin gets it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from konverge.client.access.addresses import check_server
from konverge.client.access.files import RotatingValue
from konverge.client.access.kubeconfig import Cluster, Entry
from konverge.client.access.tls import Tls, check_authority

__all__ = ["exec_cluster", "server_of", "tls_of"]

EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def server_of(entry: Entry[Cluster]) -> str:
    """Return the server's address: with http:// if it has no scheme, with its path prefix, without a query."""
    location = entry.location.child("server")
    server = entry.value.server
    if not server:
        raise location.error("no server is set", "https://host:port")
    return check_server(server, location)


def tls_of(entry: Entry[Cluster]) -> Tls:
    """Return the TLS settings for an https server; the CA is read and checked."""
    cluster = entry.value
    insecure = cluster.insecure_skip_tls_verify or False
    source = entry.content("certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority)
    if source is None:
        return Tls(server_name=cluster.tls_server_name or None, insecure=insecure)
    location = entry.location.child(f"certificate-authority{'-data' if cluster.certificate_authority_data else ''}")
    if insecure:
        raise location.error("a certificate authority and insecure-skip-tls-verify exclude each other")
    ca = RotatingValue([source], partial(check_authority, location=location))
    ca.get()
    return Tls(ca=ca, server_name=cluster.tls_server_name or None)


def exec_cluster(entry: Entry[Cluster], tls: Tls) -> Mapping[str, Any]:
    """Return the cluster as an exec plugin gets it in KUBERNETES_EXEC_INFO."""
    cluster, ca = entry.value, tls.ca()
    info = {
        "server": _exec_server(cluster.server or ""),
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(ca).decode() if ca else None,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": _exec_extension(entry),
    }
    return {name: value for name, value in info.items() if value}


def _exec_server(server: str) -> str:
    # As kubectl does it: unchanged, except that a server with a path prefix loses its query and fragment.
    parts = urlsplit(server)
    return parts._replace(query="", fragment="").geturl() if len(parts.path) > 1 else server


def _exec_extension(entry: Entry[Cluster]) -> msgspec.Raw | None:
    for index, extension in enumerate(entry.value.extensions or ()):
        if extension is None or extension.name != EXEC_EXTENSION:
            continue
        try:
            return msgspec.Raw(msgspec.json.encode(extension.extension))
        except (TypeError, ValueError):
            raise entry.location.child(f"extensions[{index}].extension").error("it cannot be encoded as JSON") from None
    return None
