"""Two clusters on a port, for requests with any credentials: the embedded one, and a real API server with controllers.

Responses are compared after masking: uids, times, hashes of certificates and tokens differ, their places do not.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from konverge.testing import ControlPlane
from konverge_cluster import EmbeddedCluster
from kubectl import Kubectl
from kubectl_clusters import in_thread

__all__ = [
    "AuthenticationCluster",
    "Pair",
    "Reply",
    "claims_of",
    "embedded_authentication_cluster",
    "masked",
    "real_authentication_cluster",
]

Pair = tuple[bytes, bytes]
"""A client certificate and its key, as PEM."""

_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"X509SHA256=[0-9a-f]{64}"), "<hash>"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"https://[\w.]+:\d+"), "<server>"),
    (re.compile(r"kubernetes-admin"), "admin"),
    (re.compile(r"(?<=.kid.: .)[\w-]{43}|(?<=.[xy].: .)[\w-]{43}"), "<key>"),
)
_LIMIT = 60


@dataclass(frozen=True)
class Reply:
    """The response of a server, with its Warning headers."""

    status: int
    headers: dict[str, str]
    warnings: tuple[str, ...]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The status and, of an error, the text."""
        document = self.json()
        return f"{self.status} {document.get('message', '')}".strip()

    @property
    def masked(self) -> tuple[Any, ...]:
        """What both servers must answer alike."""
        try:
            document = self.json()
        except ValueError:
            return self.status, self.body.decode(), self.warnings
        if isinstance(document.get("metadata"), dict):
            document["metadata"].pop("managedFields", None)
            document["metadata"].pop("resourceVersion", None)
        return self.status, masked(document), self.warnings


def masked(value: Any) -> Any:
    """Return a document without what differs between two servers."""
    text = json.dumps(value, sort_keys=True)
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return json.loads(text)


def claims_of(token: str) -> Any:
    """Return the claims of a token, without checking its signature."""
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


class AuthenticationCluster:
    """A cluster, and requests to it with any credentials; without some they are the admin's certificate."""

    def __init__(self, name: str, kubeconfig: Path, directory: Path) -> None:
        self.name = name
        self.kubectl = Kubectl(kubeconfig, directory)
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.url: str = cluster["server"]
        self.ca = base64.b64decode(cluster["certificate-authority-data"])
        keys = ("client-certificate-data", "client-key-data")
        certificate, key = (base64.b64decode(user[name]) for name in keys)
        self.admin: Pair = (certificate, key)
        self.token: str = user.get("token", "")

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        pair: Pair | None = None,
        token: str | None = None,
        anonymous: bool = False,
        headers: Iterable[tuple[str, str]] = (),
    ) -> Reply:
        """Send a request on a connection of its own."""
        if pair is None and token is None and not anonymous:
            pair = self.admin
        connection = http.client.HTTPSConnection(self.url.removeprefix("https://"), context=self._tls(pair), timeout=60)
        content = b"" if body is None else json.dumps(body).encode()
        try:
            connection.putrequest(method, path)
            sent = [("Content-Type", "application/json"), ("Content-Length", str(len(content))), *headers]
            sent += [] if token is None else [("Authorization", f"Bearer {token}")]
            for name, value in sent:
                connection.putheader(name, value)
            connection.endheaders(content)
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, named, tuple(response.headers.get_all("Warning") or ()), response.read())
        finally:
            connection.close()

    def good(self, method: str, path: str, body: object = None, **how: Any) -> Any:
        """Send a request that succeeds; return the object."""
        reply = self.request(method, path, body, **how)
        assert reply.status in (200, 201), reply.body
        return reply.json()

    def until(self, check: Callable[[], Any]) -> Any:
        """Repeat a check until its result is true; return it."""
        end = time.monotonic() + _LIMIT
        while not (found := check()):
            assert time.monotonic() < end, "timed out"
            time.sleep(0.05)  # waits for another process
        return found

    def whoami(self, **how: Any) -> Any:
        """Return the user that the server sees, or the error."""
        review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        reply = self.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, **how)
        return reply.json()["status"]["userInfo"] if reply.status == 201 else reply.message

    def _tls(self, pair: Pair | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca.decode())
        if pair is not None:
            with tempfile.NamedTemporaryFile() as file:
                file.write(b"".join(pair))
                file.flush()
                context.load_cert_chain(file.name)
        return context


@contextmanager
def embedded_authentication_cluster(directory: Path) -> Iterator[AuthenticationCluster]:
    """The embedded cluster on a port."""
    kubeconfig = directory / "embedded.kubeconfig"

    @asynccontextmanager
    async def running() -> AsyncGenerator[None]:
        async with EmbeddedCluster(nodes=0) as cluster:
            await cluster.listen()
            cluster.write_kubeconfig(kubeconfig)
            yield

    with in_thread(running):
        yield AuthenticationCluster("embedded", kubeconfig, directory)


@contextmanager
def real_authentication_cluster(directory: Path) -> Iterator[AuthenticationCluster]:
    """A real API server and controller manager."""
    with ControlPlane(controller_manager=True) as plane:
        yield AuthenticationCluster("real", plane.kubeconfig, directory)
