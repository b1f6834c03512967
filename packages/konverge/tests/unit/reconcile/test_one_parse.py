"""The response of a write is parsed once: everything that needs a part of it gets the decoded object."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import msgspec
import pytest

from konverge import Client, Context, CustomResource, Manager, ObjectMeta, Spec, Status, controller_for, crd_for
from konverge.client import InProcessTransport
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import AnyObject, Unstructured, to_wire
from konverge.testing import settle
from konverge.wire import BufferedResponse, Request, Response
from konverge_cluster.embedded_server import EmbeddedServer


class LampSpec(Spec):
    text: str = "a"


class LampStatus(Status):
    observed_generation: int = 0


class Lamp(CustomResource[LampSpec, LampStatus], group="example.com", version="v1"):
    """A kind with one child."""


class Parses:
    """The callers that decode JSON, from the response of a write of a task to the end of the call that sent it."""

    def __init__(self) -> None:
        self.callers: list[list[str]] = []
        self.task: asyncio.Task[Any] | None = None
        self.active = False
        self.response = b""

    def begin(self, response: bytes) -> None:
        """Begin to count, if the task that reconciles has got this response."""
        self.response = response
        if asyncio.current_task() is self.task:
            self.callers.append([])
            self.active = True

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the writes of the current task while the block runs."""
        self.task = asyncio.current_task()
        sys.setprofile(self._record)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.active = False

    def _record(self, frame: FrameType, event: str, called: Any) -> None:
        if (
            event != "c_call"
            or called.__name__ != "decode"
            or not self.active
            or asyncio.current_task() is not self.task
        ):
            return
        if any(_is_part(value, self.response) for value in frame.f_locals.values()):
            self.callers[-1].append(f"{frame.f_code.co_qualname} in {frame.f_code.co_filename}")


class WriteTransport:
    """A transport that begins to count when the response of a write is complete."""

    def __init__(self, inner: InProcessTransport, parses: Parses) -> None:
        self.inner = inner
        self.parses = parses

    async def send(self, request: Request) -> Response:
        response = await self.inner.send(request)
        if request.method == "GET":
            return response
        body = await response.read()
        self.parses.begin(body)
        return BufferedResponse(response.status, body, response.headers)

    async def close(self) -> None:
        await self.inner.close()


def _is_part(value: object, response: bytes) -> bool:
    """Report whether a local variable of the caller is the response, or a part of it."""
    text = bytes(value) if isinstance(value, bytes | msgspec.Raw) else b""
    return len(text) > 2 and text in response


def config_map(lamp: Lamp) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=lamp.name, labels={"app": "lamp"}), data={"text": lamp.spec.text})


def deployment(lamp: Lamp) -> Deployment:
    labels = {"app": lamp.name, "text": lamp.spec.text}
    pod = PodSpec(containers=[Container(name="web", image="nginx:1.25")])
    return Deployment(
        metadata=ObjectMeta(name=lamp.name, labels=labels),
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels={"app": lamp.name}),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


def unstructured(lamp: Lamp) -> Unstructured:
    return Unstructured(to_wire(config_map(lamp)))


@pytest.mark.parametrize("child", [config_map, deployment, unstructured])
async def test_the_response_of_an_apply_is_parsed_once(child: Callable[[Lamp], AnyObject]) -> None:
    server, parses = EmbeddedServer(), Parses()

    async def reconcile(lamp: Lamp, ctx: Context) -> None:
        desired = child(lamp)
        with parses.recording():
            await ctx.apply(desired)

    user = Client(InProcessTransport(server.handle))
    await user.create(crd_for(Lamp))
    await user.create(Lamp.new("desk", LampSpec()))
    manager = Manager(Client(WriteTransport(InProcessTransport(server.handle), parses)), name="lamps")
    manager.add(controller_for(Lamp).owns(ConfigMap).owns(Deployment).build(reconcile))
    async with manager.running():
        await settle()
        lamp = await user.get(Lamp, "desk")
        lamp.spec.text = "b"
        await user.update(lamp)
        await settle()

    assert [len(callers) for callers in parses.callers] == [1, 1], parses.callers
