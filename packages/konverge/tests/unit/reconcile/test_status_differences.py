"""What is sent of a status: only the difference, without losing fields that the class does not have."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport
from konverge.objects import Condition, Kind, Model, Resource, Unstructured, decode, encode, field
from konverge.reconcile.statuses import update_status
from konverge.wire import Request
from konverge_cluster.api.responses import Response

GADGET = Kind("example.com", "v1", "Gadget", "gadgets")
SINCE = "2026-01-01T00:00:00Z"


class GadgetStatus(Model):
    ready: int | None = None
    conditions: list[Condition] = field(default_factory=list)


class Gadget(Resource, identity=GADGET):
    status: GadgetStatus = field(default_factory=GadgetStatus)


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": SINCE, **more}


def wire(**status: Any) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata, "status": status}


def gadget(**status: Any) -> Gadget:
    return decode(Gadget, encode(wire(**status)))


class Server:
    """Accepts every patch, and records it."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    async def handle(self, request: Request) -> Response:
        assert (request.method, request.path) == ("PATCH", "/apis/example.com/v1/namespaces/shop/gadgets/it/status")
        self.patches.append(json.loads(request.body))
        return Response(200, encode(wire()))


async def sent(obj: Gadget) -> Any:
    """Update a status; return the patch that was sent, or None."""
    server = Server()
    await update_status(Client(InProcessTransport(server.handle)), obj)
    assert len(server.patches) <= 1
    if not server.patches:
        return None
    assert server.patches[0]["metadata"] == {"resourceVersion": "7"}
    return server.patches[0]["status"]


async def test_a_status_that_was_not_edited_is_not_sent() -> None:
    assert await sent(gadget()) is None
    assert await sent(gadget(ready=1, unknown={"a": [1]}, conditions=[condition("A", odd=1)])) is None


async def test_only_the_edit_is_sent() -> None:
    obj = gadget(ready=1, unknown=1, conditions=[condition("A")])
    obj.status.ready = 2
    assert await sent(obj) == {"ready": 2}
    obj.status.ready = None
    assert await sent(obj) == {"ready": None}


async def test_the_first_status_of_an_object_is_sent() -> None:
    obj = decode(Gadget, encode({name: value for name, value in wire().items() if name != "status"}))
    obj.status.ready = 1
    assert await sent(obj) == {"ready": 1}


async def test_a_condition_keeps_unknown_fields_also_when_its_position_changes() -> None:
    obj = gadget(conditions=[condition("A", severity="high"), condition("B", probed=SINCE)])
    obj.status.conditions = [
        Condition(type="New", status="True", reason="R", last_transition_time=_time(SINCE)),
        Condition(type="B", status="False", reason="R", last_transition_time=_time(SINCE)),
        Condition(type="A", status="True", reason="Other", last_transition_time=_time(SINCE)),
    ]
    assert await sent(obj) == {
        "conditions": [
            condition("New"),
            condition("B", "False", probed=SINCE),
            condition("A", severity="high", reason="Other"),
        ]
    }


@pytest.mark.parametrize("moved", [timedelta(hours=1), None])
async def test_a_transition_time_changes_only_with_the_status(moved: timedelta | None) -> None:
    obj = gadget(conditions=[condition("A"), condition("B", odd=1)])
    late = None if moved is None else _time(SINCE) + moved
    for one in obj.status.conditions:
        one.last_transition_time = late
    assert await sent(obj) is None

    obj.status.conditions[0].status = "False"
    obj.status.conditions[0].last_transition_time = _time("2026-01-01T01:00:00Z")
    obj.status.conditions[1].message = "other words"
    assert await sent(obj) == {
        "conditions": [
            condition("A", "False", lastTransitionTime="2026-01-01T01:00:00Z"),
            condition("B", message="other words", odd=1),
        ]
    }


async def test_edits_of_other_fields_are_rejected_and_nothing_is_sent() -> None:
    server = Server()
    obj = gadget(ready=1)
    obj.metadata.labels = {"a": "b"}
    obj.status.ready = 2

    with pytest.raises(ValueError) as caught:
        await update_status(Client(InProcessTransport(server.handle)), obj)
    assert str(caught.value) == (
        "update status of Gadget shop/it: .metadata.labels was edited too, and only the status is written (write other"
        " edits with ctx.client.update, or make them in a copy)"
    )
    assert server.patches == []


async def test_at_most_five_other_edits_are_named() -> None:
    document = wire()
    document["metadata"]["labels"] = dict.fromkeys("abcdef", "1")
    obj = decode(Gadget, encode(document))
    obj.metadata.labels = dict.fromkeys("abcdef", "2")
    obj.status.ready = 2
    with pytest.raises(ValueError, match=r": \.metadata\.labels\.a, .*, \.metadata\.labels\.e was edited too"):
        await sent(obj)


async def test_fields_that_the_class_does_not_have_are_no_edits() -> None:
    document = wire(ready=1, unknown={"a": [1, None]}) | {"spec": {"size": "1000m", "nothing": None, "none": {}}}
    obj = decode(Gadget, encode(document))
    obj.status.ready = 2

    assert await sent(obj) == {"ready": 2}


@pytest.mark.parametrize(
    "obj", [Gadget(), Unstructured({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {}})]
)
async def test_an_object_that_was_not_read_is_rejected(obj: Any) -> None:
    words = r"^update status of Gadget .*: it was not read from the server \(edit an object that was read\)$"
    with pytest.raises(ValueError, match=words):
        await sent(obj)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
