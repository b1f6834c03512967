"""Table rows of workloads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from konverge_cluster.api.strategy import Document
from konverge_cluster.api.tables import age_of, human_duration
from konverge_cluster.builtins.rows.formats import NONE, UNSET, age, container_cells, labels_text, selector_text

__all__ = [
    "controller_revision_cells",
    "cron_job_cells",
    "daemon_set_cells",
    "deployment_cells",
    "job_cells",
    "pod_template_cells",
    "replica_set_cells",
    "replication_controller_cells",
    "stateful_set_cells",
]

_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def deployment_cells(deployment: Document, now: float) -> list[Any]:
    spec, status = deployment["spec"], deployment["status"]
    ready = f"{status.get('readyReplicas', 0)}/{spec['replicas']}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    wide = [*container_cells(spec["template"]["spec"]), selector_text(spec["selector"], "")]
    return [_name(deployment), ready, *counts, age(deployment, now), *wide]


def replica_set_cells(replica_set: Document, now: float) -> list[Any]:
    spec, status = replica_set["spec"], replica_set["status"]
    counts = [spec["replicas"], status["replicas"], status.get("readyReplicas", 0)]
    wide = [*container_cells(spec["template"]["spec"]), selector_text(spec["selector"])]
    return [_name(replica_set), *counts, age(replica_set, now), *wide]


def replication_controller_cells(controller: Document, now: float) -> list[Any]:
    spec, status = controller["spec"], controller["status"]
    counts = [spec["replicas"], status["replicas"], status.get("readyReplicas", 0)]
    wide = [*container_cells(spec.get("template", {}).get("spec")), labels_text(spec.get("selector"))]
    return [_name(controller), *counts, age(controller, now), *wide]


def stateful_set_cells(stateful_set: Document, now: float) -> list[Any]:
    spec = stateful_set["spec"]
    ready = f"{stateful_set['status'].get('readyReplicas', 0)}/{spec['replicas']}"
    return [_name(stateful_set), ready, age(stateful_set, now), *container_cells(spec["template"]["spec"])]


def daemon_set_cells(daemon_set: Document, now: float) -> list[Any]:
    spec, status = daemon_set["spec"], daemon_set["status"]
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
    counts = [status.get(name, 0) for name in (*names, "updatedNumberScheduled", "numberAvailable")]
    pod = spec["template"]["spec"]
    wide = [*container_cells(pod), selector_text(spec["selector"])]
    return [_name(daemon_set), *counts, labels_text(pod.get("nodeSelector")), age(daemon_set, now), *wide]


def pod_template_cells(template: Document, _now: float) -> list[Any]:
    inner = template["template"]
    return [_name(template), *container_cells(inner["spec"]), labels_text(inner["metadata"].get("labels"))]


def controller_revision_cells(revision: Document, now: float) -> list[Any]:
    owners = revision["metadata"].get("ownerReferences", ())
    owner = next((each for each in owners if each.get("controller")), None)
    owner_text = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        owner_text = f"{kind.lower()}/{owner['name']}"
    return [_name(revision), owner_text, revision["revision"], age(revision, now)]


def job_cells(job: Document, now: float) -> list[Any]:
    spec = job["spec"]
    wide = [*container_cells(spec["template"]["spec"]), selector_text(spec.get("selector"))]
    return [_name(job), _job_state(job), _completions(job), _duration(job["status"], now), age(job, now), *wide]


def _job_state(job: Document) -> str:
    true = {each["type"] for each in job["status"].get("conditions", ()) if each["status"] == "True"}
    for condition, state in _JOB_STATES:
        if condition in true or (not condition and "deletionTimestamp" in job["metadata"]):
            return state
    return "Running"


def _completions(job: Document) -> str:
    done, spec = job["status"].get("succeeded", 0), job["spec"]
    if "completions" in spec:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(status: Document, now: float) -> str:
    if "startTime" not in status:
        return ""
    end = _seconds(status["completionTime"]) if "completionTime" in status else now
    return human_duration(end - _seconds(status["startTime"]))


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def cron_job_cells(cron_job: Document, now: float) -> list[Any]:
    spec, status = cron_job["spec"], cron_job["status"]
    suspended = spec.get("suspend")
    last = status.get("lastScheduleTime")
    template = spec["jobTemplate"]["spec"]
    return [
        _name(cron_job),
        spec["schedule"],
        spec.get("timeZone", NONE),
        UNSET if suspended is None else str(bool(suspended)),
        len(status.get("active", ())),
        NONE if last is None else age_of(last, now),
        age(cron_job, now),
        *container_cells(template["template"]["spec"]),
        selector_text(template.get("selector")),
    ]
