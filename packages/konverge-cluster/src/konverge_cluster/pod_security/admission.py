"""The plug-in PodSecurity of the admission chain.

1. Pods that violate the enforced level are rejected; pods and the pod templates of workloads that violate the warned
   level get a warning.
2. An update is evaluated only if it changes an image or adds a container: an existing pod can always be labelled.
3. Labels of a namespace must be readable, unless they were unreadable before. When a stricter level is enforced, the
   existing pods that violate it are named in warnings.
4. There is no audit log: labels for `audit` are validated and have no other effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.cluster import decode
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.strategy import Document
from konverge_cluster.pod_security.evaluation import evaluate
from konverge_cluster.pod_security.policies import PRIVILEGED, LevelVersion, Policy, read_policy
from konverge_cluster.storage import Entry, Storage

__all__ = ["PodSecurity"]

_TEMPLATES: Final = {
    ("", "replicationcontrollers"): ("spec", "template"),
    ("", "podtemplates"): ("template",),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_PODS: Final = ("", "pods")
_NAMESPACES: Final = ("", "namespaces")
_POD_SUBRESOURCES: Final = ("", "ephemeralcontainers", "resize")
_MAX_PODS: Final = 3000


class PodSecurity:
    """The PodSecurity admission plug-in, with the defaults of the real server: no exemptions, privileged."""

    def __init__(self, storage: Storage) -> None:
        self._namespaces = storage.collection(_NAMESPACES)
        self._pods = storage.collection(_PODS)

    def handles(self, request: AdmissionRequest) -> bool:
        if request.operation not in ("CREATE", "UPDATE"):
            return False
        resource = _resource_of(request)
        if resource == _PODS:
            return request.subresource in _POD_SUBRESOURCES
        return not request.subresource and (resource == _NAMESPACES or resource in _TEMPLATES)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Change nothing."""

    async def validate(self, request: AdmissionRequest) -> None:
        assert request.object is not None
        resource = _resource_of(request)
        if resource == _NAMESPACES:
            self._validate_namespace(request, request.object)
        elif resource == _PODS:
            self._validate_pod(request, request.object)
        else:
            self._warn_of_template(request, request.object)

    def _validate_pod(self, request: AdmissionRequest, pod: Document) -> None:
        namespace = self._namespaces.get(request.namespace)
        if namespace is None:
            raise status_errors.internal_error(f"failed to lookup namespace {quote(request.namespace)}")
        if request.old_object is not None and not _is_significant(pod["spec"], request.old_object["spec"]):
            return
        policy = _policy_of(namespace)
        found = evaluate(policy.enforce, pod["metadata"], pod["spec"])
        if found:
            text = f'violates PodSecurity "{policy.enforce}": {", ".join(map(str, found))}'
            raise status_errors.forbidden("", "pods", request.name, text)
        _warn(request, policy.warn, pod)

    def _warn_of_template(self, request: AdmissionRequest, document: Document) -> None:
        namespace = self._namespaces.get(request.namespace)
        template: Any = document
        for name in _TEMPLATES[_resource_of(request)]:
            template = (template or {}).get(name)
        if namespace is not None and template:
            _warn(request, _policy_of(namespace).warn, template)

    def _validate_namespace(self, request: AdmissionRequest, namespace: Document) -> None:
        policy, errors = read_policy(namespace["metadata"].get("labels"))
        old = request.old_object
        old_policy, old_errors = read_policy(old["metadata"].get("labels")) if old is not None else (Policy(), [])
        if errors and errors != old_errors:
            raise status_errors.invalid("", "Namespace", request.name, errors)
        if old is not None and _is_stricter(policy.enforce, old_policy.enforce):
            request.warnings.extend(self._existing_pods(request.name, policy.enforce))

    def _existing_pods(self, namespace: str, enforce: LevelVersion) -> Iterator[str]:
        """Yield warnings about the existing pods of a namespace that violate a level."""
        pods = self._pods.entries(namespace)
        names: dict[str, list[str]] = {}
        for entry in pods[:_MAX_PODS]:
            pod = decode(entry.raw)
            found = evaluate(enforce, pod["metadata"], pod["spec"])
            if found:
                names.setdefault(", ".join(each.reason for each in found), []).append(pod["metadata"]["name"])
        if len(pods) > _MAX_PODS:
            checked = f"the first {_MAX_PODS} of {len(pods)} existing pods"
            yield f"new PodSecurity enforce level only checked against {checked}"
        if names:
            yield f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforce}"'
        yield from sorted(f"{_list_pods(each)}: {reasons}" for reasons, each in names.items())


def _resource_of(request: AdmissionRequest) -> tuple[str, str]:
    kind = request.strategy.info.kind
    return kind.group, kind.plural


def _policy_of(namespace: Entry) -> Policy:
    if "pod_security" not in namespace.cache:
        namespace.cache["pod_security"] = read_policy(namespace.labels)[0]
    policy: Policy = namespace.cache["pod_security"]
    return policy


def _warn(request: AdmissionRequest, policy: LevelVersion, pod: Document) -> None:
    found = evaluate(policy, pod.get("metadata") or {}, pod["spec"])
    if found:
        request.warnings.append(f'would violate PodSecurity "{policy}": {", ".join(map(str, found))}')


def _is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Report whether pods that were allowed may violate a new level: a higher one, or another version."""
    return new.level != PRIVILEGED and (new.level > old.level or new.minor != old.minor)


def _is_significant(new: Document, old: Document) -> bool:
    """Report whether an update of a pod changes what is evaluated: an image, or the number of containers."""
    for name in ("containers", "initContainers"):
        if [each.get("image") for each in new.get(name) or ()] != [each.get("image") for each in old.get(name) or ()]:
            return True
    known = {each["name"]: each.get("image") for each in old.get("ephemeralContainers") or ()}
    return any(
        each["name"] not in known or each.get("image") != known[each["name"]]
        for each in new.get("ephemeralContainers") or ()
    )


def _list_pods(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{names[0]} (and {others} other pod{'' if others == 1 else 's'})"
