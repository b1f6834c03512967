"""Strategies of Jobs and CronJobs."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.defaults import workloads
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import jobs
from konverge_cluster.builtins.validation.job_status import validate_job_status_update

__all__ = ["CronJobStrategy", "JobStrategy"]

_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_ORPHAN_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set"
    " propagationPolicy=Orphan to suppress this warning"
)


class JobStrategy(BuiltinStrategy):
    """Jobs. Without `manualSelector`, a job selects its pods by its uid."""

    set_defaults = staticmethod(workloads.default_job)
    template_path = ("spec", "template")
    names_pods = True
    generation_fields = ("spec",)
    default_propagation = "Orphan"
    selectable_fields = ("status.successful",)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        if not new["spec"]["manualSelector"]:
            _generate_selector(new)

    def fields(self, document: Document) -> dict[str, str]:
        return {"status.successful": str(document["status"].get("succeeded", 0))}

    def unknown_field_label(self, label: str) -> str:
        return f'field label "{label}" not supported for Job'

    def warnings_on_delete(self, document: Document, options: Mapping[str, Any]) -> list[str]:
        is_set = options.get("propagationPolicy") is not None or options.get("orphanDependents") is not None
        return [] if is_set else [_ORPHAN_WARNING]

    check = staticmethod(jobs.validate_job)

    check_change = staticmethod(jobs.validate_job_update)

    check_status = staticmethod(validate_job_status_update)


def _generate_selector(job: Document) -> None:
    metadata, spec = job["metadata"], job["spec"]
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for name in _NAME_LABELS:
        labels.setdefault(name, metadata.get("name", ""))
    for name in _UID_LABELS:
        labels.setdefault(name, metadata["uid"])
    metadata.setdefault("labels", labels)
    spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(_UID_LABELS[1], metadata["uid"])


class CronJobStrategy(BuiltinStrategy):
    """CronJobs."""

    set_defaults = staticmethod(workloads.default_cron_job)
    template_path = ("spec", "jobTemplate", "spec", "template")
    names_pods = True
    generation_fields = ("spec",)

    check = staticmethod(jobs.validate_cron_job)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return jobs.validate_cron_job(new, old)
