"""The pods of a Job: with the finalizer that holds them until they are counted, and their index if they have one."""

from __future__ import annotations

from typing import Final

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodTemplateSpec
from konverge.objects import ObjectMeta, from_wire, to_wire
from konverge_cluster.workloads.jobs.indexes import INDEX
from konverge_cluster.workloads.jobs.policies import handling_of
from konverge_cluster.workloads.jobs.tallies import FAILURES, IGNORED_FAILURES, TRACKING, annotated_count
from konverge_cluster.workloads.pods.templates import pod_of

__all__ = ["pod_of_job"]

_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58


def pod_of_job(job: Job, index: int | None, replaced: Pod | None = None) -> Pod:
    """Make a pod of a Job; `replaced` is the failed pod of the same index that it takes over from."""
    template = from_wire(PodTemplateSpec, to_wire(job.spec.template))
    metadata = template.metadata = template.metadata or ObjectMeta()
    if TRACKING not in metadata.finalizers:
        metadata.finalizers.append(TRACKING)
    if index is None:
        return pod_of(template, job)
    metadata.labels[INDEX] = metadata.annotations[INDEX] = str(index)
    if job.spec.backoff_limit_per_index is not None:
        metadata.annotations |= _failures(job, replaced)
    _tell_containers(template)
    template.spec.hostname = f"{job.name}-{index}"
    return pod_of(template, job, prefix=_prefix(job.name, index))


def _failures(job: Job, replaced: Pod | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    counted = annotated_count(replaced, FAILURES)
    ignored = annotated_count(replaced, IGNORED_FAILURES)
    if handling_of(job.spec.pod_failure_policy, replaced).counts:
        counted += 1
    else:
        ignored += 1
    return {FAILURES: str(counted)} | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _tell_containers(template: PodTemplateSpec) -> None:
    """Tell each container its index by a variable, unless it has one of that name."""
    containers: list[Container] = [*template.spec.init_containers, *template.spec.containers]
    for container in containers:
        if all(variable.name != _VARIABLE for variable in container.env):
            path = ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']")
            container.env.append(EnvVar(name=_VARIABLE, value_from=EnvVarSource(field_ref=path)))


def _prefix(name: str, index: int) -> str:
    end = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(end)] + end
