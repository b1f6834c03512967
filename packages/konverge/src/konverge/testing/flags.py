"""The flags of etcd, kube-apiserver and kube-controller-manager, as plain functions.

The flags are for tests: everything listens on loopback with TLS, RBAC is on, nothing waits for a disk.
"""

from __future__ import annotations

from pathlib import Path

from konverge.testing.credentials import Credentials

__all__ = ["apiserver_flags", "audit_flags", "controller_manager_flags", "etcd_flags", "without_service_accounts"]

HOST = "127.0.0.1"

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""


def etcd_flags(credentials: Credentials, *, client_port: int, peer_port: int) -> list[str]:
    """Return the flags of a single member without fsync: data of a test need not survive a power failure."""
    client, peer = f"https://{HOST}:{client_port}", f"https://{HOST}:{peer_port}"
    pair, ca = credentials.etcd_server, credentials.etcd_authority.ca.cert
    return [
        f"--data-dir={credentials.directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--cert-file={pair.cert}",
        f"--key-file={pair.key}",
        f"--trusted-ca-file={ca}",
        "--client-cert-auth",
        f"--peer-cert-file={pair.cert}",
        f"--peer-key-file={pair.key}",
        f"--peer-trusted-ca-file={ca}",
        "--peer-client-cert-auth",
    ]


def apiserver_flags(credentials: Credentials, *, port: int, etcd_port: int) -> list[str]:
    """Return the flags for RBAC, authentication by certificate and token, and service account tokens."""
    return [
        f"--etcd-servers=https://{HOST}:{etcd_port}",
        f"--etcd-cafile={credentials.etcd_authority.ca.cert}",
        f"--etcd-certfile={credentials.etcd_client.cert}",
        f"--etcd-keyfile={credentials.etcd_client.key}",
        f"--bind-address={HOST}",
        # Without it the server looks for a default route, and does not start on a machine without a network.
        f"--advertise-address={HOST}",
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.server.cert}",
        f"--tls-private-key-file={credentials.server.key}",
        f"--client-ca-file={credentials.authority.ca.cert}",
        f"--token-auth-file={credentials.tokens_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.service_accounts.cert}",
        f"--service-account-signing-key-file={credentials.service_accounts.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        # Endpoints must not be loopback addresses, and this server has no other address.
        "--endpoint-reconciler-type=none",
    ]


def without_service_accounts() -> list[str]:
    """Return the flags that disable the ServiceAccount plugin: it rejects pods without a service account, and without
    a controller manager nothing creates service accounts."""
    return ["--disable-admission-plugins=ServiceAccount"]


def audit_flags(directory: Path) -> list[str]:
    """Return the flags for a line per request in audit.jsonl, written before the response is sent."""
    policy = directory / "audit-policy.yaml"
    policy.write_text(AUDIT_POLICY)
    return [f"--audit-policy-file={policy}", f"--audit-log-path={directory / 'audit.jsonl'}"]


def controller_manager_flags(credentials: Credentials, *, port: int) -> list[str]:
    """Return the flags for every controller, each with its own service account, without leader election."""
    ca, kubeconfig = credentials.authority.ca, credentials.admin_kubeconfig
    return [
        f"--kubeconfig={kubeconfig}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.server.cert}",
        f"--tls-private-key-file={credentials.server.key}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        # Forty controllers request accounts and tokens at once; the default of 20 requests a second is slow for that.
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        f"--service-account-private-key-file={credentials.service_accounts.key}",
        f"--root-ca-file={ca.cert}",
        f"--cluster-signing-cert-file={ca.cert}",
        f"--cluster-signing-key-file={ca.key}",
    ]
