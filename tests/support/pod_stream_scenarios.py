"""Requests for logs of pods and commands in them that no kubelet is asked for; each returns the answers by label."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from authentication_clusters import AuthenticationCluster

__all__ = ["SCENARIOS"]

Answers = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
LOG_OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"follow": "true"},
    {"previous": "true"},
    {"container": "x"},
    {"container": "a"},
    {"tailLines": "-1"},
    {"tailLines": "x"},
    {"limitBytes": "0"},
    {"sinceSeconds": "0"},
    {"sinceSeconds": "-1"},
    {"sinceTime": "foo"},
    {"sinceTime": "2020-02-30T00:00:00Z"},
    {"sinceTime": "2020-01-01T00:00:00Z", "sinceSeconds": "1"},
    {"sinceTime": "2020-01-01T00:00:00Z", "sinceSeconds": "0"},
    {"tailLines": "-1", "limitBytes": "-7", "sinceSeconds": "0", "stream": "Stdout"},
    {"stream": "Stdout"},
)
EXEC_OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"command": "ls", "stdout": "true"},
    {"container": "x"},
    {"container": "i"},
)
WEBSOCKET = (
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "MDAwMDAwMDAwMDAwMDAwMA=="),
    ("sec-websocket-protocol", "v5.channel.k8s.io"),
)


def create_pods(cluster: AuthenticationCluster) -> None:
    for name, node, names in (("unbound", "", "a"), ("lost", "nowhere", "a"), ("two", "nowhere", "ab")):
        containers = [{"name": one, "image": "i"} for one in names]
        init = [{"name": "i", "image": "i"}] if name == "two" else []
        spec = {"containers": containers, "initContainers": init, "nodeName": node, "nodeSelector": {"no": "where"}}
        cluster.request("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def logs(cluster: AuthenticationCluster) -> Answers:
    """Logs of pods without a node, of a node that does not exist, and of no pod."""
    create_pods(cluster)
    found: Answers = {}
    for pod in ("unbound", "lost", "two", "none"):
        for options in LOG_OPTIONS:
            reply = cluster.request("GET", f"{PODS}/{pod}/log?{urlencode(options)}")
            found[f"{pod} {options}"] = reply.masked
    for accept in ("application/yaml", "application/json, */*"):
        reply = cluster.request("GET", f"{PODS}/unbound/log", headers=(("accept", accept),))
        found[f"accept {accept}"] = reply.masked
    found["POST"] = cluster.request("POST", f"{PODS}/lost/log").masked
    return found


def commands(cluster: AuthenticationCluster) -> Answers:
    """Commands in such pods, and attaching to them."""
    create_pods(cluster)
    found: Answers = {}
    for pod in ("unbound", "lost", "two", "none"):
        for part in ("exec", "attach"):
            for options in EXEC_OPTIONS:
                path = f"{PODS}/{pod}/{part}?{urlencode(options)}"
                for method, headers in (("GET", ()), ("POST", ()), ("GET", WEBSOCKET), ("PUT", ())):
                    label = f"{method} {pod}/{part} {options} {bool(headers)}"
                    found[label] = cluster.request(method, path, headers=headers).masked
    return found


SCENARIOS = (logs, commands)
