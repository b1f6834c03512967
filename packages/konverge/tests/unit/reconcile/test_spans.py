"""OpenTelemetry spans of reconciles and of their requests."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from gadgets import Gadget, gadget, world_with_gadgets
from konverge import Context, Manager, ObjectMeta, TerminalError, controller_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.testing import settle


async def fill(obj: Gadget, ctx: Context) -> None:
    if obj.spec.size == 0:
        raise TerminalError("no size: Authorization: Bearer abcdefghijklmnop")
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name="box"), data={"text": obj.spec.text}))


async def test_each_reconcile_is_a_span_and_its_requests_are_its_children() -> None:
    world, exporter, provider = await world_with_gadgets(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).build(fill))
    manager.trace(provider.get_tracer("test"))
    async with manager.running():
        await world.client.create(gadget("lamp"))
        await settle()
        await world.client.create(gadget("broken", size=0))
        await settle()
    spans = exporter.get_finished_spans()
    first, second = [span for span in spans if span.name == "reconcile gadget"]
    (apply,) = [span for span in spans if span.name == "apply ConfigMap"]
    assert apply.parent is not None
    assert first.context is not None
    assert apply.parent.span_id == first.context.span_id
    assert first.attributes is not None
    facts = dict(first.attributes)
    assert len(str(facts.pop("konverge.reconcile_id"))) == 15
    assert facts == {
        "k8s.kind": "Gadget",
        "k8s.key": "default/lamp",
        "konverge.controller": "gadget",
        "konverge.attempt": 1,
        "konverge.queue_wait": 0.0,
        "konverge.outcome": "success",
    }
    assert first.status.status_code is not StatusCode.ERROR
    assert second.status.status_code is StatusCode.ERROR
    assert "no size" in (second.status.description or "")
    assert "abcdefghijklmnop" not in (second.status.description or "")
    assert all(span.parent is None for span in spans if span.name.startswith(("list", "watch")))
