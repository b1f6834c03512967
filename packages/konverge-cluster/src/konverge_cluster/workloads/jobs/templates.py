"""The pods of a Job: with the tracking finalizer and, for indexed Jobs, the completion index."""

from __future__ import annotations

from typing import Final

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec
from konverge.objects import ObjectMeta, from_wire, to_wire
from konverge_cluster.workloads.jobs.indexes import INDEX
from konverge_cluster.workloads.jobs.pod_counts import FAILURES, IGNORED_FAILURES, TRACKING, annotated_count
from konverge_cluster.workloads.jobs.policies import match_failure_policy
from konverge_cluster.workloads.pods.templates import new_pod

__all__ = ["new_job_pod"]

_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_MAX_PREFIX: Final = 58


def new_job_pod(job: Job, index: int | None, replaced: Pod | None = None) -> Pod:
    """Return a new pod of a Job; `replaced` is the failed pod of the same index before it."""
    template = from_wire(PodTemplateSpec, to_wire(job.spec.template))
    metadata = template.metadata = template.metadata or ObjectMeta()
    if TRACKING not in metadata.finalizers:
        metadata.finalizers.append(TRACKING)
    if index is None:
        return new_pod(template, job)
    metadata.labels[INDEX] = metadata.annotations[INDEX] = str(index)
    if job.spec.backoff_limit_per_index is not None:
        metadata.annotations |= _failures(job, replaced)
    _set_index_variables(template)
    template.spec.hostname = f"{job.name}-{index}"
    return new_pod(template, job, prefix=_prefix(job.name, index))


def _failures(job: Job, replaced: Pod | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    counted = annotated_count(replaced, FAILURES)
    ignored = annotated_count(replaced, IGNORED_FAILURES)
    if match_failure_policy(job.spec.pod_failure_policy, replaced).counts:
        counted += 1
    else:
        ignored += 1
    return {FAILURES: str(counted)} | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _set_index_variables(template: PodTemplateSpec) -> None:
    """Set the index variable in each container that has none of that name."""
    containers: list[Container] = [*template.spec.init_containers, *template.spec.containers]
    for container in containers:
        if all(variable.name != _VARIABLE for variable in container.env):
            path = ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']")
            container.env.append(EnvVar(name=_VARIABLE, value_from=EnvVarSource(field_ref=path)))


def _prefix(name: str, index: int) -> str:
    end = f"-{index}-"
    return name[: _MAX_PREFIX - len(end)] + end
