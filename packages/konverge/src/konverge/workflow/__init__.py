"""Workflows: the components of an application with their dependencies, its phases, and the status that follows.

workflow = Workflow(
    kind=Shop,
    components=(
        Component("database", database, kinds=(StatefulSet, Service)),
        Component("backend", backend, kinds=(Deployment, Service), needs=("database",)),
    ),
    phases=Phases(Phase.PENDING, TRANSITIONS, derive_phase),
)

class ShopReconciler(WorkflowReconciler[Shop]):
    finalizer = "example.com/shop"
    workflow = workflow

controller = workflow.builder().build(ShopReconciler())
"""

from konverge.workflow.components import (
    COMPONENT_LABEL,
    Component,
    ComponentPhase,
    ComponentState,
    Waiting,
    objects_status,
)
from konverge.workflow.configuration import CONFIGURATION_HASH, Configuration
from konverge.workflow.graph_output import render_mermaid, render_svg
from konverge.workflow.phase_checks import check_phases
from konverge.workflow.phases import DerivedPhase, PhaseMetrics, Phases
from konverge.workflow.reconciler import ComponentsFailed, WorkflowReconciler
from konverge.workflow.statuses import ComponentStatus, WorkflowState, WorkflowStatus
from konverge.workflow.workflow import Workflow

__all__ = [
    "COMPONENT_LABEL",
    "CONFIGURATION_HASH",
    "Component",
    "ComponentPhase",
    "ComponentState",
    "ComponentStatus",
    "ComponentsFailed",
    "Configuration",
    "DerivedPhase",
    "PhaseMetrics",
    "Phases",
    "Waiting",
    "Workflow",
    "WorkflowReconciler",
    "WorkflowState",
    "WorkflowStatus",
    "check_phases",
    "objects_status",
    "render_mermaid",
    "render_svg",
]
