"""A Pod of about 4.5 kB as an API server sends it: two containers, an init container, volumes, probes, full status."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["pod", "pod_bytes"]

_STARTED = "2026-01-05T10:00:04Z"


def _container(name: str, image: str, port: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    return {
        "name": name,
        "image": image,
        "args": ["--listen", f":{port}", "--log-level", "info"],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}},
        ],
        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app", "readOnly": True},
            {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {**probe, "initialDelaySeconds": 10, "failureThreshold": 3, "successThreshold": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _container_status(name: str, image: str) -> dict[str, Any]:
    return {
        "name": name,
        "state": {"running": {"startedAt": _STARTED}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": image,
        "imageID": f"registry.example.com/{image}@sha256:{'4f' * 32}",
        "containerID": f"containerd://{'9c' * 32}",
        "started": True,
    }


def _condition(name: str) -> dict[str, Any]:
    return {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": _STARTED}


def _metadata(name: str) -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-7c5ddbdf54",
        "uid": "0b1c6d38-2c1e-4a52-9d3f-1a2b3c4d5e6f",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "generateName": "web-7c5ddbdf54-",
        "namespace": "shop",
        "uid": "5d0c2c3e-7f4b-4b7c-8a38-6f1de6c1d001",
        "resourceVersion": "48213",
        "generation": 1,
        "creationTimestamp": "2026-01-05T10:00:00Z",
        "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "tier": "frontend"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        "ownerReferences": [owner],
    }


def pod(name: str = "web-7c5ddbdf54-abcde") -> dict[str, Any]:
    """Return the Pod as plain JSON values."""
    conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": _metadata(name),
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": "web", "defaultMode": 420}},
                {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": []}},
            ],
            "containers": [
                _container("web", "shop/web:1.4.2", 8080),
                _container("metrics", "shop/exporter:0.9.1", 9100),
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "serviceAccount": "web",
            "nodeName": "node-17",
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [_condition(name) for name in conditions],
            "hostIP": "10.0.0.17",
            "podIP": "10.1.4.23",
            "podIPs": [{"ip": "10.1.4.23"}],
            "startTime": "2026-01-05T10:00:00Z",
            "containerStatuses": [
                _container_status("web", "shop/web:1.4.2"),
                _container_status("metrics", "shop/exporter:0.9.1"),
            ],
            "qosClass": "Burstable",
        },
    }


def pod_bytes(name: str = "web-7c5ddbdf54-abcde") -> bytes:
    """Return the Pod as compact JSON."""
    return json.dumps(pod(name), separators=(",", ":")).encode()
