"""The credentials of a control plane: authorities, certificates, an admin's token, kubeconfig files.

etcd has its own certificate authority. With a shared one, every user of the API server could read etcd and bypass RBAC.
"""

from __future__ import annotations

import base64
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path

import yaml

from konverge.testing.certificates import Authority, Pair, write_signing_key

__all__ = ["Credentials"]

ADMIN_GROUP = "system:masters"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# The names and the address of the API server for pods: the first address of the service range.
IN_CLUSTER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")


class Credentials:
    """Every secret of one control plane, as files in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory, "kubernetes")
        self.server = self.authority.sign("kube-apiserver", file="apiserver", hosts=LOOPBACK + IN_CLUSTER)
        self.admin = self.authority.sign("admin", file="admin", groups=[ADMIN_GROUP])
        self.service_accounts = write_signing_key(directory, "service-accounts")
        self.etcd_authority = Authority(directory, "etcd")
        self.etcd_server = self.etcd_authority.sign("etcd", file="etcd", hosts=LOOPBACK)
        self.etcd_client = self.etcd_authority.sign("kube-apiserver", file="etcd-client")
        self.admin_token = secrets.token_urlsafe(24)
        self.tokens_file = _write_private(directory / "tokens.csv", f'{self.admin_token},admin,admin,"{ADMIN_GROUP}"\n')
        self.admin_kubeconfig = directory / "admin.kubeconfig"
        self.url = ""
        self._users = 0

    def write_admin_kubeconfig(self, port: int) -> None:
        """Write the admin's kubeconfig for an API server on that port."""
        self.url = f"https://127.0.0.1:{port}"
        self._write_kubeconfig(self.admin_kubeconfig, user="admin", pair=self.admin)

    def kubeconfig_for(self, user: str, *, groups: Iterable[str] = ()) -> Path:
        """Write a kubeconfig with a new client certificate for that user in those groups."""
        self._users += 1
        pair = self.authority.sign(user, file=f"user-{self._users}", groups=groups)
        return self._write_kubeconfig(self.directory / f"user-{self._users}.kubeconfig", user=user, pair=pair)

    def admin_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts the API server and has the admin's certificate."""
        return _context(self.authority.ca, self.admin)

    def etcd_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts etcd and has a client certificate for it."""
        return _context(self.etcd_authority.ca, self.etcd_client)

    def _write_kubeconfig(self, path: Path, *, user: str, pair: Pair) -> Path:
        # Certificates are embedded, so the file can be copied anywhere.
        ca, cert, key = (_encoded(file) for file in (self.authority.ca.cert, pair.cert, pair.key))
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority-data": ca}}],
            "users": [{"name": user, "user": {"client-certificate-data": cert, "client-key-data": key}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": "default"}}],
        }
        return _write_private(path, yaml.safe_dump(config, sort_keys=False))


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _write_private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _context(ca: Pair, pair: Pair) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca.cert))
    context.load_cert_chain(pair.cert, pair.key)
    return context
