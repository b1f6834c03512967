"""Watches of custom resources end when their definition changes or goes; on both servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from both_servers import EmbeddedServerThread, RealServer, Server
from crd_cases import Json, definition, obj
from konverge.testing import ControlPlane
from server_pairs import DEFINITIONS

GROUP = "watched.example.com"
DEFINITION = f"{DEFINITIONS}/things.{GROUP}"
THINGS = f"/apis/{GROUP}/v1/namespaces/default/things"


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with one custom resource, and an object of it."""
    plane: ControlPlane | None = request.getfixturevalue("control_plane") if request.param == "real" else None
    made: Server = RealServer(plane) if plane is not None else EmbeddedServerThread()
    assert made.request("POST", DEFINITIONS, definition(obj(size={"type": "integer"}), group=GROUP)).status == 201
    until(lambda: made.request("GET", THINGS).status == 200)
    make(made, "one")
    yield made
    made.request("DELETE", DEFINITION)
    until(lambda: made.request("GET", DEFINITION).status == 404)
    made.close()


def until(holds: Any) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"


def make(server: Server, name: str) -> None:
    thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1}}
    assert server.request("POST", THINGS, thing).status == 201


class Watch:
    """A watch that goes on in a thread."""

    def __init__(self, server: Server) -> None:
        self.events: list[Json] = []
        # A second connection to the real server; the embedded one takes calls from any thread.
        own = RealServer(server._plane) if isinstance(server, RealServer) else server
        self._thread = threading.Thread(target=own.watch, args=(f"{THINGS}?watch=1&timeoutSeconds=60", self._see))
        self._thread.start()
        until(lambda: self.events)

    def _see(self, event: Json) -> bool:
        self.events.append(event)
        return False

    def ended(self) -> list[tuple[str, str]]:
        """The events, once the watch has ended."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        return [(each["type"], each["object"]["metadata"]["name"]) for each in self.events]


def test_a_changed_definition_ends_the_watches_of_its_objects(server: Server) -> None:
    watch = Watch(server)
    document = server.request("GET", DEFINITION).json()
    spec = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["color"] = {"type": "string", "default": "red"}

    assert server.request("PUT", DEFINITION, document).status == 200

    until(lambda: server.request("GET", f"{THINGS}/one").json()["spec"] == {"size": 1, "color": "red"})
    assert watch.ended() == [("ADDED", "one")]


def test_a_definition_that_goes_ends_the_watches_after_the_last_deletion(server: Server) -> None:
    make(server, "two")
    watch = Watch(server)

    assert server.request("DELETE", DEFINITION).status == 200

    events = watch.ended()
    assert events[:2] == [("ADDED", "one"), ("ADDED", "two")]
    assert sorted(events[2:]) == [("DELETED", "one"), ("DELETED", "two")]
