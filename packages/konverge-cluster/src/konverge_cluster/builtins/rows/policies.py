"""Table rows of autoscalers, disruption budgets, bindings and registrations."""

from __future__ import annotations

from typing import Any

from konverge_cluster.api.strategy import Document
from konverge_cluster.api.tables import human_duration
from konverge_cluster.builtins.rows.formats import NONE, UNSET, age

__all__ = [
    "api_service_cells",
    "autoscaler_cells",
    "binding_cells",
    "certificate_request_cells",
    "device_class_cells",
    "disruption_budget_cells",
    "flow_schema_cells",
    "policy_binding_cells",
    "policy_cells",
    "priority_class_cells",
    "priority_level_cells",
    "resource_claim_cells",
    "resource_slice_cells",
    "runtime_class_cells",
    "webhooks_cells",
]


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def autoscaler_cells(autoscaler: Document, now: float) -> list[Any]:
    """Return the row of an autoscaler in its current version."""
    spec, status = autoscaler["spec"], autoscaler["status"]
    target = spec["scaleTargetRef"]
    low = spec.get("minReplicas")
    return [
        _name(autoscaler),
        f"{target['kind']}/{target['name']}",
        _metrics(spec.get("metrics", []), status.get("currentMetrics") or []),
        UNSET if low is None else str(low),
        spec["maxReplicas"],
        status.get("currentReplicas", 0),
        age(autoscaler, now),
    ]


def _metrics(specs: list[Document], statuses: list[Document]) -> str:
    if not specs:
        return NONE
    metrics = [_metric(spec, statuses[at] if at < len(statuses) else {}) for at, spec in enumerate(specs)]
    text = ", ".join(metrics[:2])
    return f"{text} + {len(metrics) - 2} more..." if len(metrics) > 2 else text


def _metric(spec: Document, status: Document) -> str:
    kind = spec["type"]
    source = kind[:1].lower() + kind[1:]
    if source not in ("external", "pods", "object", "resource", "containerResource"):
        return "<unknown type>"
    target = spec[source]["target"]
    current = status.get(source, {}).get("current", {})
    if source in ("resource", "containerResource"):
        return f"{spec[source]['name']}: {_utilization(target, current, is_known=source in status)}"
    if "averageValue" in target:
        suffix = "" if source == "pods" else " (avg)"
        return f"{current.get('averageValue', '<unknown>')}/{target['averageValue']}{suffix}"
    value = current.get("value", "0") if source in status else "<unknown>"
    return f"{value}/{target.get('value', '0')}"


def _utilization(target: Document, current: Document, *, is_known: bool) -> str:
    if "averageValue" in target:
        return f"{current.get('averageValue', '0') if is_known else '<unknown>'}/{target['averageValue']}"
    percent, desired = current.get("averageUtilization"), target.get("averageUtilization")
    return f"{'<unknown>' if percent is None else f'{percent}%'}/{'<auto>' if desired is None else f'{desired}%'}"


def disruption_budget_cells(budget: Document, now: float) -> list[Any]:
    spec = budget["spec"]
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [_name(budget), *bounds, budget["status"]["disruptionsAllowed"], age(budget, now)]


def binding_cells(binding: Document, now: float) -> list[Any]:
    reference = binding["roleRef"]
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.get("subjects", ()):
        if subject["kind"] == "ServiceAccount":
            subjects["ServiceAccount"].append(f"{subject.get('namespace', '')}/{subject['name']}")
        elif subject["kind"] in subjects:
            subjects[subject["kind"]].append(subject["name"])
    role = f"{reference['kind']}/{reference['name']}"
    return [_name(binding), role, age(binding, now), *(", ".join(names) for names in subjects.values())]


def certificate_request_cells(request: Document, now: float) -> list[Any]:
    spec = request["spec"]
    seconds = spec.get("expirationSeconds")
    lifetime = NONE if seconds is None else human_duration(seconds)
    cells = [_name(request), age(request, now), spec.get("signerName") or NONE, spec.get("username", "")]
    return [*cells, lifetime, _certificate_state(request["status"])]


def _certificate_state(status: Document) -> str:
    kinds = {each["type"] for each in status.get("conditions", ())}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    state += ",Failed" if "Failed" in kinds else ""
    return f"{state},Issued" if status.get("certificate") else state


def webhooks_cells(configuration: Document, now: float) -> list[Any]:
    return [_name(configuration), len(configuration.get("webhooks", ())), age(configuration, now)]


def policy_cells(policy: Document, now: float) -> list[Any]:
    spec = policy["spec"]
    rules = spec.get("validations", spec.get("mutations", ()))
    kind = spec.get("paramKind")
    parameter_kind = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [_name(policy), len(rules), parameter_kind, age(policy, now)]


def policy_binding_cells(binding: Document, now: float) -> list[Any]:
    reference, parameter = binding["spec"].get("paramRef"), UNSET
    if reference is not None and reference.get("name"):
        parameter = f"{reference.get('namespace') or '*'}/{reference['name']}"
    return [_name(binding), binding["spec"].get("policyName", ""), parameter, age(binding, now)]


def priority_class_cells(priority: Document, now: float) -> list[Any]:
    default = priority.get("globalDefault", False)
    return [_name(priority), priority["value"], default, age(priority, now), priority.get("preemptionPolicy", "")]


def runtime_class_cells(runtime: Document, now: float) -> list[Any]:
    return [_name(runtime), runtime["handler"], age(runtime, now)]


def flow_schema_cells(schema: Document, now: float) -> list[Any]:
    spec = schema["spec"]
    method = spec.get("distinguisherMethod", {}).get("type", NONE)
    conditions = schema["status"].get("conditions", ())
    dangling = next((each.get("status", "") for each in conditions if each.get("type") == "Dangling"), "?")
    level = spec["priorityLevelConfiguration"]["name"]
    return [_name(schema), level, spec["matchingPrecedence"], method, age(schema, now), dangling]


def priority_level_cells(level: Document, now: float) -> list[Any]:
    spec = level["spec"]
    limited = spec.get("limited")
    queuing = (limited or {}).get("limitResponse", {}).get("queuing", {})
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares", NONE)
    queues = [queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")]
    return [_name(level), spec["type"], shares, *queues, age(level, now)]


def api_service_cells(service: Document, now: float) -> list[Any]:
    reference = service["spec"].get("service")
    where = "Local" if reference is None else f"{reference.get('namespace', '')}/{reference.get('name', '')}"
    state = "Unknown"
    for condition in service["status"].get("conditions", ()):
        if condition["type"] == "Available":
            state = condition["status"]
            if state != "True" and condition.get("reason"):
                state = f"{state} ({condition['reason']})"
    return [_name(service), where, state, age(service, now)]


def device_class_cells(device: Document, now: float) -> list[Any]:
    return [_name(device), age(device, now)]


def resource_claim_cells(claim: Document, now: float) -> list[Any]:
    status = claim.get("status", {})
    states = ["deleted"] if "deletionTimestamp" in claim["metadata"] else []
    if "allocation" in status:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not states:
        states.append("pending")
    return [_name(claim), ",".join(states), age(claim, now)]


def resource_slice_cells(resources: Document, now: float) -> list[Any]:
    spec = resources["spec"]
    return [_name(resources), spec.get("nodeName", ""), spec["driver"], spec["pool"]["name"], age(resources, now)]
