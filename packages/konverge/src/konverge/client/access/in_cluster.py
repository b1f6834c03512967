"""The service account that a kubelet mounts into a pod: token, CA and namespace, all of them files.

The kubelet replaces token and CA while the pod runs, by swapping a symbolic link.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from konverge.client.access.addresses import check_server
from konverge.client.access.credentials import StoredCredentials, bearer
from konverge.client.access.files import NamedFile, Rotating, read_bounded
from konverge.client.access.places import Place
from konverge.client.access.tls import Tls, check_authority

__all__ = ["SERVICE_ACCOUNT", "ServiceAccount", "read_service_account", "why_not_in_cluster"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def why_not_in_cluster(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> str | None:
    """Say why this process is not in a pod with a service account; None when it is."""
    unset = [name for name in (HOST, PORT) if not environ.get(name)]
    if unset:
        return f"not in a pod ({' and '.join(unset)} not set)"
    if not (directory / "token").is_file():
        return f"in a pod without a service account (no file {directory / 'token'}: automountServiceAccountToken?)"
    return None


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The way to the API server of the cluster that this process runs in."""

    server: str
    namespace: str
    credentials: StoredCredentials
    tls: Tls


def read_service_account(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> ServiceAccount:
    """Read the files once, so that what is wrong with them is said now; from then on they are read again.

    Assumes: `why_not_in_cluster` finds nothing.

    Raises: ConfigError when a file is of no use.
    """
    place = Place("service account")
    token_at, ca_at = place.at("token"), place.at("ca.crt")
    token = Rotating([NamedFile(directory / "token", token_at)], partial(bearer, place=token_at))
    token.get()
    ca = Rotating([NamedFile(directory / "ca.crt", ca_at)], partial(check_authority, place=ca_at))
    ca.get()
    address = f"https://{_bracketed(environ[HOST])}:{environ[PORT]}"
    return ServiceAccount(
        server=check_server(address, Place(f"environment variables {HOST} and {PORT}")),
        namespace=environ.get("POD_NAMESPACE") or _mounted_namespace(directory / "namespace", place),
        credentials=StoredCredentials(token=token),
        tls=Tls(ca=ca),
    )


def _bracketed(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[{host}]" if address.version == 6 else host


def _mounted_namespace(path: Path, place: Place) -> str:
    if not path.is_file():
        return "default"
    return read_bounded(path, place.at("namespace"), limit=1024).decode("utf-8", "replace").strip() or "default"
