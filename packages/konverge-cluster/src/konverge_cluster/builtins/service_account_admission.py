"""Admission of pods by their service account: the default one, its token volume, its pull secrets, its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Document

__all__ = ["ServiceAccount"]

Lookup = Callable[[str, str, str, str], Document | None]

_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS: Final = 3607
_NAMESPACE_FIELD: Final = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}


class ServiceAccount:
    """Set the service account of a pod, `default` unless specified, and mount its token, the CA and the namespace.

    An account with the annotation `kubernetes.io/enforce-mountable-secrets` limits its pods to the secrets that it
    lists.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def handles(self, request: AdmissionRequest) -> bool:
        kind = request.strategy.info.kind
        if (kind.group, kind.plural) != ("", "pods"):
            return False
        return (request.operation, request.subresource) in (("CREATE", ""), ("UPDATE", "ephemeralcontainers"))

    async def mutate(self, request: AdmissionRequest) -> None:
        """Complete a new pod from its account."""
        pod = _pod(request)
        spec = pod["spec"]
        if request.subresource or _is_mirror(pod):
            return
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._account(request, name)
        if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]

    async def validate(self, request: AdmissionRequest) -> None:
        """Check that a pod references only what its account allows."""
        pod = _pod(request)
        spec = pod["spec"]
        if not request.subresource and _is_mirror(pod):
            for text in _mirror_errors(spec):
                raise _forbidden(request, text)
            return
        name = spec.get("serviceAccountName")
        if not name:
            raise _forbidden(request, f"no service account specified for pod {request.namespace}/{request.name}")
        account = self._account(request, name)
        if account["metadata"].get("annotations", {}).get(_ENFORCE) in _TRUE:
            errors = _ephemeral_errors(spec, account) if request.subresource else _secret_errors(spec, account)
            for text in errors:
                raise _forbidden(request, text)

    def _account(self, request: AdmissionRequest, name: str) -> Document:
        account = self._lookup("", "serviceaccounts", request.namespace, name)
        if account is None:
            missing = f"serviceaccount {quote(name)} not found"
            raise _forbidden(request, f"error looking up service account {request.namespace}/{name}: {missing}")
        return account


def _pod(request: AdmissionRequest) -> dict[str, Any]:
    assert request.object is not None
    return request.object


def _is_mirror(pod: Document) -> bool:
    return _MIRROR in pod["metadata"].get("annotations", {})


def _forbidden(request: AdmissionRequest, text: str) -> StatusError:
    name = request.name or str(_pod(request)["metadata"].get("generateName", ""))
    return status_errors.forbidden("", "pods", name, text)


def _mount_token(spec: dict[str, Any]) -> None:
    containers = [*spec.get("initContainers", ()), *(spec["containers"] or ())]
    missing = [each for each in containers if not _mounts_token(each)]
    if not missing:
        return
    volume = _token_volume(spec)
    for container in missing:
        mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]


def _mounts_token(container: dict[str, Any]) -> bool:
    return any(mount.get("mountPath") == _TOKEN_PATH for mount in container.get("volumeMounts", ()))


def _token_volume(spec: dict[str, Any]) -> str:
    """Return the name of the volume with the token; add the volume if the pod has none."""
    for volume in spec.get("volumes", ()):
        if volume["name"].startswith("kube-api-access-"):
            return str(volume["name"])
    # A pod has one such volume, so its name is unique without a random suffix.
    name = "kube-api-access-pxzvl"
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": _NAMESPACE_FIELD}]}},
    ]
    volume = {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}
    spec["volumes"] = [*spec.get("volumes", ()), volume]
    return name


def _mirror_errors(spec: Document) -> Iterator[str]:
    if spec.get("serviceAccountName"):
        yield "a mirror pod may not reference service accounts"
    volumes = spec.get("volumes", ())
    projected = [source for volume in volumes for source in volume.get("projected", {}).get("sources") or ()]
    named = [each for each in (*volumes, *projected) if "secret" in each]
    containers = [each for key in ("initContainers", "containers") for each in spec.get(key) or ()]
    if named or spec.get("imagePullSecrets") or any(True for each in containers for _ in _container_secrets(each)):
        yield "a mirror pod may not reference secrets"
    if any("serviceAccountToken" in source for source in projected):
        yield "a mirror pod may not use ServiceAccountToken volume projections"


def _container_secrets(container: Document) -> Iterator[tuple[str, str]]:
    """Yield the secrets of a container's environment: how it refers to it, and the name."""
    for variable in container.get("env", ()):
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None:
            yield f"envVar {variable['name']}", reference.get("name", "")
    for source in container.get("envFrom", ()):
        if "secretRef" in source:
            yield "envFrom", source["secretRef"].get("name", "")


def _secret_errors(spec: Document, account: Document) -> Iterator[str]:
    mountable = _names(account, "secrets")
    end = f"is not allowed because service account {account['metadata']['name']} does not reference that"
    for volume in spec.get("volumes", ()):
        secret = volume.get("secret", {}).get("secretName", "")
        if "secret" in volume and secret not in mountable:
            yield f'volume with secret.secretName="{secret}" {end} secret'
    for key, prefix in (("initContainers", "init container"), ("containers", "container")):
        yield from _environment_errors(spec.get(key) or (), prefix, account)
    for index, reference in enumerate(spec.get("imagePullSecrets", ())):
        name = reference.get("name", "")
        if name not in _names(account, "imagePullSecrets"):
            yield f'imagePullSecrets[{index}].name="{name}" {end} imagePullSecret'


def _ephemeral_errors(spec: Document, account: Document) -> Iterator[str]:
    return _environment_errors(spec.get("ephemeralContainers", ()), "ephemeral container", account)


def _environment_errors(containers: Any, prefix: str, account: Document) -> Iterator[str]:
    mountable = _names(account, "secrets")
    end = f"is not allowed because service account {account['metadata']['name']} does not reference that secret"
    for container in containers:
        for reference, name in _container_secrets(container):
            if name not in mountable:
                yield f'{prefix} {container["name"]} with {reference} referencing secret.secretName="{name}" {end}'


def _names(account: Document, key: str) -> set[str]:
    return {each.get("name", "") for each in account.get(key, ())}
