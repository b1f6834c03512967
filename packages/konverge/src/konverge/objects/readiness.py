"""Whether an object has reached its desired state, by the rules of kstatus (sigs.k8s.io/cli-utils).

The rules, in this order; the first that decides wins:

1. An object that is being deleted is Terminating.
2. A status that observes another generation than the object has is InProgress.
3. The condition Reconciling makes an object InProgress, Stalled makes it Failed.
4. Some built-in kinds have rules of their own, in `_RULES`. A Pod that ended is Current, whether it succeeded or not,
   and so is a Job that runs: both do what they are meant to do.
5. The condition Ready: Current if it is true, InProgress otherwise.
6. Anything else is Current: an object without a status has nothing to wait for.

A field of an unexpected type counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from konverge.objects.edits import full_object
from konverge.objects.kinds import split_api_version
from konverge.objects.resources import AnyObject
from konverge.objects.times import now

__all__ = ["ObjectStatus", "is_ready", "object_status"]

Json: TypeAlias = dict[str, Any]

_SCHEDULING: Final = timedelta(seconds=15)  # how long a Pod may be unschedulable before that is a failure
_NO_DEADLINE: Final = 2**31 - 1  # a Deployment with this progress deadline does not report progress


class ObjectStatus(Struct, frozen=True):
    """The status of an object by the rules of kstatus, and a short text about what it waits for."""

    status: Literal["Current", "InProgress", "Failed", "Terminating"]
    message: str = ""


def is_ready(obj: AnyObject | None) -> bool:
    """Report whether an object has reached its desired state (Current in kstatus); None has not.

    Any kind works, built-in or custom, typed or unstructured.
    """
    return obj is not None and object_status(obj).status == "Current"


def object_status(obj: AnyObject) -> ObjectStatus:
    """Return the status of an object by the rules of kstatus."""
    document = full_object(obj)
    generic = _generic_status(document)
    if generic is not None:
        return generic
    rule = _RULES.get((split_api_version(obj.api_version)[0], obj.kind))
    return _ready_condition(document) if rule is None else rule(document)


def _current(message: str = "") -> ObjectStatus:
    return ObjectStatus("Current", message)


def _in_progress(message: str) -> ObjectStatus:
    return ObjectStatus("InProgress", message)


# Fields


def _value(document: Json, path: str) -> Any:
    value: Any = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _number(document: Json, path: str, default: int = 0) -> int:
    value = _value(document, path)
    return value if type(value) is int else default


def _text(document: Json, path: str) -> str:
    value = _value(document, path)
    return value if isinstance(value, str) else ""


def _items(document: Json, path: str) -> Iterator[Json]:
    value = _value(document, path)
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


def _condition(document: Json, type_: str) -> Json:
    """Return a condition of an object, {} if it has none of that type."""
    return next((one for one in _items(document, "status.conditions") if one.get("type") == type_), {})


def _is_true(document: Json, type_: str) -> bool:
    return _condition(document, type_).get("status") == "True"


def _too_few(what: str, actual: int, wanted: int) -> ObjectStatus | None:
    return _in_progress(f"{what}: {actual}/{wanted}") if actual < wanted else None


def _too_many(actual: int, wanted: int) -> ObjectStatus | None:
    return _in_progress(f"terminating: {actual - wanted}") if actual > wanted else None


# Rules for all kinds


def _generic_status(document: Json) -> ObjectStatus | None:
    if _text(document, "metadata.deletionTimestamp"):
        return ObjectStatus("Terminating", "it is being deleted")
    generation, observed = (_value(document, path) for path in ("metadata.generation", "status.observedGeneration"))
    if type(generation) is type(observed) is int and generation != observed:
        return _in_progress(f"generation {generation} is not observed yet, only {observed}")
    for condition in _items(document, "status.conditions"):
        if condition.get("status") == "True" and condition.get("type") in ("Reconciling", "Stalled"):
            message = str(condition.get("message") or "")
            return ObjectStatus("Failed" if condition["type"] == "Stalled" else "InProgress", message)
    return None


def _ready_condition(document: Json) -> ObjectStatus:
    condition = _condition(document, "Ready")
    message = str(condition.get("message") or condition.get("reason") or "")
    return _current(message) if condition.get("status", "True") == "True" else _in_progress(message)


# Rules for one kind


def _always_current(_: Json) -> ObjectStatus:
    return _current()


def _deployment(document: Json) -> ObjectStatus:
    progressing = _condition(document, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return ObjectStatus("Failed", "progress deadline exceeded")
    wanted, replicas = _number(document, "spec.replicas", 1), _number(document, "status.replicas")
    updated = _number(document, "status.updatedReplicas")
    unfinished = (
        _too_few("replicas", replicas, wanted)
        or _too_few("updated", updated, wanted)
        or _too_many(replicas, wanted)
        or _too_few("available", _number(document, "status.availableReplicas"), updated)
        or _too_few("ready", _number(document, "status.readyReplicas"), wanted)
    )
    if unfinished is not None:
        return unfinished
    reports_progress = _number(document, "spec.progressDeadlineSeconds", _NO_DEADLINE) != _NO_DEADLINE
    finished = progressing.get("status") == "True" and progressing.get("reason") == "NewReplicaSetAvailable"
    if reports_progress and not finished:
        return _in_progress("its ReplicaSet is not available")
    return _current(f"replicas: {replicas}") if _is_true(document, "Available") else _in_progress("it is not available")


def _replica_set(document: Json) -> ObjectStatus:
    if _is_true(document, "ReplicaFailure"):
        return _in_progress("its pods cannot be created")
    wanted, replicas = _number(document, "spec.replicas", 1), _number(document, "status.replicas")
    return (
        _too_few("labeled", _number(document, "status.fullyLabeledReplicas"), wanted)
        or _too_few("available", _number(document, "status.availableReplicas"), wanted)
        or _too_few("ready", _number(document, "status.readyReplicas"), wanted)
        or _too_many(replicas, wanted)
        or _current(f"replicas: {replicas}")
    )


def _stateful_set(document: Json) -> ObjectStatus:
    if _text(document, "spec.updateStrategy.type") == "OnDelete":
        return _current("pods are updated when they are deleted")
    wanted, replicas = _number(document, "spec.replicas", 1), _number(document, "status.replicas")
    unfinished = (
        _too_few("replicas", replicas, wanted)
        or _too_few("ready", _number(document, "status.readyReplicas"), wanted)
        or _too_many(replicas, wanted)
        or _unfinished_update(document, wanted)
    )
    return unfinished or _current(f"replicas: {replicas}")


def _unfinished_update(document: Json, wanted: int) -> ObjectStatus | None:
    partition = _number(document, "spec.updateStrategy.rollingUpdate.partition", -1)
    if partition >= 0:
        return _too_few("updated", _number(document, "status.updatedReplicas"), wanted - partition)
    if _text(document, "status.currentRevision") != _text(document, "status.updateRevision"):
        return _in_progress("its update is not complete")
    return _too_few("current", _number(document, "status.currentReplicas"), wanted)


def _daemon_set(document: Json) -> ObjectStatus:
    if type(_value(document, "status.observedGeneration")) is not int:
        return _in_progress("it is not observed yet")
    wanted = _number(document, "status.desiredNumberScheduled", -1)
    if wanted < 0:
        return _in_progress("the number of its pods is not known yet")
    return (
        _too_few("scheduled", _number(document, "status.currentNumberScheduled"), wanted)
        or _too_few("updated", _number(document, "status.updatedNumberScheduled"), wanted)
        or _too_few("available", _number(document, "status.numberAvailable"), wanted)
        or _too_few("ready", _number(document, "status.numberReady"), wanted)
        or _current(f"pods: {wanted}")
    )


def _pod(document: Json) -> ObjectStatus:
    phase = _text(document, "status.phase")
    if phase in ("Succeeded", "Failed"):
        return _current(f"phase: {phase}")
    if phase == "Running":
        return _current("it is ready") if _is_true(document, "Ready") else _running_pod(document)
    scheduled = _condition(document, "PodScheduled")
    unschedulable = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    if phase == "Pending" and unschedulable and _age(document) > _SCHEDULING:
        return ObjectStatus("Failed", "it cannot be scheduled")
    return _in_progress(f"phase: {phase or 'none'}")


def _running_pod(document: Json) -> ObjectStatus:
    statuses = _items(document, "status.containerStatuses")
    crashing = [one.get("name", "") for one in statuses if _text(one, "state.waiting.reason") == "CrashLoopBackOff"]
    if crashing:
        return ObjectStatus("Failed", f"containers that crash: {', '.join(map(str, crashing))}")
    return _in_progress("it runs, and is not ready")


def _age(document: Json) -> timedelta:
    try:
        return now() - datetime.fromisoformat(_text(document, "metadata.creationTimestamp"))
    except (ValueError, TypeError):
        return _SCHEDULING * 2


def _job(document: Json) -> ObjectStatus:
    if _is_true(document, "Failed"):
        return ObjectStatus("Failed", f"failed pods: {_number(document, 'status.failed')}")
    for condition in ("Complete", "Suspended"):
        if _is_true(document, condition):
            return _current(condition)
    return _current("it runs") if _text(document, "status.startTime") else _in_progress("it has not started")


def _service(document: Json) -> ObjectStatus:
    if _text(document, "spec.type") == "LoadBalancer" and not _text(document, "spec.clusterIP"):
        return _in_progress("it has no clusterIP")
    return _current()


def _volume_claim(document: Json) -> ObjectStatus:
    phase = _text(document, "status.phase")
    return _current("it is bound") if phase == "Bound" else _in_progress(f"phase: {phase or 'none'}")


def _crd(document: Json) -> ObjectStatus:
    names, established = (_condition(document, type_) for type_ in ("NamesAccepted", "Established"))
    if names.get("status") == "False":
        return ObjectStatus("Failed", str(names.get("message") or ""))
    if established.get("status") == "False" and established.get("reason") != "Installing":
        return ObjectStatus("Failed", str(established.get("message") or ""))
    return _current("it is established") if established.get("status") == "True" else _in_progress("it is installed")


_RULES: Final[dict[tuple[str, str], Callable[[Json], ObjectStatus]]] = {
    ("", "ConfigMap"): _always_current,
    ("", "Secret"): _always_current,
    ("", "Service"): _service,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _volume_claim,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "CronJob"): _always_current,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _always_current,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
}
"""The rules of built-in kinds, by group and kind."""
