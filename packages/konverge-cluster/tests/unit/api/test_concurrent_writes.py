"""Concurrent writes: a write that waits in admission starts over after another write."""

from __future__ import annotations

import asyncio

from konverge_cluster.api.admission import AdmissionRequest
from konverge_cluster.api.status_errors import forbidden
from virtual_server import CONFIG_MAPS, VirtualTimeServer, config_map

PATH = f"{CONFIG_MAPS}/a"
MERGE = "application/merge-patch+json"


class Slow:
    """An admission plug-in that takes a second for every deletion and every write with the annotation `slow`."""

    def handles(self, request: AdmissionRequest) -> bool:
        found = request.object or request.old_object or {}
        return bool(found["metadata"].get("annotations", {}).get("slow")) or request.operation == "DELETE"

    async def mutate(self, _request: AdmissionRequest) -> None:
        await asyncio.sleep(1)

    async def validate(self, _request: AdmissionRequest) -> None:
        """Accept every object."""


class Rejecting(Slow):
    """A plug-in that rejects the final object."""

    async def validate(self, request: AdmissionRequest) -> None:
        raise forbidden("", "configmaps", request.name, "no")


async def slow_plane() -> VirtualTimeServer:
    plane = VirtualTimeServer()
    plane.server.cluster.admission.append(Slow())
    created = config_map("a", x="0")
    created["metadata"]["annotations"] = {"slow": "yes"}
    await plane.good("POST", CONFIG_MAPS, created)
    return plane


async def test_concurrent_patches_are_all_applied() -> None:
    plane = await slow_plane()

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(plane.request("PATCH", PATH, {"data": {name: "1"}}, content_type=MERGE))
            for name in "pqrst"
        ]

    assert [task.result()[0] for task in tasks] == [200] * 5
    found = await plane.good("GET", PATH)
    assert found["data"] == {"x": "0", "p": "1", "q": "1", "r": "1", "s": "1", "t": "1"}


async def test_of_two_updates_of_one_version_the_second_conflicts() -> None:
    plane = await slow_plane()
    seen = await plane.good("GET", PATH)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(plane.request("PUT", PATH, seen | {"data": {"by": name}})) for name in "ab"]

    assert sorted(task.result()[0] for task in tasks) == [200, 409]


async def test_of_two_concurrent_creates_the_second_fails() -> None:
    plane = VirtualTimeServer()
    plane.server.cluster.admission.append(Slow())
    wish = config_map("b")
    wish["metadata"]["annotations"] = {"slow": "yes"}

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(plane.request("POST", CONFIG_MAPS, wish)) for _ in range(2)]

    assert sorted(task.result()[0] for task in tasks) == [201, 409]


async def test_a_deletion_waiting_in_admission_deletes_the_latest_state() -> None:
    plane = await slow_plane()
    start = plane.server.cluster.storage.revision

    async with asyncio.TaskGroup() as group:
        deleting = group.create_task(plane.request("DELETE", PATH))
        await asyncio.sleep(0.5)
        plane.server.cluster.admission.clear()
        await plane.merge(PATH, {"data": {"x": "late"}})
    assert deleting.result()[0] == 200

    async with plane.watch(CONFIG_MAPS, resourceVersion=start, timeoutSeconds=1) as watcher:
        events = await watcher.rest()
    assert [(each["type"], each["object"]["data"]["x"]) for each in events] == [
        ("MODIFIED", "late"),
        ("DELETED", "late"),
    ]


async def test_a_precondition_is_checked_against_the_latest_state() -> None:
    plane = await slow_plane()
    seen = await plane.good("GET", PATH)
    options = {"preconditions": {"resourceVersion": seen["metadata"]["resourceVersion"]}}

    async with asyncio.TaskGroup() as group:
        deleting = group.create_task(plane.request("DELETE", PATH, options))
        await asyncio.sleep(0.5)
        plane.server.cluster.admission.clear()
        await plane.merge(PATH, {"data": {"x": "late"}})

    assert deleting.result()[0] == 409


async def test_an_object_that_admission_rejects_is_not_stored() -> None:
    plane = await slow_plane()
    plane.server.cluster.admission.append(Rejecting())
    version = plane.server.cluster.storage.revision

    assert (await plane.request("PATCH", PATH, {"data": {"x": "1"}}, content_type=MERGE))[0] == 403
    assert (await plane.request("DELETE", PATH))[0] == 403
    assert plane.server.cluster.storage.revision == version


async def test_a_request_cancelled_in_admission_stores_nothing() -> None:
    plane = await slow_plane()
    version = plane.server.cluster.storage.revision

    task = asyncio.ensure_future(plane.request("PATCH", PATH, {"data": {"x": "1"}}, content_type=MERGE))
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.sleep(5)

    assert task.cancelled()
    assert plane.server.cluster.storage.revision == version
