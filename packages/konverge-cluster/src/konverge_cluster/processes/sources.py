"""What the containers of a pod read from the cluster: ConfigMaps, Secrets, claims, tokens, and fields of the pod."""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from konverge.errors import KonvergeError
from konverge.k8s.core.v1 import ConfigMap, PersistentVolumeClaim, Secret, Service
from konverge.objects import Quantity, Unstructured, kind_of
from konverge.reconcile import Context
from konverge_cluster.processes.service_links import service_variables

__all__ = ["CLAIMS", "CONFIG_MAPS", "SECRETS", "MissingSource", "PodFacts", "Sources", "Token", "claim_name"]

CONFIG_MAPS: Final = kind_of(ConfigMap)
SECRETS: Final = kind_of(Secret)
CLAIMS: Final = kind_of(PersistentVolumeClaim)
SERVICES: Final = kind_of(Service)
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_TOKEN_SECONDS: Final = 3600
_RENEWED_SHARE: Final = 0.8


class MissingSource(Exception):
    """Something that a pod refers to does not exist; the message is the kubelet's."""


@dataclass(frozen=True)
class Token:
    """A token of a service account, to be renewed at a time."""

    text: str
    renew_at: float


@dataclass(frozen=True)
class PodFacts:
    """A pod with the addresses and the capacity that its node assigned."""

    pod: Unstructured
    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, str]

    def field(self, path: str) -> str:
        """Return the value of a fieldRef.

        Raises: MissingSource for a path that is not supported.
        """
        metadata, spec = self.pod.metadata, self.pod["spec"]
        if match := _SUBSCRIPT.fullmatch(path):
            return str((metadata.get(match[1]) or {}).get(match[2], ""))
        if path in ("metadata.labels", "metadata.annotations"):
            values = metadata.get(path.removeprefix("metadata.")) or {}
            return "\n".join(f'{name}="{_escape(value)}"' for name, value in sorted(values.items()))
        simple = {
            "metadata.name": self.pod.name,
            "metadata.namespace": self.pod.namespace,
            "metadata.uid": self.pod.uid,
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            **{f"status.{name}": self.host_ip for name in ("hostIP", "hostIPs")},
            **{f"status.{name}": self.pod_ip for name in ("podIP", "podIPs")},
        }
        if path not in simple:
            raise MissingSource(f"fieldPath {path!r} is not supported")
        return str(simple[path])

    def resource(self, reference: Mapping[str, Any], container: Mapping[str, Any] | None = None) -> str:
        """Return the value of a resourceFieldRef, of a named container or the given one.

        Raises: MissingSource when there is no such container.
        """
        name = reference.get("containerName", "")
        owner = self._find_container(name) if name or container is None else container
        part, _, resource = str(reference["resource"]).partition(".")
        resources = owner.get("resources") or {}
        amount = (resources.get(part) or {}).get(resource)
        if amount is None:
            amount = self.allocatable.get(resource, "0") if part == "limits" else "0"
        divisor = Quantity(reference.get("divisor") or "1").value or Decimal(1)
        return str(math.ceil(Quantity(amount).value / divisor))

    def _find_container(self, name: str) -> Mapping[str, Any]:
        every: list[Mapping[str, Any]] = [*self.pod["spec"].get("initContainers", ()), *self.pod["spec"]["containers"]]
        for one in every:
            if one["name"] == name:
                return one
        raise MissingSource(f"container {name!r} not found")


class Sources:
    """The objects that one pod reads, through the context of a reconcile; tokens are kept until they are renewed."""

    def __init__(self, ctx: Context, tokens: dict[tuple[str, int], Token]) -> None:
        self._ctx = ctx
        self._tokens = tokens

    async def config_map(self, name: str, *, optional: bool = False) -> dict[str, bytes] | None:
        """Return the content of a ConfigMap, None if an optional one does not exist.

        Raises: MissingSource when it does not exist.
        """
        found = await self._ctx.get(CONFIG_MAPS, name)
        if found is None:
            return _missing(f'configmap "{name}" not found', optional=optional)
        text = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        return {**text, **{key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}}

    async def secret(self, name: str, *, optional: bool = False) -> dict[str, bytes] | None:
        """Return the content of a Secret, None if an optional one does not exist.

        Raises: MissingSource when it does not exist.
        """
        found = await self._ctx.get(SECRETS, name)
        if found is None:
            return _missing(f'secret "{name}" not found', optional=optional)
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    async def service_variables(self) -> dict[str, str]:
        """Return the environment variables for the Services of the pod's namespace."""
        return service_variables(await self._ctx.list(SERVICES))

    async def bound_volume(self, name: str) -> str:
        """Return the name of the volume that a claim is bound to.

        Raises: MissingSource when the claim does not exist or is not bound.
        """
        found = await self._ctx.get(CLAIMS, name)
        if found is None:
            raise MissingSource(f'persistentvolumeclaim "{name}" not found')
        if (found.get("status") or {}).get("phase") != "Bound":
            raise MissingSource(f'persistentvolumeclaim "{name}" is not bound')
        return f"{found['spec']['volumeName']}-{found.uid}"

    async def token(self, pod: Unstructured, audience: str, seconds: int | None) -> str:
        """Return a token of the pod's service account.

        Raises: MissingSource when the server issues none.
        """
        lifetime = seconds or _TOKEN_SECONDS
        known = self._tokens.get((audience, lifetime))
        if known is not None and time.time() < known.renew_at:
            return known.text
        account = pod["spec"].get("serviceAccountName") or "default"
        try:
            body = await self._ctx.client.write_subresource(
                _service_account(pod.namespace, account), "token", _token_request(pod, audience, lifetime)
            )
        except KonvergeError as error:
            raise MissingSource(f"failed to fetch token: {error}") from error
        text = str(json.loads(body)["status"]["token"])
        self._tokens[audience, lifetime] = Token(text, time.time() + lifetime * _RENEWED_SHARE)
        return text


def _service_account(namespace: str, name: str) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return Unstructured({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


def _token_request(pod: Unstructured, audience: str, lifetime: int) -> dict[str, Any]:
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    spec = {"audiences": [audience] if audience else [], "expirationSeconds": lifetime, "boundObjectRef": bound}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def claim_name(volume: Mapping[str, Any], pod: str) -> str:
    """Return the name of the claim of a volume, "" if it has none."""
    if "ephemeral" in volume:
        return f"{pod}-{volume['name']}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName", ""))


def _missing(message: str, *, optional: bool) -> dict[str, bytes] | None:
    if not optional:
        raise MissingSource(message)
    return None


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
