"""Defaults of workloads."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.builtins.defaults.pods import default_pod_spec
from konverge_cluster.builtins.defaults.volumes import default_claim

__all__ = [
    "default_cron_job",
    "default_daemon_set",
    "default_deployment",
    "default_job",
    "default_pod_template",
    "default_replica_set",
    "default_replication_controller",
    "default_stateful_set",
    "default_stateful_set_with_max_unavailable",
]

_MAX_BACKOFF_LIMIT: Final = 2**31 - 1


def default_deployment(deployment: dict[str, Any]) -> None:
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_pod_spec(spec["template"]["spec"])


def default_replica_set(replica_set: dict[str, Any]) -> None:
    replica_set["spec"].setdefault("replicas", 1)
    default_pod_spec(replica_set["spec"]["template"]["spec"])


def default_daemon_set(daemon_set: dict[str, Any]) -> None:
    spec = daemon_set["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_pod_spec(spec["template"]["spec"])


def default_stateful_set(stateful_set: dict[str, Any]) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    default_pod_spec(spec["template"]["spec"])
    for claim in spec.get("volumeClaimTemplates", ()):
        # The server always sets apiVersion and kind of claims in a template.
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        default_claim(claim)


def default_stateful_set_with_max_unavailable(stateful_set: dict[str, Any]) -> None:
    default_stateful_set(stateful_set)
    strategy = stateful_set["spec"]["updateStrategy"]
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("maxUnavailable", 1)


def default_replication_controller(controller: dict[str, Any]) -> None:
    spec = controller["spec"]
    template = spec.get("template")
    if template is not None:
        labels = template["metadata"].get("labels")
        if labels:
            spec.setdefault("selector", dict(labels))
            controller["metadata"].setdefault("labels", dict(labels))
        default_pod_spec(template["spec"])
    spec.setdefault("replicas", 1)


def default_pod_template(template: dict[str, Any]) -> None:
    default_pod_spec(template["template"]["spec"])


def default_job(job: dict[str, Any]) -> None:
    spec = job["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _MAX_BACKOFF_LIMIT if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        # The same dict on purpose: labels that the server adds to the template also appear on the job.
        job["metadata"].setdefault("labels", labels)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    _default_job_template(spec)


def _default_job_template(spec: dict[str, Any]) -> None:
    for rule in spec.get("podFailurePolicy", {}).get("rules") or ():
        for pattern in rule.get("onPodConditions", ()):
            # The field is always printed, so it is present and empty.
            pattern["status"] = pattern["status"] or "True"
    default_pod_spec(spec["template"]["spec"])


def default_cron_job(cron_job: dict[str, Any]) -> None:
    spec = cron_job["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _default_job_template(spec["jobTemplate"]["spec"])
