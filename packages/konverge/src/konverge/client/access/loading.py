"""Where the configuration of a client comes from.

`load_config` uses the sources of kubectl and Go operators, in the order of controller-runtime:

1. the kubeconfig argument;
2. the files in KUBECONFIG;
3. the service account of the pod that this process runs in, unless a context is named;
4. `.kube/config` in the home directory.

KONVERGE_CONTEXT and KONVERGE_NAMESPACE are the defaults of the arguments of that name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from konverge.client.access.addresses import check_proxy, environment_proxy
from konverge.client.access.config import ClientConfig, check_namespace
from konverge.client.access.credentials import ANONYMOUS, Credentials
from konverge.client.access.in_cluster import SERVICE_ACCOUNT, ServiceAccount, read_service_account, why_not_in_cluster
from konverge.client.access.kubeconfig import Kubeconfig, read_kubeconfig
from konverge.client.access.kubeconfig_cluster import exec_cluster, server_of, tls_of
from konverge.client.access.kubeconfig_user import check_user, credentials_of, impersonation_of
from konverge.client.access.locations import Location
from konverge.client.access.tls import Tls
from konverge.errors import ConfigError

__all__ = ["load_config"]


def load_config(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Return the configuration of the cluster to connect to; `environ` is `os.environ` unless it is given.

    Raises: ConfigError that names the file and field with the error, or all sources without a configuration.
    """
    environ = os.environ if environ is None else environ
    context = context or environ.get("KONVERGE_CONTEXT") or None
    source = "argument namespace" if namespace else "environment variable KONVERGE_NAMESPACE"
    namespace = namespace or environ.get("KONVERGE_NAMESPACE") or None
    if namespace is not None:
        check_namespace(namespace, Location(source))
    if kubeconfig is not None:
        path = os.path.expanduser(kubeconfig)
        found = read_kubeconfig([path], skip_missing=False)
        if found.empty:
            raise Location(f"kubeconfig {path}").error("it is empty")
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
        tried.append(f"all files of KUBECONFIG are missing or empty: {os.pathsep.join(listed)}")
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
    raise ConfigError(f"no cluster is configured: {'; '.join(tried)} (set KUBECONFIG, or pass kubeconfig=...)")


def _from_kubeconfig(
    kubeconfig: Kubeconfig, *, context: str | None, namespace: str | None, environ: Mapping[str, str]
) -> ClientConfig:
    resolved = kubeconfig.resolve(context)
    server = server_of(resolved.cluster)
    own_namespace = resolved.context.value.namespace or "default"
    check_namespace(own_namespace, resolved.context.location.child("namespace"))
    secure = server.startswith("https://")
    tls = tls_of(resolved.cluster) if secure else Tls()
    credentials: Credentials = ANONYMOUS
    if resolved.user is not None:
        check_user(resolved.user)
    if resolved.user is not None and secure:
        credentials = credentials_of(
            resolved.user, cluster=lambda: exec_cluster(resolved.cluster, tls), environ=environ
        )
    proxy_url = resolved.cluster.value.proxy_url
    location = resolved.cluster.location.child("proxy-url")
    return ClientConfig(
        server=server,
        namespace=namespace or own_namespace,
        credentials=credentials,
        tls=tls,
        proxy=check_proxy(proxy_url, location) if proxy_url else environment_proxy(server, environ),
        impersonation=impersonation_of(resolved.user) if resolved.user is not None else None,
        disable_compression=resolved.cluster.value.disable_compression or False,
        origin=f"context {resolved.context.name} of {resolved.context.location.file}",
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
