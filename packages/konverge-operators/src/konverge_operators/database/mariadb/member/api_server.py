"""What members share: a ConfigMap with the record, and the annotation and the label of each pod."""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from konverge_operators.database.mariadb.member.decisions import Record, Report

__all__ = ["REPORT", "ROLE", "ApiServer", "ApiServerError", "Peer", "StoredRecord", "record_name"]

REPORT: Final = "example.com/member"
"""The annotation of a pod with the report of its member."""
ROLE: Final = "example.com/role"
"""The label of a pod: primary or replica."""
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT: Final = 5.0
_CONFLICTS: Final = (404, 409)


class ApiServerError(Exception):
    """The API server cannot be reached, or refuses a request."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Peer:
    """A member by its pod: where it is, and what it reports."""

    name: str
    address: str
    report: Report


@dataclass(frozen=True)
class StoredRecord:
    """The record, None before there is one, and the version of its ConfigMap."""

    record: Record | None
    version: str = ""


def record_name(cluster: str) -> str:
    """Return the name of the ConfigMap with the record."""
    return f"{cluster}-galera"


class ApiServer:
    """Requests to the API server as the service account of the pod."""

    def __init__(self, cluster: str, labels: Mapping[str, str]) -> None:
        self._cluster, self._labels = cluster, dict(labels)
        self._access = _Access.find()
        self._core = f"/api/v1/namespaces/{self._access.namespace}"

    def read_record(self) -> StoredRecord:
        """Return the record as the server has it.

        Raises: ApiServerError.
        """
        try:
            found = self._send("GET", f"{self._core}/configmaps/{record_name(self._cluster)}")
        except ApiServerError as error:
            if error.code == 404:
                return StoredRecord(None)
            raise
        return StoredRecord(Record.parse(found.get("data") or {}), found["metadata"]["resourceVersion"])

    def write_record(self, record: Record, version: str) -> bool:
        """Write the record unless another member has written it since; report whether it is written.

        Raises: ApiServerError.
        """
        name, path = record_name(self._cluster), f"{self._core}/configmaps"
        try:
            if version:
                change = {"metadata": {"resourceVersion": version}, "data": record.format()}
                self._send("PATCH", f"{path}/{name}", change)
            else:
                metadata = {"name": name, "labels": self._labels}
                document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": record.format()}
                self._send("POST", path, document)
        except ApiServerError as error:
            if error.code in _CONFLICTS:
                return False
            raise
        return True

    def list_peers(self) -> dict[str, Peer]:
        """Return all members whose pods exist, by name.

        Raises: ApiServerError.
        """
        selected = urllib.parse.quote(",".join(f"{name}={value}" for name, value in self._labels.items()))
        found = self._send("GET", f"{self._core}/pods?labelSelector={selected}")
        return {one.name: one for one in map(_peer, found["items"])}

    def publish(self, member: str, report: Report, role: str | None) -> None:
        """Write a report into the pod of a member, with its role.

        Raises: ApiServerError.
        """
        change = {"metadata": {"annotations": {REPORT: report.format()}, "labels": {ROLE: role}}}
        self._send("PATCH", f"{self._core}/pods/{member}", change)

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = json.dumps(body).encode() if body is not None else None
        try:
            headers.update(self._access.headers())
            request = urllib.request.Request(f"{self._access.server}{path}", data, headers, method=method)
            with urllib.request.urlopen(request, timeout=_TIMEOUT, context=self._access.context) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise ApiServerError(f"{method} {path}: {error.code} {_reason(error)}", error.code) from error
        except (OSError, HTTPException, ValueError) as error:
            raise ApiServerError(f"{method} {path}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class _Access:
    server: str
    namespace: str
    context: ssl.SSLContext
    token_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """Return the token as it is now: the kubelet renews it."""
        return {"Authorization": f"Bearer {self.token_file.read_text()}"} if self.token_file is not None else {}

    @classmethod
    def find(cls) -> _Access:
        """Return the access that the kubelet has mounted; a node without mounts has written a kubeconfig."""
        if file := os.environ.get("KUBECONFIG"):
            return cls._of_kubeconfig(json.loads(Path(file).read_text()))
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        return cls(f"https://{host}:{port}", (_ACCOUNT / "namespace").read_text(), context, _ACCOUNT / "token")

    @classmethod
    def _of_kubeconfig(cls, config: Any) -> _Access:
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate-data" in user:
            pair = base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
            with tempfile.NamedTemporaryFile() as file:
                file.write(pair)
                file.flush()
                context.load_cert_chain(file.name)
        token = Path(user["tokenFile"]) if "tokenFile" in user else None
        return cls(cluster["server"], config["contexts"][0]["context"]["namespace"], context, token)


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return repr(error.read()[:300])
    except (OSError, HTTPException):
        return error.reason


def _peer(pod: Any) -> Peer:
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    status: dict[str, str] = pod.get("status") or {}
    return Peer(pod["metadata"]["name"], status.get("podIP", ""), Report.parse(annotations.get(REPORT, "")))
