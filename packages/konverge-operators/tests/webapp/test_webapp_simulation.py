"""The WebApp operator under seeded faults: crashes, lost responses, broken watches, lost leases, other clients."""

from __future__ import annotations

from konverge.k8s.apps.v1 import Deployment
from konverge.manager import Operator
from konverge.workflow import PhaseMetrics
from konverge_cluster.testing import Simulation, simulate
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import controllers
from webapps import webapp


def new_operator() -> Operator:
    """Return the operator of a new process, with its webhooks and conversion."""
    return Operator(
        name=operator.name,
        controllers=controllers(PhaseMetrics("webapp")),
        kinds=operator.kinds,
        webhooks=operator.webhooks,
    )


@simulate(new_operator, samples=[webapp(ingress={"host": "a.example.com"})], seeds=50)
async def test_a_webapp_under_seeded_faults(sim: Simulation) -> None:
    await sim.client.patch(
        WebApp, "web", {"spec": {"replicas": 4, "autoscaling": {"minReplicas": 2, "maxReplicas": 6}}}
    )
    await sim.settle()
    await sim.client.patch(WebApp, "web", {"spec": {"image": "nginx:1.26", "autoscaling": None, "ingress": None}})
    await sim.settle()
    await sim.client.delete(Deployment, "web")
    await sim.settle()
    await sim.client.delete(WebApp, "web")
