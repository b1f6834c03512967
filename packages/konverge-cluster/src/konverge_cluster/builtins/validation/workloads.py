"""What keeps pods running: deployments, replica sets, stateful sets, daemon sets, replication controllers."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.claims import claim_spec
from konverge_cluster.builtins.validation.labels import (
    annotation_values,
    in_order,
    label_selector,
    labels,
    selector_is_empty,
    selector_matches,
)
from konverge_cluster.builtins.validation.pods import pod_template
from konverge_cluster.builtins.validation.values import (
    Problems,
    dns_label,
    immutable,
    int_or_percent,
    not_negative,
)

__all__ = [
    "counts",
    "daemon_set",
    "deployment",
    "labels_match",
    "replica_set",
    "replication_controller",
    "stateful_set",
    "stateful_set_update",
]

Spec = dict[str, Any]

_ROLLING_NAMES: Final = (("MaxUnavailable", "maxUnavailable"), ("MaxSurge", "maxSurge"))
_NO_ROLLING: Final = {"MaxUnavailable": 0, "MaxSurge": 0}
MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_SET_CHANGEABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_SET_FIXED: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def deployment(new: Spec, old: Spec | None = None) -> Problems:
    """A deployment, and what changed in it when there is an old one."""
    spec = new["spec"]
    yield from not_negative(spec["replicas"], "spec.replicas")
    yield from _selector_and_template(spec, "deployment", "ReplicaSet")
    yield from _deployment_strategy(spec["strategy"], "spec.strategy")
    yield from not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from not_negative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit")
    yield from not_negative(spec["progressDeadlineSeconds"], "spec.progressDeadlineSeconds")
    if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
        text = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], text)
    if old is not None:
        yield from immutable(spec["selector"], old["spec"]["selector"], "spec.selector")


def replica_set(new: Spec, old: Spec | None = None) -> Problems:
    spec = new["spec"]
    yield from not_negative(spec["replicas"], "spec.replicas")
    yield from not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _selector_and_template(spec, "deployment", "ReplicaSet")
    if old is not None:
        yield from immutable(spec["selector"], old["spec"]["selector"], "spec.selector")


def _selector_and_template(spec: Spec, kind: str, owner: str) -> Problems:
    selector = spec["selector"]
    wrong = list(_selector(selector, kind))
    yield from wrong
    if _is_unusable(selector):
        yield invalid("spec.selector", selector, "invalid label selector")
        return
    yield from labels_match(selector, spec["template"], "spec.template")
    yield from pod_template(spec["template"], "spec.template")
    yield from _runs_for_ever(spec["template"]["spec"], owner, "spec.template.spec")


def _selector(selector: Spec | None, kind: str) -> Problems:
    if selector is None:
        yield required("spec.selector")
        return
    yield from label_selector(selector, "spec.selector")
    if selector_is_empty(selector):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")


def _is_unusable(selector: Spec | None) -> bool:
    """Whether a selector cannot even be read, so that nothing can be held against it."""
    return any(True for _ in label_selector(selector, "spec.selector"))


def labels_match(selector: Spec | None, template: Spec, path: str) -> Problems:
    """A template must make what the selector finds."""
    found = template["metadata"].get("labels")
    # No selector selects nothing, an empty one everything.
    if selector is None or not selector_matches(selector, found or {}):
        yield invalid(f"{path}.metadata.labels", in_order(found), MISMATCH)


def _runs_for_ever(spec: Spec, owner: str, path: str) -> Problems:
    if spec["restartPolicy"] != "Always":
        yield unsupported(f"{path}.restartPolicy", spec["restartPolicy"], ("Always",))
    if "activeDeadlineSeconds" in spec:
        yield forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {owner} is not Supported")


def _strategy_value(strategy: Spec) -> Spec:
    """A strategy as the server shows it in a message, by the Go names of its fields."""
    rolling = strategy.get("rollingUpdate")
    shown = rolling and {name: rolling.get(key, 0) for name, key in _ROLLING_NAMES}
    return {"Type": strategy.get("type", ""), "RollingUpdate": rolling if rolling is None else shown or _NO_ROLLING}


def _deployment_strategy(strategy: Spec, path: str) -> Problems:
    kind = strategy["type"]
    if kind == "Recreate":
        if "rollingUpdate" in strategy:
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(f"{path}.rollingUpdate", text)
    elif kind == "RollingUpdate":
        yield from _rolling_deployment(strategy["rollingUpdate"], f"{path}.rollingUpdate")
    else:
        yield unsupported(path, _strategy_value(strategy), ("Recreate", "RollingUpdate"))


def _rolling_deployment(rolling: Spec, path: str) -> Problems:
    missing, more = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from int_or_percent(missing, f"{path}.maxUnavailable")
    yield from int_or_percent(more, f"{path}.maxSurge")
    if _number(missing) == 0 and _number(more) == 0:
        yield invalid(f"{path}.maxUnavailable", missing, "may not be 0 when `maxSurge` is 0")
    yield from _at_most_all(missing, f"{path}.maxUnavailable")


def _number(value: int | str) -> int:
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _at_most_all(value: int | str, path: str) -> Problems:
    if isinstance(value, str) and value.endswith("%") and _number(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def daemon_set(new: Spec, old: Spec | None = None) -> Problems:
    spec = new["spec"]
    if old is not None:
        yield from immutable(spec["selector"], old["spec"]["selector"], "spec.selector")
    selector, template = spec["selector"], spec["template"]
    wrong = list(label_selector(selector, "spec.selector"))
    yield from wrong
    if (not wrong and not selector_matches(selector or {}, template["metadata"].get("labels", {}))) or selector is None:
        yield invalid("spec.template.metadata.labels", in_order(template["metadata"].get("labels")), MISMATCH)
    if selector is not None and selector_is_empty(selector):
        yield invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from pod_template(template, "spec.template")
    yield from _runs_for_ever(template["spec"], "DaemonSet", "spec.template.spec")
    yield from not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from _daemon_set_strategy(spec["updateStrategy"], "spec.updateStrategy")
    yield from not_negative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit")


def _daemon_set_strategy(strategy: Spec, path: str) -> Problems:
    kind = strategy["type"]
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        yield unsupported(path, _strategy_value(strategy), ("RollingUpdate", "OnDelete"))
        return
    rolling, where = strategy["rollingUpdate"], f"{path}.rollingUpdate"
    missing, more = rolling["maxUnavailable"], rolling["maxSurge"]
    for check in (int_or_percent, _at_most_all):
        yield from check(missing, f"{where}.maxUnavailable")
        yield from check(more, f"{where}.maxSurge")
    if _number(missing) and _number(more):
        yield invalid(f"{where}.maxSurge", more, "may not be set when maxUnavailable is non-zero")
    elif not _number(missing) and not _number(more):
        yield required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def stateful_set(new: Spec) -> Problems:
    spec = new["spec"]
    yield from _stateful_set_policies(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
        yield from claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    yield from _stateful_set_rest(spec)


def _stateful_set_policies(spec: Spec) -> Problems:
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_set_strategy(spec["updateStrategy"], "spec.updateStrategy")
    for name in ("whenDeleted", "whenScaled"):
        value = spec["persistentVolumeClaimRetentionPolicy"][name]
        if value not in ("Retain", "Delete"):
            yield unsupported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ("Retain", "Delete"))


def _stateful_set_strategy(strategy: Spec, path: str) -> Problems:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    shown = rolling
    if rolling is not None:
        shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
    if kind == "OnDelete":
        if rolling is not None:
            yield invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind != "RollingUpdate":
        value = {"Type": kind, "RollingUpdate": shown}
        yield invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        yield from not_negative(rolling.get("partition"), f"{path}.rollingUpdate.partition")


def _stateful_set_rest(spec: Spec, *, check_service: bool = True) -> Problems:
    yield from not_negative(spec["replicas"], "spec.replicas")
    yield from not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    yield from not_negative(spec.get("ordinals", {}).get("start"), "spec.ordinals.start")
    if check_service and spec.get("serviceName"):
        yield from dns_label(spec["serviceName"], "spec.serviceName")
    selector = spec["selector"]
    yield from _selector(selector, "statefulset")
    template = spec["template"]
    if _is_unusable(selector):
        yield invalid("spec.selector", selector, "")
    else:
        yield from labels_match(selector, template, "spec.template")
        yield from pod_template(_with_claims(template, spec.get("volumeClaimTemplates", ())), "spec.template")
        metadata = template["metadata"]
        yield from labels(metadata.get("labels"), "spec.template.labels")
        yield from annotation_values(metadata.get("annotations"), "spec.template.annotations")
    yield from _runs_for_ever(template["spec"], "StatefulSet", "spec.template.spec")


def _with_claims(template: Spec, claims: Any) -> Spec:
    """A template as its pods will be: with a volume for each claim, and names that the controller sets."""
    added = [{"name": each["metadata"].get("name", "")} for each in claims]
    volumes = [{**each, "persistentVolumeClaim": {"claimName": each["name"]}} for each in added]
    names = {each["name"] for each in added}
    volumes += [each for each in template["spec"].get("volumes", ()) if each["name"] not in names]
    spec = {key: value for key, value in template["spec"].items() if key not in ("subdomain", "hostname")}
    return {**template, "spec": {**spec, "volumes": volumes}}


def stateful_set_update(new: Spec, old: Spec) -> Problems:
    yield from _stateful_set_policies(new["spec"])
    yield from _stateful_set_rest(new["spec"], check_service=False)
    fixed = [
        {key: value for key, value in each["spec"].items() if key not in _STATEFUL_SET_CHANGEABLE}
        for each in (new, old)
    ]
    if fixed[0] != fixed[1]:
        yield forbidden("spec", _STATEFUL_SET_FIXED)


def replication_controller(new: Spec) -> Problems:
    spec = new["spec"]
    yield from not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    selector = spec.get("selector")
    if not selector:
        yield required("spec.selector")
    yield from not_negative(spec["replicas"], "spec.replicas")
    template = spec.get("template")
    if template is None:
        yield required("spec.template")
        return
    found = template["metadata"].get("labels")
    if selector and not selector.items() <= (found or {}).items():
        yield invalid("spec.template.metadata.labels", in_order(found), MISMATCH)
    yield from pod_template(template, "spec.template")
    yield from _runs_for_ever(template["spec"], "ReplicationController", "spec.template.spec")


def counts(status: Spec, names: tuple[str, ...], bounded: tuple[str, ...] = ()) -> Problems:
    """Numbers in a status: none negative, those of `bounded` not above the number of replicas."""
    for name in names:
        yield from not_negative(status.get(name), f"status.{name}")
    total = status.get("replicas", 0)
    for name in bounded:
        if status.get(name, 0) > total:
            yield invalid(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
    available = status.get("availableReplicas", 0)
    if bounded and available > status.get("readyReplicas", 0):
        yield invalid("status.availableReplicas", available, "cannot be greater than readyReplicas")
