"""The Widget operator for simulations: the steps of a user, and a ledger outside of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge import Operator
from konverge.k8s.core.v1 import ConfigMap
from konverge_cluster.testing import Simulation
from widget_operator import Widget, Widgets, widgets
from widget_rigs import widget

__all__ = ["OpenLedger", "act", "act_briefly", "widget_operator"]


@dataclass
class OpenLedger:
    """A ledger that knows which widgets are open: opened, and not closed."""

    open: set[str] = field(default_factory=set)

    async def note(self, line: str) -> None:
        word, _, uid = line.split()
        if word == "open":
            self.open.add(uid)
        else:
            self.open.discard(uid)


def widget_operator(ledger: OpenLedger) -> Operator:
    return Operator(name="widget-operator", controllers=(widgets().build(Widgets(ledger)),))


async def act(sim: Simulation[OpenLedger]) -> None:
    """Create and scale widgets, disturb their children, delete a widget and create it again."""
    await sim.client.create(widget("a", replicas=2, payload="one"))
    await sim.settle()
    await sim.client.patch(Widget, "a", {"spec": {"replicas": 4}})
    await sim.settle()
    for name in ("b", "c"):
        await sim.client.create(widget(name, replicas=1, payload="two"))
    await sim.settle()
    await sim.client.patch(Widget, "a", {"spec": {"replicas": 1, "payload": "three"}})
    await sim.settle()
    await sim.client.delete(ConfigMap, "b-0")
    await sim.client.patch(ConfigMap, "c-0", {"data": {"payload": "wrong"}})
    await sim.settle()
    await sim.client.delete(Widget, "b")
    await sim.settle()
    await sim.client.create(widget("b", replicas=2, payload="four"))
    await sim.settle()
    living = await sim.client.list(Widget)
    assert sim.external.open == {one.uid for one in living}
    children = await sim.client.list(ConfigMap)
    assert {one.name for one in children if one.metadata.owner_references} == {"a-0", "b-0", "b-1", "c-0"}


async def act_briefly(sim: Simulation[OpenLedger]) -> None:
    """Create a widget, scale it down, and delete it."""
    await sim.client.create(widget("a", replicas=2, payload="one"))
    await sim.settle()
    await sim.client.patch(Widget, "a", {"spec": {"replicas": 1, "payload": "three"}})
    await sim.settle()
    await sim.client.delete(Widget, "a")
    await sim.settle()
    assert sim.external.open == set()
