"""The operator of MyApp: its workflow, its reconciler, and the value that the commands load."""

from __future__ import annotations

from pathlib import Path

from konverge import Context
from konverge.cache import CacheOptions, by_function
from konverge.k8s.apps.v1 import Deployment
from konverge.manager import Operator
from konverge.triggers import to_referring
from konverge.workflow import Component, Configuration, Workflow, WorkflowReconciler, WorkflowState
from konverge_operators.myapp import dependents
from konverge_operators.myapp.api import MyApp
from konverge_operators.myapp.application import COMPONENT, KINDS, application_objects
from konverge_operators.myapp.dependents import CACHES, DATABASE, OPERATOR
from konverge_operators.myapp.local_images import local_images
from konverge_operators.myapp.phases import phases
from konverge_operators.protection import protection_of

__all__ = ["MyAppReconciler", "new_operator", "operator", "workflow"]

workflow: Workflow[MyApp] = Workflow(
    kind=MyApp,
    components=(
        Component(
            "database",
            dependents.database_objects,
            kinds=(),
            optional_kinds=(DATABASE,),
            enabled=lambda app: app.spec.database is not None,
            readiness=dependents.dependents_status,
            cleanup=dependents.release,
        ),
        Component(
            "cache",
            dependents.cache_objects,
            kinds=(),
            optional_kinds=tuple(CACHES.values()),
            enabled=lambda app: app.spec.cache is not None,
            readiness=dependents.dependents_status,
        ),
        Component(COMPONENT, application_objects, kinds=KINDS, after=("database", "cache")),
    ),
    phases=phases,
    configuration=Configuration(secrets=lambda app: app.status.connections.values()),
    suspended=lambda app: app.spec.suspend,
    protected=protection_of,
)


class MyAppReconciler(WorkflowReconciler[MyApp]):
    """Reconciles MyApps by their workflow."""

    finalizer = "myapp.example.com/myapp"
    workflow = workflow

    def observe(self, app: MyApp, _ctx: Context, state: WorkflowState, /) -> None:
        """Set the number of replicas that are ready now."""
        objects = state[COMPONENT].objects if COMPONENT in state else ()
        ready = [one.status.ready_replicas or 0 for one in objects if isinstance(one, Deployment)]
        app.status.ready_replicas = sum(ready)


def new_operator(reconciler: MyAppReconciler | None = None) -> Operator:
    """Return the operator of a new process."""
    reconciler, folder = reconciler or MyAppReconciler(), Path(__file__).parent
    builder = reconciler.workflow.builder()
    builder.index(MyApp, "existing-databases", by_function(MyApp, dependents.existing_database))
    builder.watches(DATABASE, to_referring(MyApp, index="existing-databases"), options=CacheOptions(optional=True))
    return Operator(
        name=OPERATOR,
        controllers=(builder.build(reconciler),),
        samples=(folder / "samples" / "myapp.yaml",),
        monitoring=(folder / "alerts" / "myapp-operator.yaml", folder / "dashboards" / "myapp-operator.json"),
        images=(local_images,),
        metrics=reconciler.metrics.collectors,
    )


operator = new_operator()
