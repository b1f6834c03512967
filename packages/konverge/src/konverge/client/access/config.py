"""What a client needs to know to reach an API server, and where it is found.

`load_config` looks in the places that kubectl and Go operators look in, in the order of controller-runtime:

1. the kubeconfig that the caller names;
2. the files in KUBECONFIG;
3. the service account of the pod that this process runs in, unless a context is asked for;
4. `.kube/config` in the home directory.

KONVERGE_CONTEXT and KONVERGE_NAMESPACE stand in for the arguments of that name.
"""

from __future__ import annotations

import os
import platform
import re
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from konverge.client.access.addresses import check_proxy, check_server, environment_proxy, redacted
from konverge.client.access.credentials import ANONYMOUS, Credentials, Identity
from konverge.client.access.in_cluster import SERVICE_ACCOUNT, ServiceAccount, read_service_account, why_not_in_cluster
from konverge.client.access.kubeconfig import Kubeconfig, read_kubeconfig
from konverge.client.access.kubeconfig_cluster import exec_cluster, server_of, tls_of
from konverge.client.access.kubeconfig_user import check_user, credentials_of, impersonation_of
from konverge.client.access.places import Place
from konverge.client.access.tls import Tls
from konverge.client.impersonation import Impersonation
from konverge.errors import ConfigError

__all__ = ["ClientConfig", "load_config"]

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def default_user_agent() -> str:
    """Name us and the platform, as the server's audit log shows it."""
    try:
        version = metadata.version("konverge")
    except metadata.PackageNotFoundError:
        version = "unknown"
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"konverge/{version} ({platform.system().lower()}/{platform.machine()}) python/{python}"


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """An API server, and who we are to it.

    Credentials and TLS material may change over time: ask `credentials.identity()` before each request and
    `ssl_context(identity)` for its connection. Both return the same object until something rotates. Neither is used
    with a plain http:// server: over such a connection no secret is sent.

    Promise: nothing that it shows of itself is secret.
    """

    server: str
    namespace: str = "default"
    credentials: Credentials = ANONYMOUS
    tls: Tls = field(default_factory=Tls)
    proxy: str | None = field(default=None, repr=False)
    impersonation: Impersonation | None = None
    user_agent: str = field(default_factory=default_user_agent)
    disable_compression: bool = False
    origin: str = "arguments"
    """Where all this was found, for logs."""

    def __post_init__(self) -> None:
        place = Place("client config")
        object.__setattr__(self, "server", check_server(self.server, place.at("server")))
        _check_namespace(self.namespace, place.at("namespace"))
        if self.proxy is not None:
            check_proxy(self.proxy, place.at("proxy"))
        if not self.secure:
            object.__setattr__(self, "credentials", ANONYMOUS)

    @property
    def secure(self) -> bool:
        """True when the connection is encrypted."""
        return self.server.startswith("https://")

    @property
    def shown_proxy(self) -> str | None:
        """The proxy without its password, for logs."""
        return redacted(self.proxy)

    def ssl_context(self, identity: Identity | None = None) -> ssl.SSLContext | None:
        """Return the context for a new connection of that identity, None when the server speaks plain http.

        Raises: ConfigError when the client certificate is of no use.
        """
        if not self.secure:
            return None
        return self.tls.context(identity.certificate if identity is not None else None)


def load_config(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Find the cluster to talk to; `environ` is the process's own environment unless it is given.

    Raises: ConfigError that names file and field of what is wrong, or every place that was looked at.
    """
    environ = os.environ if environ is None else environ
    context = context or environ.get("KONVERGE_CONTEXT") or None
    told_by = "argument namespace" if namespace else "environment variable KONVERGE_NAMESPACE"
    namespace = namespace or environ.get("KONVERGE_NAMESPACE") or None
    if namespace is not None:
        _check_namespace(namespace, Place(told_by))
    if kubeconfig is not None:
        path = os.path.expanduser(kubeconfig)
        found = read_kubeconfig([path], skip_missing=False)
        if found.empty:
            raise Place(f"kubeconfig {path}").error("it is empty")
        return _from_kubeconfig(found, context=context, namespace=namespace, environ=environ)
    return _search(context=context, namespace=namespace, environ=environ, service_account=service_account)


def _search(
    *, context: str | None, namespace: str | None, environ: Mapping[str, str], service_account: Path
) -> ClientConfig:
    listed = [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    tried = [] if listed else ["KUBECONFIG is not set"]
    if listed:
        found = read_kubeconfig(listed)
        if not found.empty:
            return _from_kubeconfig(found, context=context, namespace=namespace, environ=environ)
        tried.append(f"KUBECONFIG names only files that are missing or empty: {os.pathsep.join(listed)}")
    if context is None:
        reason = why_not_in_cluster(environ, service_account)
        if reason is None:
            return _from_service_account(read_service_account(environ, service_account), namespace, environ)
        tried.append(reason)
    home = environ.get("HOME", "")
    if not listed and home:
        path = Path(home, ".kube", "config")
        found = read_kubeconfig([path])
        if not found.empty:
            return _from_kubeconfig(found, context=context, namespace=namespace, environ=environ)
        tried.append(f"{path} is missing or empty")
    elif not listed:
        tried.append("HOME is not set")
    raise ConfigError(f"no cluster to talk to: {'; '.join(tried)} (set KUBECONFIG, or pass kubeconfig=...)")


def _from_kubeconfig(
    kubeconfig: Kubeconfig, *, context: str | None, namespace: str | None, environ: Mapping[str, str]
) -> ClientConfig:
    choice = kubeconfig.choose(context)
    server = server_of(choice.cluster)
    own_namespace = choice.context.value.namespace or "default"
    _check_namespace(own_namespace, choice.context.place.at("namespace"))
    secure = server.startswith("https://")
    tls = tls_of(choice.cluster) if secure else Tls()
    proxy = choice.cluster.value.proxy_url
    credentials: Credentials = ANONYMOUS
    if choice.user is not None:
        check_user(choice.user)
    if choice.user is not None and secure:
        credentials = credentials_of(choice.user, cluster=lambda: exec_cluster(choice.cluster, tls), environ=environ)
    return ClientConfig(
        server=server,
        namespace=namespace or own_namespace,
        credentials=credentials,
        tls=tls,
        proxy=check_proxy(proxy, choice.cluster.place.at("proxy-url")) if proxy else environment_proxy(server, environ),
        impersonation=impersonation_of(choice.user) if choice.user is not None else None,
        disable_compression=choice.cluster.value.disable_compression or False,
        origin=f"context {choice.context.name} of {choice.context.place.file}",
    )


def _from_service_account(account: ServiceAccount, namespace: str | None, environ: Mapping[str, str]) -> ClientConfig:
    return ClientConfig(
        server=account.server,
        namespace=namespace or account.namespace,
        credentials=account.credentials,
        tls=account.tls,
        proxy=environment_proxy(account.server, environ),
        origin="the pod's service account",
    )


def _check_namespace(namespace: str, place: Place) -> None:
    if not _DNS_LABEL.fullmatch(namespace):
        raise place.error("expected the name of a namespace", "a DNS label: lower case letters, digits and -")
