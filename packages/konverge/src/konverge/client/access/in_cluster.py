"""The service account that a kubelet mounts into a pod: files with token, CA and namespace.

The kubelet replaces token and CA while the pod runs, by replacing a symbolic link.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from konverge.client.access.addresses import check_server
from konverge.client.access.credentials import StoredCredentials, bearer
from konverge.client.access.files import NamedFile, RotatingValue, read_bounded
from konverge.client.access.locations import Location
from konverge.client.access.tls import Tls, check_authority

__all__ = ["SERVICE_ACCOUNT", "ServiceAccount", "read_service_account", "why_not_in_cluster"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def why_not_in_cluster(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> str | None:
    """Return the reason why this process is not in a pod with a service account, None if it is."""
    unset = [name for name in (HOST, PORT) if not environ.get(name)]
    if unset:
        return f"not in a pod ({' and '.join(unset)} not set)"
    if not (directory / "token").is_file():
        return f"in a pod without a service account (no file {directory / 'token'}: automountServiceAccountToken?)"
    return None


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The access to the API server of the cluster that this process runs in."""

    server: str
    namespace: str
    credentials: StoredCredentials
    tls: Tls


def read_service_account(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> ServiceAccount:
    """Return the service account; the files are read now, to report errors early, and again when they rotate.

    Assumes: `why_not_in_cluster` returns None.

    Raises: ConfigError when a file is unusable.
    """
    location = Location("service account")
    token_location, ca_location = location.child("token"), location.child("ca.crt")
    token = RotatingValue([NamedFile(directory / "token", token_location)], partial(bearer, location=token_location))
    token.get()
    ca = RotatingValue([NamedFile(directory / "ca.crt", ca_location)], partial(check_authority, location=ca_location))
    ca.get()
    address = f"https://{_bracketed(environ[HOST])}:{environ[PORT]}"
    return ServiceAccount(
        server=check_server(address, Location(f"environment variables {HOST} and {PORT}")),
        namespace=environ.get("POD_NAMESPACE") or _mounted_namespace(directory / "namespace", location),
        credentials=StoredCredentials(token=token),
        tls=Tls(ca=ca),
    )


def _bracketed(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[{host}]" if address.version == 6 else host


def _mounted_namespace(path: Path, location: Location) -> str:
    if not path.is_file():
        return "default"
    return read_bounded(path, location.child("namespace"), limit=1024).decode("utf-8", "replace").strip() or "default"
