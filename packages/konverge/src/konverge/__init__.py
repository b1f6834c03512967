"""konverge: Kubernetes operators in Python.

The packages, in the order in which they build on each other:

    objects     typed and unstructured objects, kinds, keys, quantities, selectors
    schema      custom resources as Python classes: class -> structural schema -> CRD
    k8s         the built-in kinds: konverge.k8s.apps.v1.Deployment and all others
    wire        requests, responses and watch frames of the API, without I/O
    telemetry   metrics, logs and traces
    client      a client for any API server
    cache       the local copy of the cluster: reflectors, informers, stores
    triggers    which events lead to a reconcile: predicates, mappers
    queue       the work queue
    reconcile   what an author writes against: Reconciler, Context, Result
    controller  the workers of one controller, and the builder
    webhooks    admission and conversion webhooks
    manager     one process of an operator: leader election, health, metrics
    testing     a real control plane for tests, virtual time, faults

The embedded cluster is a package of its own, `konverge_cluster`.

This module exports the names that nearly every operator needs. A name is loaded on first use, so `import konverge` is
cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.client import Client as Client
    from konverge.client import load_config as load_config
    from konverge.controller import Controller as Controller
    from konverge.controller import controller_for as controller_for
    from konverge.errors import ApiError as ApiError
    from konverge.errors import Conflict as Conflict
    from konverge.errors import KonvergeError as KonvergeError
    from konverge.errors import NotFound as NotFound
    from konverge.errors import Retry as Retry
    from konverge.errors import TerminalError as TerminalError
    from konverge.manager import Manager as Manager
    from konverge.manager import Operator as Operator
    from konverge.objects import Condition as Condition
    from konverge.objects import Key as Key
    from konverge.objects import Kind as Kind
    from konverge.objects import Model as Model
    from konverge.objects import ObjectMeta as ObjectMeta
    from konverge.objects import OwnerReference as OwnerReference
    from konverge.objects import Quantity as Quantity
    from konverge.objects import Resource as Resource
    from konverge.objects import Unstructured as Unstructured
    from konverge.objects import field as field
    from konverge.objects import is_ready as is_ready
    from konverge.objects import set_condition as set_condition
    from konverge.reconcile import Context as Context
    from konverge.reconcile import Reconciler as Reconciler
    from konverge.reconcile import Result as Result
    from konverge.schema import CustomResource as CustomResource
    from konverge.schema import Meta as Meta
    from konverge.schema import Spec as Spec
    from konverge.schema import Status as Status
    from konverge.schema import crd_for as crd_for

_MODULES = {
    "konverge.client": ("Client", "load_config"),
    "konverge.controller": ("Controller", "controller_for"),
    "konverge.errors": ("ApiError", "Conflict", "KonvergeError", "NotFound", "Retry", "TerminalError"),
    "konverge.manager": ("Manager", "Operator"),
    "konverge.objects": (
        "Condition",
        "Key",
        "Kind",
        "Model",
        "ObjectMeta",
        "OwnerReference",
        "Quantity",
        "Resource",
        "Unstructured",
        "field",
        "is_ready",
        "set_condition",
    ),
    "konverge.reconcile": ("Context", "Reconciler", "Result"),
    "konverge.schema": ("CustomResource", "Meta", "Spec", "Status", "crd_for"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ApiError",
    "Client",
    "Condition",
    "Conflict",
    "Context",
    "Controller",
    "CustomResource",
    "Key",
    "Kind",
    "KonvergeError",
    "Manager",
    "Meta",
    "Model",
    "NotFound",
    "ObjectMeta",
    "Operator",
    "OwnerReference",
    "Quantity",
    "Reconciler",
    "Resource",
    "Result",
    "Retry",
    "Spec",
    "Status",
    "TerminalError",
    "Unstructured",
    "controller_for",
    "crd_for",
    "field",
    "is_ready",
    "load_config",
    "set_condition",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'konverge' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
