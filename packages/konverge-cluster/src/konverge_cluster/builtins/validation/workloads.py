"""Validation of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.claims import validate_claim_spec
from konverge_cluster.builtins.validation.labels import (
    selector_is_empty,
    selector_matches,
    sorted_labels,
    validate_annotation_values,
    validate_label_selector,
    validate_labels,
)
from konverge_cluster.builtins.validation.pods import validate_pod_template
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_label,
    validate_immutable,
    validate_int_or_percent,
    validate_nonnegative,
)

__all__ = [
    "validate_counts",
    "validate_daemon_set",
    "validate_deployment",
    "validate_replica_set",
    "validate_replication_controller",
    "validate_stateful_set",
    "validate_stateful_set_update",
    "validate_template_labels",
]

Spec = dict[str, Any]

_ROLLING_NAMES: Final = (("MaxUnavailable", "maxUnavailable"), ("MaxSurge", "maxSurge"))
_NO_ROLLING: Final = {"MaxUnavailable": 0, "MaxSurge": 0}
MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_SET_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_SET_IMMUTABLE_TEXT: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_deployment(new: Spec, old: Spec | None = None) -> FieldErrors:
    """Validate a Deployment, and the change if there is an old one."""
    spec = new["spec"]
    yield from validate_nonnegative(spec["replicas"], "spec.replicas")
    yield from _validate_selector_and_template(spec, "deployment", "ReplicaSet")
    yield from _validate_deployment_strategy(spec["strategy"], "spec.strategy")
    yield from validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from validate_nonnegative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit")
    yield from validate_nonnegative(spec["progressDeadlineSeconds"], "spec.progressDeadlineSeconds")
    if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
        text = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], text)
    if old is not None:
        yield from validate_immutable(spec["selector"], old["spec"]["selector"], "spec.selector")


def validate_replica_set(new: Spec, old: Spec | None = None) -> FieldErrors:
    spec = new["spec"]
    yield from validate_nonnegative(spec["replicas"], "spec.replicas")
    yield from validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _validate_selector_and_template(spec, "deployment", "ReplicaSet")
    if old is not None:
        yield from validate_immutable(spec["selector"], old["spec"]["selector"], "spec.selector")


def _validate_selector_and_template(spec: Spec, kind: str, owner: str) -> FieldErrors:
    selector = spec["selector"]
    errors = list(_validate_selector(selector, kind))
    yield from errors
    if _is_unparsable(selector):
        yield invalid("spec.selector", selector, "invalid label selector")
        return
    yield from validate_template_labels(selector, spec["template"], "spec.template")
    yield from validate_pod_template(spec["template"], "spec.template")
    yield from _validate_restart_policy(spec["template"]["spec"], owner, "spec.template.spec")


def _validate_selector(selector: Spec | None, kind: str) -> FieldErrors:
    if selector is None:
        yield required("spec.selector")
        return
    yield from validate_label_selector(selector, "spec.selector")
    if selector_is_empty(selector):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")


def _is_unparsable(selector: Spec | None) -> bool:
    """Report whether a selector cannot be parsed, so that no labels can be matched against it."""
    return any(True for _ in validate_label_selector(selector, "spec.selector"))


def validate_template_labels(selector: Spec | None, template: Spec, path: str) -> FieldErrors:
    """Require that the selector matches the labels of the template."""
    labels = template["metadata"].get("labels")
    # A missing selector matches nothing, an empty one everything.
    if selector is None or not selector_matches(selector, labels or {}):
        yield invalid(f"{path}.metadata.labels", sorted_labels(labels), MISMATCH)


def _validate_restart_policy(spec: Spec, owner: str, path: str) -> FieldErrors:
    if spec["restartPolicy"] != "Always":
        yield unsupported(f"{path}.restartPolicy", spec["restartPolicy"], ("Always",))
    if "activeDeadlineSeconds" in spec:
        yield forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {owner} is not Supported")


def _strategy_value(strategy: Spec) -> Spec:
    """Return a strategy as error messages print it, with the Go names of its fields."""
    rolling = strategy.get("rollingUpdate")
    value = rolling and {name: rolling.get(key, 0) for name, key in _ROLLING_NAMES}
    return {"Type": strategy.get("type", ""), "RollingUpdate": rolling if rolling is None else value or _NO_ROLLING}


def _validate_deployment_strategy(strategy: Spec, path: str) -> FieldErrors:
    kind = strategy["type"]
    if kind == "Recreate":
        if "rollingUpdate" in strategy:
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(f"{path}.rollingUpdate", text)
    elif kind == "RollingUpdate":
        yield from _validate_rolling_deployment(strategy["rollingUpdate"], f"{path}.rollingUpdate")
    else:
        yield unsupported(path, _strategy_value(strategy), ("Recreate", "RollingUpdate"))


def _validate_rolling_deployment(rolling: Spec, path: str) -> FieldErrors:
    missing, more = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from validate_int_or_percent(missing, f"{path}.maxUnavailable")
    yield from validate_int_or_percent(more, f"{path}.maxSurge")
    if _number(missing) == 0 and _number(more) == 0:
        yield invalid(f"{path}.maxUnavailable", missing, "may not be 0 when `maxSurge` is 0")
    yield from _validate_at_most_all(missing, f"{path}.maxUnavailable")


def _number(value: int | str) -> int:
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _validate_at_most_all(value: int | str, path: str) -> FieldErrors:
    if isinstance(value, str) and value.endswith("%") and _number(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def validate_daemon_set(new: Spec, old: Spec | None = None) -> FieldErrors:
    spec = new["spec"]
    if old is not None:
        yield from validate_immutable(spec["selector"], old["spec"]["selector"], "spec.selector")
    selector, template = spec["selector"], spec["template"]
    errors = list(validate_label_selector(selector, "spec.selector"))
    yield from errors
    if (
        not errors and not selector_matches(selector or {}, template["metadata"].get("labels", {}))
    ) or selector is None:
        yield invalid("spec.template.metadata.labels", sorted_labels(template["metadata"].get("labels")), MISMATCH)
    if selector is not None and selector_is_empty(selector):
        yield invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from validate_pod_template(template, "spec.template")
    yield from _validate_restart_policy(template["spec"], "DaemonSet", "spec.template.spec")
    yield from validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _validate_daemon_set_strategy(spec["updateStrategy"], "spec.updateStrategy")
    yield from validate_nonnegative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit")


def _validate_daemon_set_strategy(strategy: Spec, path: str) -> FieldErrors:
    kind = strategy["type"]
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        yield unsupported(path, _strategy_value(strategy), ("RollingUpdate", "OnDelete"))
        return
    rolling, where = strategy["rollingUpdate"], f"{path}.rollingUpdate"
    missing, more = rolling["maxUnavailable"], rolling["maxSurge"]
    for check in (validate_int_or_percent, _validate_at_most_all):
        yield from check(missing, f"{where}.maxUnavailable")
        yield from check(more, f"{where}.maxSurge")
    if _number(missing) and _number(more):
        yield invalid(f"{where}.maxSurge", more, "may not be set when maxUnavailable is non-zero")
    elif not _number(missing) and not _number(more):
        yield required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def validate_stateful_set(new: Spec) -> FieldErrors:
    spec = new["spec"]
    yield from _validate_stateful_set_policies(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
        yield from validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    yield from _validate_stateful_set_spec(spec)


def _validate_stateful_set_policies(spec: Spec) -> FieldErrors:
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _validate_stateful_set_strategy(spec["updateStrategy"], "spec.updateStrategy")
    for name in ("whenDeleted", "whenScaled"):
        value = spec["persistentVolumeClaimRetentionPolicy"][name]
        if value not in ("Retain", "Delete"):
            yield unsupported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ("Retain", "Delete"))


def _validate_stateful_set_strategy(strategy: Spec, path: str) -> FieldErrors:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    rolling_value = rolling
    if rolling is not None:
        rolling_value = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
    if kind == "OnDelete":
        if rolling is not None:
            yield invalid(f"{path}.rollingUpdate", rolling_value, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind != "RollingUpdate":
        value = {"Type": kind, "RollingUpdate": rolling_value}
        yield invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from validate_nonnegative(rolling.get("partition"), f"{path}.rollingUpdate.partition")
        if "maxUnavailable" in rolling:
            yield from _validate_max_unavailable(rolling["maxUnavailable"], f"{path}.rollingUpdate.maxUnavailable")


def _validate_max_unavailable(value: Any, path: str) -> FieldErrors:
    yield from validate_int_or_percent(value, path)
    if _number(value) == 0:
        yield invalid(path, value, "cannot be 0")
    yield from _validate_at_most_all(value, path)


def _validate_stateful_set_spec(spec: Spec, *, check_service: bool = True) -> FieldErrors:
    yield from validate_nonnegative(spec["replicas"], "spec.replicas")
    yield from validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from validate_nonnegative(spec.get("ordinals", {}).get("start"), "spec.ordinals.start")
    if check_service and spec.get("serviceName"):
        yield from validate_dns_label(spec["serviceName"], "spec.serviceName")
    selector = spec["selector"]
    yield from _validate_selector(selector, "statefulset")
    template = spec["template"]
    if _is_unparsable(selector):
        yield invalid("spec.selector", selector, "")
    else:
        yield from validate_template_labels(selector, template, "spec.template")
        yield from validate_pod_template(_with_claims(template, spec.get("volumeClaimTemplates", ())), "spec.template")
        metadata = template["metadata"]
        yield from validate_labels(metadata.get("labels"), "spec.template.labels")
        yield from validate_annotation_values(metadata.get("annotations"), "spec.template.annotations")
    yield from _validate_restart_policy(template["spec"], "StatefulSet", "spec.template.spec")


def _with_claims(template: Spec, claims: Any) -> Spec:
    """Return the template of the created pods: a volume for each claim; the controller sets hostname and subdomain."""
    claim_names = [{"name": each["metadata"].get("name", "")} for each in claims]
    volumes = [{**each, "persistentVolumeClaim": {"claimName": each["name"]}} for each in claim_names]
    names = {each["name"] for each in claim_names}
    volumes += [each for each in template["spec"].get("volumes", ()) if each["name"] not in names]
    spec = {key: value for key, value in template["spec"].items() if key not in ("subdomain", "hostname")}
    return {**template, "spec": {**spec, "volumes": volumes}}


def validate_stateful_set_update(new: Spec, old: Spec) -> FieldErrors:
    yield from _validate_stateful_set_policies(new["spec"])
    yield from _validate_stateful_set_spec(new["spec"], check_service=False)
    fixed = [
        {key: value for key, value in each["spec"].items() if key not in _STATEFUL_SET_MUTABLE} for each in (new, old)
    ]
    if fixed[0] != fixed[1]:
        yield forbidden("spec", _STATEFUL_SET_IMMUTABLE_TEXT)


def validate_replication_controller(new: Spec) -> FieldErrors:
    spec = new["spec"]
    yield from validate_nonnegative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    selector = spec.get("selector")
    if not selector:
        yield required("spec.selector")
    yield from validate_nonnegative(spec["replicas"], "spec.replicas")
    template = spec.get("template")
    if template is None:
        yield required("spec.template")
        return
    labels = template["metadata"].get("labels")
    if selector and not selector.items() <= (labels or {}).items():
        yield invalid("spec.template.metadata.labels", sorted_labels(labels), MISMATCH)
    yield from validate_pod_template(template, "spec.template")
    yield from _validate_restart_policy(template["spec"], "ReplicationController", "spec.template.spec")


def validate_counts(status: Spec, names: tuple[str, ...], bounded: tuple[str, ...] = ()) -> FieldErrors:
    """Validate numbers in a status: none is negative, those in `bounded` do not exceed the replicas."""
    for name in names:
        yield from validate_nonnegative(status.get(name), f"status.{name}")
    total = status.get("replicas", 0)
    for name in bounded:
        if status.get(name, 0) > total:
            yield invalid(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
    available = status.get("availableReplicas", 0)
    if bounded and available > status.get("readyReplicas", 0):
        yield invalid("status.availableReplicas", available, "cannot be greater than readyReplicas")
