"""An operator that is killed at any write and restarted reaches the same result with the same creates and deletes.

The scenario has a rollback: the deadline of a rollout passes, and the operator remembers that in its status only.
"""

from __future__ import annotations

from konverge.k8s.apps.v1 import Deployment
from konverge.manager import Operator
from konverge.workflow import PhaseMetrics
from konverge_cluster.nodes import Behavior
from konverge_cluster.testing import Simulation, simulate
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import controllers
from webapps import unexpected, webapp

SAMPLE = webapp(ingress={"host": "a.example.com"}, rollback=True, progressDeadlineSeconds=60)
COUNTS = {
    "create deployments default/web": 2,
    "create services default/web": 1,
    "create poddisruptionbudgets default/web": 1,
    "create ingresses default/web": 1,
    "create horizontalpodautoscalers default/web": 1,
    "delete deployments default/web": 1,
    "delete services default/web": 1,
    "delete poddisruptionbudgets default/web": 1,
    "delete ingresses default/web": 1,
    "delete horizontalpodautoscalers default/web": 1,
}
LIFECYCLES: list[PhaseMetrics] = []


def new_operator() -> Operator:
    LIFECYCLES.append(PhaseMetrics("webapp"))
    return Operator(name=operator.name, controllers=controllers(LIFECYCLES[-1]), kinds=operator.kinds)


@simulate(new_operator, samples=[SAMPLE], seeds=0, each_write=True, quiet=100)
async def test_an_operator_killed_at_any_write_reaches_the_same_result(sim: Simulation) -> None:
    sim.cluster.program(Behavior(image="*:bad", never_ready=True))
    await sim.client.patch(
        WebApp, "web", {"spec": {"replicas": 4, "autoscaling": {"minReplicas": 2, "maxReplicas": 6}}}
    )
    await sim.settle()
    await sim.client.patch(WebApp, "web", {"spec": {"image": "nginx:bad", "autoscaling": None, "ingress": None}})
    await sim.settle()
    assert (await sim.client.get(WebApp, "web")).status.failed_image == "nginx:bad"
    await sim.client.delete(Deployment, "web")
    await sim.client.patch(WebApp, "web", {"spec": {"image": "nginx:1.27"}})
    await sim.settle()
    assert (await sim.client.get(WebApp, "web")).status.phase is Phase.READY
    await sim.client.delete(WebApp, "web")
    await sim.settle()
    assert sim.counts == COUNTS
    # After a crash a process may find a phase that it does not expect, because it has missed the one before.
    assert sim.schedule or [unexpected(one) for one in LIFECYCLES] == [{}] * len(LIFECYCLES)
