"""The embedded API server: storage, the API with the built-in kinds, and optionally a port.

server = EmbeddedServer()                     # no socket: pass `server.handle` to an InProcessTransport
async with EmbeddedServer() as server:        # on a loopback port, with TLS and a token
    server.write_kubeconfig(path)
"""

from __future__ import annotations

import base64
import os
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterable
from functools import cached_property
from ipaddress import IPv4Network
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from konverge.certificates import Authority, KeyPair
from konverge.objects import wall_clock
from konverge.wire.messages import Request
from konverge_cluster.api.authorization import ADMIN, AUTHENTICATED, UserInfo
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.lifecycle import NamespaceLifecycle
from konverge_cluster.api.negotiation import PROTOBUF
from konverge_cluster.api.responses import Response
from konverge_cluster.api.server import ApiServer
from konverge_cluster.authentication.authenticator import Authenticator
from konverge_cluster.authentication.openid import OpenId
from konverge_cluster.authentication.reviews import TokenReviews, review_self
from konverge_cluster.authentication.token_requests import TokenRequests
from konverge_cluster.authentication.users import Users
from konverge_cluster.authorization import enable_rbac, serve_reviews
from konverge_cluster.bootstrap import bootstrap, store_server_service
from konverge_cluster.builtins.addresses import StoredServiceIPs
from konverge_cluster.builtins.admission import builtin_admission
from konverge_cluster.builtins.protobuf import read_protobuf
from konverge_cluster.builtins.registration import accept_loopback_endpoints, register_builtins
from konverge_cluster.crds.serving import CustomResources
from konverge_cluster.http import HttpServer
from konverge_cluster.pod_security import PodSecurity
from konverge_cluster.storage import HISTORY, Storage
from konverge_cluster.webhook_client import WebhookClient
from konverge_cluster.webhooks import WebhookAdmission

__all__ = ["EmbeddedServer"]

_HOSTS: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_AUTHENTICATION: Final = "authentication.k8s.io"
_DEFAULT_URL: Final = "https://127.0.0.1:6443"
_ADDRESSES: Final = ("127.0.0.1", "::1", "10.96.0.1")


class EmbeddedServer:
    """A Kubernetes API server in this process.

    Promises: `handle` works after construction, without a socket and on any event loop. Inside `async with` the server
    also listens on loopback, over HTTPS with its own certificate authority, and accepts only a token of `users` or of a
    service account, or a client certificate of `authority`. After `async with` the port is closed, every watch has
    ended, and no file is left.

    `webhook_client` registers functions of this process as backends for the service references of webhooks.

    With `plain` the server listens over HTTP instead (a token is still required). With `open_to_all` it requires no
    credentials. `clock` is the wall clock in seconds. `seed` makes uids and generated names repeatable. `history` is
    the number of changes of each collection that a watch can start from. `service_accounts` rejects pods whose service
    account does not exist; this requires a controller that creates the accounts, as in `EmbeddedCluster`.
    `feature_gates` are enabled beside the defaults of 1.36; there is one, `MaxUnavailableStatefulSet`.
    With `rbac` users have the rights that roles and bindings grant, otherwise all rights.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = wall_clock,
        seed: int | None = None,
        history: int = HISTORY,
        plain: bool = False,
        open_to_all: bool = False,
        service_accounts: bool = False,
        feature_gates: Iterable[str] = (),
        rbac: bool = True,
    ) -> None:
        self.cluster = Cluster(storage=Storage(history=history), clock=clock, seed=seed)
        self._service_ips = StoredServiceIPs(self.cluster.storage)
        register_builtins(self.cluster.registry, self._service_ips, feature_gates=feature_gates)
        self.webhook_client = WebhookClient()
        self.cluster.admission.append(NamespaceLifecycle(self.cluster.storage))
        self.cluster.admission.append(PodSecurity(self.cluster.storage))
        self.cluster.admission.extend(builtin_admission(self.cluster, service_accounts=service_accounts))
        self.cluster.admission.append(WebhookAdmission(self.cluster, self.webhook_client))
        bootstrap(self.cluster)
        if rbac:
            enable_rbac(self.cluster)
        CustomResources(self.cluster, call_webhook=self.webhook_client.convert)
        self.api = ApiServer(self.cluster)
        self.api.decoders[PROTOBUF] = read_protobuf
        self.authenticator = Authenticator(self.cluster)
        self._serve_authentication()
        serve_reviews(self.api)
        self._plain = plain
        self._open = open_to_all
        self._addresses: tuple[str, ...] = _ADDRESSES
        self._authority: Authority | None = None
        self._http_server: HttpServer | None = None

    def _serve_authentication(self) -> None:
        tokens = self.authenticator.tokens
        self.api.actions |= {
            ("", "serviceaccounts", "token"): TokenRequests(tokens).create,
            (_AUTHENTICATION, "tokenreviews", ""): TokenReviews(self.authenticator).create,
            (_AUTHENTICATION, "selfsubjectreviews", ""): review_self,
        }
        self.api.pages |= OpenId(tokens, self._base_url).pages

    async def handle(self, request: Request, user: UserInfo = ADMIN) -> Response:
        """Handle a request without a socket; the user is the admin by default."""
        return await self.api.handle(request, user)

    def use_loopback_services(self, network: IPv4Network) -> None:
        """Allocate the addresses of Services from a loopback range, and accept loopback addresses of endpoints.

        Call it before `start`, while there are no Services. The first address becomes that of the Service `kubernetes`.
        """
        accept_loopback_endpoints(self.cluster.registry)
        self._service_ips.use_network(network)
        self._addresses = (*_ADDRESSES, str(network[1]))
        store_server_service(self.cluster, str(network[1]))

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on a port; 0 selects a free one."""
        tls = None if self._plain else self._server_context(address)
        authenticator = None if self._open else self.authenticator
        http_server = HttpServer(self.api.handle, authenticator=authenticator, tls=tls, hosts=_HOSTS)
        await http_server.start(address, port)
        self._http_server = http_server

    async def stop(self) -> None:
        """Close the port and end every watch and every connection to a webhook. Safe to call twice."""
        http_server, self._http_server = self._http_server, None
        if http_server is not None:
            self.cluster.end_watches()
            await http_server.stop()
        await self.webhook_client.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The URL of the server.

        Raises: RuntimeError when it does not listen.
        """
        if self._http_server is None:
            raise RuntimeError("the server does not listen: write `async with EmbeddedServer() as server:`")
        return self._http_server.url

    def _base_url(self) -> str:
        return _DEFAULT_URL if self._http_server is None else self.url

    @property
    def users(self) -> Users:
        """The tokens that this server accepts, besides those of service accounts."""
        return self.authenticator.users

    @property
    def admin_token(self) -> str:
        """The bearer token of the admin."""
        return self.users.admin_token

    @property
    def authority(self) -> Authority:
        """The certificate authority of this server."""
        if self._authority is None:
            self._authority = Authority("konverge-embedded-ca")
        return self._authority

    @cached_property
    def _admin_pair(self) -> KeyPair:
        return self.authority.sign(ADMIN.name, groups=[group for group in ADMIN.groups if group != AUTHENTICATED])

    def _server_context(self, address: str) -> ssl.SSLContext:
        pair = self.authority.sign("kube-apiserver", hosts=[*_HOSTS, *dict.fromkeys([*self._addresses, address])])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.authority.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        _load(context, pair)
        return context

    def kubeconfig(self) -> dict[str, Any]:
        """Return a self-contained kubeconfig of the admin, as a dict."""
        cluster: dict[str, Any] = {"server": self.url}
        user: dict[str, Any] = {"token": self.admin_token}
        if not self._plain:
            cluster["certificate-authority-data"] = _base64(self.authority.certificate)
            user["client-certificate-data"] = _base64(self._admin_pair.certificate)
            user["client-key-data"] = _base64(self._admin_pair.key)
        context = {"cluster": "konverge", "user": "admin", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "konverge", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "konverge", "context": context}],
            "current-context": "konverge",
        }

    def write_kubeconfig(self, path: str | os.PathLike[str]) -> None:
        """Write the kubeconfig, readable by its owner only.

        It is a new file that replaces an existing one: nobody who could open or who owns the old file, or who made it a
        link, can read the new one.
        """
        file = Path(path)
        new = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                yaml.safe_dump(self.kubeconfig(), stream, sort_keys=False)
            new.replace(file)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    # Python's ssl module reads certificates only from files.
    with tempfile.TemporaryDirectory(prefix="konverge-") as directory:
        both = Path(directory) / "server.pem"
        both.touch(mode=0o600)
        both.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(both)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
