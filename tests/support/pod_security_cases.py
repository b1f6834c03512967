"""Generated cases of PodSecurity admission: a policy of a namespace, and a pod or a workload that is written to it.

The same seed produces the same case. Most pods are valid for the API server, so that only PodSecurity can
reject them.
"""

from __future__ import annotations

import random
from typing import Any, Final

from two_servers import Api, ApiResponse, Json, masked, sort_managed_fields

__all__ = ["decision", "run_case"]

_PREFIX: Final = "pod-security.kubernetes.io/"
_LEVELS: Final = ("privileged", "baseline", "baseline", "restricted", "restricted", "restricted")
_MINORS: Final = (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 99)
_TEMPLATES: Final = {
    "replicationcontrollers": ("", "ReplicationController"),
    "podtemplates": ("", "PodTemplate"),
    "replicasets": ("apps", "ReplicaSet"),
    "deployments": ("apps", "Deployment"),
    "statefulsets": ("apps", "StatefulSet"),
    "daemonsets": ("apps", "DaemonSet"),
    "jobs": ("batch", "Job"),
    "cronjobs": ("batch", "CronJob"),
}
_VOLUMES: Final[tuple[Json, ...]] = (
    {"emptyDir": {}},
    {"configMap": {"name": "a"}},
    {"persistentVolumeClaim": {"claimName": "a"}},
    {"csi": {"driver": "a.b"}},
    {"image": {"reference": "a"}},
    {"hostPath": {"path": "/a"}},
    {"nfs": {"server": "a", "path": "/a"}},
    {"iscsi": {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
    {"gcePersistentDisk": {"pdName": "a"}},
    {"fc": {"targetWWNs": ["a"], "lun": 1}},
)
_SYSCTLS: Final = (
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time"),
    *("net.ipv4.tcp_rmem", "kernel.msgmax", "net.core.somaxconn"),
)
_HANDLERS: Final[tuple[Json, ...]] = (
    {"httpGet": {"port": 80, "host": "10.0.0.1"}},
    {"tcpSocket": {"port": 80, "host": "b.example"}},
    {"httpGet": {"port": 80}},
)


def _labels_of(rng: random.Random) -> dict[str, str]:
    """Return random labels of a namespace that can be read."""
    labels = {}
    for mode in ("enforce", "warn", "audit"):
        if rng.random() < 0.6:
            labels[_PREFIX + mode] = rng.choice(_LEVELS)
        if rng.random() < 0.5:
            labels[f"{_PREFIX}{mode}-version"] = rng.choice(("latest", f"v1.{rng.choice(_MINORS)}"))
    return labels


class _Pods:
    """Generator of pods: each field that a level restricts is set now and then."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._hardened = rng.random() < 0.6
        self._windows = rng.random() < 0.08
        self._chance = rng.choice((0.04, 0.15, 0.4))

    def _maybe(self) -> bool:
        return self._rng.random() < self._chance

    def pod(self) -> Json:
        spec: Json = {"containers": [self._container("c", 0)]}
        spec["containers"] += [self._container("c", 1)] if self._rng.random() < 0.4 else []
        if self._rng.random() < 0.3:
            spec["initContainers"] = [self._container("i", 0)]
        metadata: Json = {"annotations": {}}
        self._security(spec, metadata)
        for name in () if self._windows else ("hostPID", "hostIPC"):
            spec |= {name: True} if self._maybe() else {}
        if self._maybe() and not self._windows:
            spec["hostNetwork"] = True
        self._users(spec)
        if self._rng.random() < 0.4:
            count = self._rng.randrange(1, 4)
            spec["volumes"] = [{"name": f"v{index}", **self._rng.choice(_VOLUMES)} for index in range(count)]
        return {"metadata": metadata, "spec": spec}

    def _users(self, spec: Json) -> None:
        """Give the pod a user namespace of its own, which an unmasked /proc requires and host namespaces forbid."""
        unmasked = [each["securityContext"] for each in _all_containers(spec) if _is_unmasked(each)]
        shares_host = any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
        if shares_host:
            for context in unmasked:
                del context["procMount"]
        elif unmasked or (self._maybe() and not self._windows):
            spec["hostUsers"] = False

    def _security(self, spec: Json, metadata: Json) -> None:
        if self._windows:
            spec["os"] = {"name": "windows"}
            spec["securityContext"] = {"runAsNonRoot": True} if self._hardened else {}
            return
        spec["securityContext"] = self.context(pod=True)
        if self._maybe():
            names = self._rng.sample(_SYSCTLS, 2)
            spec["securityContext"]["sysctls"] = [{"name": name, "value": "1"} for name in names]
        first = spec["containers"][0]["securityContext"]
        if self._maybe() and "seccompProfile" not in spec["securityContext"]:
            key = "seccomp.security.alpha.kubernetes.io/pod"
            metadata["annotations"][key] = self._rng.choice(("unconfined", "docker/default"))
        if self._maybe() and "seccompProfile" not in first:
            key = "container.seccomp.security.alpha.kubernetes.io/c0"
            metadata["annotations"][key] = self._rng.choice(("unconfined", "localhost/a"))
        if first.get("appArmorProfile", {}).get("type") == "Unconfined" and self._rng.random() < 0.5:
            metadata["annotations"]["container.apparmor.security.beta.kubernetes.io/c0"] = "unconfined"

    def context(self, *, pod: bool) -> Json:
        context: Json = {}
        if self._windows:
            return context
        if self._hardened and (not pod or self._rng.random() < 0.7):
            context |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
            context |= {} if pod else {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        if self._maybe():
            context["runAsNonRoot"] = self._rng.random() < 0.3
        if self._maybe():
            context["runAsUser"] = self._rng.choice((0, 1000))
        if self._maybe():
            context["seccompProfile"] = {"type": self._rng.choice(("Unconfined", "RuntimeDefault"))}
        if self._maybe():
            context["appArmorProfile"] = {"type": self._rng.choice(("Unconfined", "RuntimeDefault"))}
        if self._maybe():
            values = {"type": ("container_t", "container_engine_t", "spc_t"), "user": ("u", ""), "role": ("r", "")}
            context["seLinuxOptions"] = {name: self._rng.choice(each) for name, each in values.items()}
        return context

    def _container(self, prefix: str, index: int) -> Json:
        container: Json = {"name": f"{prefix}{index}", "image": "a", "securityContext": {}}
        if not self._windows:
            container["securityContext"] = self.context(pod=False)
            self._privileges(container["securityContext"])
        if self._maybe():
            port = self._rng.choice((80, 443, 8080)) + index + (1000 if prefix == "i" else 0)
            container["ports"] = [{"containerPort": port, "hostPort": port}]
        if self._maybe() and prefix == "c":
            container[self._rng.choice(("livenessProbe", "readinessProbe", "startupProbe"))] = self._handler()
        if self._maybe() and prefix == "c":
            container["lifecycle"] = {self._rng.choice(("postStart", "preStop")): self._handler()}
        return container

    def _privileges(self, context: Json) -> None:
        if self._maybe():
            names = self._rng.sample(("CHOWN", "NET_RAW", "NET_BIND_SERVICE", "SYS_TIME"), 2)
            context["capabilities"] = {**context.get("capabilities", {}), "add": names}
        if self._maybe():
            context["capabilities"] = {"drop": ["CHOWN"]}
        if self._maybe():
            context["procMount"] = self._rng.choice(("Default", "Unmasked"))
        if self._maybe():
            context.pop("allowPrivilegeEscalation", None)
            context["privileged"] = self._rng.random() < 0.7

    def _handler(self) -> Json:
        return dict(self._rng.choice(_HANDLERS))


def _all_containers(spec: Json) -> list[Json]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def _is_unmasked(container: Json) -> bool:
    return bool(container["securityContext"].get("procMount") == "Unmasked")


def _workload(rng: random.Random, pod: Json) -> tuple[str, str, Json]:
    """Return group, resource and document of a workload with a template."""
    plural = rng.choice(list(_TEMPLATES))
    group, kind = _TEMPLATES[plural]
    document: Json = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "w"}}
    template: Json = {"metadata": {**pod["metadata"], "labels": {"a": "b"}}, "spec": dict(pod["spec"])}
    if plural in ("jobs", "cronjobs"):
        template["spec"]["restartPolicy"] = "Never"
    spec: Json = {"template": template}
    if group == "apps":
        spec["selector"] = {"matchLabels": {"a": "b"}}
    if plural == "replicationcontrollers":
        spec["selector"] = {"a": "b"}
    if plural == "cronjobs":
        spec = {"schedule": "@daily", "jobTemplate": {"spec": spec}}
    return group, plural, document | ({"template": template} if plural == "podtemplates" else {"spec": spec})


def decision(reply: ApiResponse) -> Any:
    """Return status, warnings in order, and the body without what may differ."""
    return reply.status, reply.warnings, sort_managed_fields(masked(reply.json()))


def run_case(api: Api, seed: int) -> list[Any]:
    """Write a generated object to a namespace with a generated policy, and change it; return all decisions."""
    rng = random.Random(seed)
    api.namespace = f"security-{seed}"
    document = {"metadata": {"name": api.namespace, "labels": _labels_of(rng)}}
    made = api.request("POST", "/api/v1/namespaces", document)
    pods = _Pods(rng)
    run = _run_workload if rng.random() < 0.3 else _run_pod
    return [decision(made), *run(api, rng, pods)]


def _run_workload(api: Api, rng: random.Random, pods: _Pods) -> list[Any]:
    group, plural, document = _workload(rng, pods.pod())
    made = api.request("POST", api.at(plural, group=group), document)
    return [decision(made), _patch(api, api.at(plural, "w", group=group), _LABEL)]


def _run_pod(api: Api, rng: random.Random, pods: _Pods) -> list[Any]:
    """Create a pod, first as a dry run, label it, change its image, and add an ephemeral container."""
    pod = pods.pod()
    dry = api.request("POST", api.at("pods") + "?dryRun=All", {**pod, "metadata": {**pod["metadata"], "name": "dry"}})
    pod["metadata"]["name"] = "p"
    made = api.request("POST", api.at("pods"), pod)
    path = api.at("pods", "p")
    added = {"name": "e0", "image": "a", "securityContext": pods.context(pod=False)}
    patches = (("", _LABEL), ("", _IMAGE), ("/ephemeralcontainers", {"spec": {"ephemeralContainers": [added]}}))
    return [decision(dry), decision(made), *(_patch(api, path + end, body) for end, body in patches)]


_LABEL: Final[Json] = {"metadata": {"labels": {"edited": "yes"}}}
_IMAGE: Final[Json] = {"spec": {"containers": [{"name": "c0", "image": "b"}]}}


def _patch(api: Api, path: str, body: Json) -> Any:
    return decision(api.request("PATCH", path, body, content_type="application/strategic-merge-patch+json"))
