"""Validation of Jobs and CronJobs."""

from __future__ import annotations

from typing import Any, Final

from konverge.objects.names import dns_label_errors
from konverge_cluster.api.field_errors import (
    OMIT_VALUE,
    FieldError,
    duplicate,
    invalid,
    required,
    too_many,
    unsupported,
)
from konverge_cluster.builtins.validation.labels import selector_matches, sorted_labels, validate_label_selector
from konverge_cluster.builtins.validation.pods import validate_pod_template
from konverge_cluster.builtins.validation.schedules import validate_schedule_format, validate_time_zone
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_domain_prefixed_path,
    validate_enum,
    validate_immutable,
    validate_nonnegative,
    validate_qualified_name,
)
from konverge_cluster.builtins.validation.workloads import MISMATCH

__all__ = ["validate_cron_job", "validate_job", "validate_job_update"]

Spec = dict[str, Any]

_NUMBERS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_LIMIT: Final = 100_000


def validate_job(new: Spec) -> FieldErrors:
    metadata, spec = new["metadata"], new["spec"]
    if not spec["manualSelector"]:
        yield from _validate_generated_selector(metadata, spec)
    yield from _validate_job_spec(spec, "spec")
    yield from _validate_selector(spec)
    if spec["completionMode"] == "Indexed" and spec.get("completions", 0) > 0:
        longest = f"{metadata.get('name', '')}-{spec['completions'] - 1}"
        if dns_label_errors(longest):
            text = f"will not able to create pod with invalid DNS label: {longest}"
            yield invalid("metadata.name", metadata.get("name", ""), text)


def _validate_generated_selector(metadata: Spec, spec: Spec) -> FieldErrors:
    if "selector" not in spec:
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    expected = {_UID_LABELS[0]: uid, _NAME_LABELS[0]: name, _UID_LABELS[1]: uid, _NAME_LABELS[1]: name}
    labels = spec["template"]["metadata"].get("labels", {})
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            yield required(path, f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(path, sorted_labels(labels), f"must be '{value}'")
    selector = spec["selector"]
    if not list(validate_label_selector(selector, "")) and not selector_matches(selector, expected):
        yield invalid("spec.selector", selector, "`selector` not auto-generated")


def _validate_selector(spec: Spec) -> FieldErrors:
    selector = spec.get("selector")
    labels = spec["template"]["metadata"].get("labels")
    errors = list(validate_label_selector(selector, "spec.selector"))
    if selector is None:
        yield required("spec.selector")
    yield from errors
    if not errors and (selector is None or not selector_matches(selector, labels or {})):
        yield invalid("spec.template.metadata.labels", sorted_labels(labels), MISMATCH)


def _validate_job_spec(spec: Spec, path: str) -> FieldErrors:
    for name in _NUMBERS:
        yield from validate_nonnegative(spec.get(name), f"{path}.{name}")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if "managedBy" in spec:
        yield from validate_domain_prefixed_path(spec["managedBy"], f"{path}.managedBy")
    yield from _validate_completion_mode(spec, path)
    if "podFailurePolicy" in spec:
        yield from _validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        yield from _validate_success_policy(spec, f"{path}.successPolicy")
    yield from _validate_replacement_policy(spec, f"{path}.podReplacementPolicy")
    yield from validate_pod_template(spec["template"], f"{path}.template")
    yield from _validate_restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _validate_completion_mode(spec: Spec, path: str) -> FieldErrors:
    # The job template of a CronJob may have no mode; the default is NonIndexed.
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        yield unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _validate_indexed(spec, path)
    elif mode == "NonIndexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")


def _validate_indexed(spec: Spec, path: str) -> FieldErrors:
    completions, parallelism, failed = (spec.get(name) for name in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _LIMIT:
        text = f"must be less than or equal to {_LIMIT} when completion mode is Indexed"
        yield invalid(f"{path}.parallelism", parallelism, text)
    if failed is not None and completions is not None and failed > completions:
        yield invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _LIMIT:
        yield invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_LIMIT}")


def _validate_failure_policy(spec: Spec, path: str) -> FieldErrors:
    rules = spec["podFailurePolicy"]["rules"] or []
    if len(rules) > 20:
        yield too_many(f"{path}.rules", len(rules), 20)
    pod = spec["template"]["spec"]
    names = {each["name"] for each in (*(pod["containers"] or ()), *pod.get("initContainers", ()))}
    for index, rule in enumerate(rules):
        yield from _validate_failure_rule(rule, spec, names, f"{path}.rules[{index}]")


def _validate_failure_rule(rule: Spec, spec: Spec, names: set[str], path: str) -> FieldErrors:
    action = rule["action"]
    if not action:
        yield required(f"{path}.action", 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')
    elif action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        yield invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        yield unsupported(f"{path}.action", action, _ACTIONS)
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions", [])
    if codes is not None:
        yield from _validate_exit_codes(codes, names, f"{path}.onExitCodes")
    for index, pattern in enumerate(conditions):
        where = f"{path}.onPodConditions[{index}]"
        yield from validate_qualified_name(pattern["type"], f"{where}.type")
        if pattern["status"] not in ("False", "True", "Unknown"):
            yield unsupported(f"{where}.status", pattern["status"], ("False", "True", "Unknown"))
    if codes is not None and conditions:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield FieldError("FieldValueInvalid", path, OMIT_VALUE, text)
    if codes is None and not conditions:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        yield FieldError("FieldValueInvalid", path, OMIT_VALUE, text)


def _validate_exit_codes(codes: Spec, names: set[str], path: str) -> FieldErrors:
    operator, values = codes["operator"], codes["values"] or []
    if not operator:
        yield required(f"{path}.operator", 'valid values: ["In" "NotIn"]')
    elif operator not in ("In", "NotIn"):
        yield unsupported(f"{path}.operator", operator, ("In", "NotIn"))
    container = codes.get("containerName")
    if container is not None and container not in names:
        text = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", container, text)
    if not values:
        yield invalid(f"{path}.values", codes["values"], "at least one value is required")
    elif len(values) > 255:
        yield too_many(f"{path}.values", len(values), 255)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate(f"{path}.values[{index}]", value)
    if values != sorted(values):
        yield invalid(f"{path}.values", values, "must be ordered")


def _validate_success_policy(spec: Spec, path: str) -> FieldErrors:
    rules = spec["successPolicy"]["rules"]
    if spec.get("completionMode") != "Indexed":
        names = (("SucceededIndexes", "succeededIndexes"), ("SucceededCount", "succeededCount"))
        value = rules and [{name: rule.get(key) for name, key in names} for rule in rules]
        yield invalid(path, {"Rules": value}, "requires indexed completion mode")
        return
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", text)
    for index, rule in enumerate(rules or ()):
        yield from _validate_success_rule(rule, spec.get("completions", 0), f"{path}.rules[{index}]")


def _validate_success_rule(rule: Spec, completions: int, path: str) -> FieldErrors:
    count = rule.get("succeededCount")
    if count is None and "succeededIndexes" not in rule:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    yield from validate_nonnegative(count, f"{path}.succeededCount")
    if count is not None and count > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(f"{path}.succeededCount", count, text)


def _validate_replacement_policy(spec: Spec, path: str) -> FieldErrors:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return
    allowed = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    if policy not in allowed:
        yield unsupported(path, policy, allowed)


def _validate_restart_policy(spec: Spec, path: str) -> FieldErrors:
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(path, policy, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def validate_job_update(new: Spec, old: Spec) -> FieldErrors:
    spec, old_spec = new["spec"], old["spec"]
    yield from _validate_job_spec(spec, "spec")
    yield from _validate_selector(spec)
    yield from _validate_completions(spec, old_spec)
    yield from validate_immutable(spec.get("selector"), old_spec.get("selector"), "spec.selector")
    yield from _validate_template_update(spec, old_spec, old["status"])
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from validate_immutable(spec.get(name), old_spec.get(name), f"spec.{name}")


def _validate_completions(spec: Spec, old_spec: Spec) -> FieldErrors:
    new, old = spec.get("completions"), old_spec.get("completions")
    if spec["completionMode"] != "Indexed":
        yield from validate_immutable(new, old, "spec.completions")
    elif new is not None and new != old and new != spec["parallelism"]:
        yield invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")


def _validate_template_update(spec: Spec, old_spec: Spec, status: Spec) -> FieldErrors:
    """Validate a changed template: only scheduling directives and resources may change, while the job is idle."""
    template, old_template = spec["template"], old_spec["template"]
    if not _is_idle(old_spec, status):
        if template != old_template:
            yield invalid("spec.template", template, "field is immutable")
    elif _without_directives(template, old_template) != _without_directives(old_template, old_template):
        yield invalid("spec.template.spec", template["spec"], "field is immutable")


def _is_idle(spec: Spec, status: Spec) -> bool:
    conditions = status.get("conditions", ())
    is_suspended = any(each.get("type") == "Suspended" and each.get("status") == "True" for each in conditions)
    is_stopped = "startTime" not in status or is_suspended
    return spec.get("suspend") is True and is_stopped and status.get("active", 0) == 0


def _without_directives(template: Spec, old_template: Spec) -> Spec:
    """Return a pod spec without its mutable fields. Resources are mutable if the container names are unchanged."""
    mutable = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    spec = {k: v for k, v in template["spec"].items() if k not in mutable}
    affinity = {k: v for k, v in template["spec"].get("affinity", {}).items() if k != "nodeAffinity"}
    for name in ("containers", "initContainers"):
        containers, old_containers = spec.get(name) or [], old_template["spec"].get(name) or []
        if [each["name"] for each in containers] == [each["name"] for each in old_containers]:
            spec[name] = [{k: v for k, v in each.items() if k != "resources"} for each in containers]
    return {**spec, **({"affinity": affinity} if affinity else {})}


def validate_cron_job(new: Spec, old: Spec | None = None) -> FieldErrors:
    spec, old_spec = new["spec"], (old or {}).get("spec", {})
    yield from _validate_cron_times(spec, old_spec)
    yield from validate_enum(spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"), "spec.concurrencyPolicy")
    template = spec["jobTemplate"]["spec"]
    path = "spec.jobTemplate.spec"
    yield from _validate_job_spec(template, path)
    if "selector" in template:
        yield invalid(f"{path}.selector", template["selector"], "`selector` will be auto-generated")
    if template.get("manualSelector"):
        yield unsupported(f"{path}.manualSelector", True, ("nil", "false"))
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from validate_nonnegative(spec[name], f"spec.{name}")
    name = new["metadata"].get("name", "")
    if old is None and len(name) > 52:
        yield invalid("metadata.name", name, "must be no more than 52 characters")


def _validate_cron_times(spec: Spec, old_spec: Spec) -> FieldErrors:
    zone = spec.get("timeZone")
    if not spec["schedule"]:
        yield required("spec.schedule")
    else:
        allow_time_zone = "TZ" in old_spec.get("schedule", "")
        yield from validate_schedule_format(
            spec["schedule"], "spec.schedule", zone=zone, allow_time_zone=allow_time_zone
        )
    yield from validate_nonnegative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if not old_spec or old_spec.get("timeZone") != zone:
        yield from validate_time_zone(zone, "spec.timeZone")
