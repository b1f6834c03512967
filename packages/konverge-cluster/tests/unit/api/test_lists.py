"""Lists: the revision of a list, paging, and versions that cannot be served."""

from __future__ import annotations

import asyncio

import pytest

from virtual_server import CONFIG_MAPS, Json, VirtualTimeServer, config_map


def names(page: Json) -> list[str]:
    return [each["metadata"]["name"] for each in page["items"]]


async def filled(count: int = 5, **options: int) -> VirtualTimeServer:
    plane = VirtualTimeServer(**options)
    for index in range(count):
        await plane.good("POST", CONFIG_MAPS, config_map(f"w{index}", {"app": "w", "odd": str(index % 2)}))
    return plane


async def test_pages_are_a_snapshot_whatever_is_written_between_them() -> None:
    plane = await filled()
    first = await plane.good("GET", f"{CONFIG_MAPS}?limit=2")
    await plane.good("DELETE", f"{CONFIG_MAPS}/w3")
    await plane.merge(f"{CONFIG_MAPS}/w4", {"data": {"new": "yes"}})
    await plane.good("POST", CONFIG_MAPS, config_map("w2b"))

    second = await plane.good("GET", f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}")
    third = await plane.good("GET", f"{CONFIG_MAPS}?limit=2&continue={second['metadata']['continue']}")

    assert [names(page) for page in (first, second, third)] == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [3, 1, None]
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
    assert "data" not in third["items"][0]
    assert "continue" not in third["metadata"]


async def test_a_limit_counts_matching_objects_and_omits_the_remaining_count() -> None:
    plane = await filled()

    page = await plane.good("GET", f"{CONFIG_MAPS}?limit=2&labelSelector=odd%3D0")

    assert names(page) == ["w0", "w2"]
    assert "remainingItemCount" not in page["metadata"]
    rest = await plane.good(
        "GET", f"{CONFIG_MAPS}?limit=2&labelSelector=odd%3D0&continue={page['metadata']['continue']}"
    )
    assert names(rest) == ["w4"]


async def test_an_expired_page_offers_an_inconsistent_continue_token() -> None:
    plane = await filled()
    first = await plane.good("GET", f"{CONFIG_MAPS}?limit=2")
    await plane.good("POST", CONFIG_MAPS, config_map("w9"))
    plane.server.cluster.storage.compact()

    code, gone = await plane.request("GET", f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}")
    assert (code, gone["reason"]) == (410, "Expired")

    rest = await plane.good("GET", f"{CONFIG_MAPS}?continue={gone['metadata']['continue']}")
    assert names(rest) == ["w2", "w3", "w4", "w9"]


async def test_an_exact_version_returns_that_state_until_it_expires() -> None:
    plane = await filled(3)
    then = plane.server.cluster.storage.revision
    await plane.good("DELETE", f"{CONFIG_MAPS}/w1")
    path = f"{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"

    assert names(await plane.good("GET", path)) == ["w0", "w1", "w2"]
    assert names(await plane.good("GET", f"{CONFIG_MAPS}?resourceVersion={then}")) == ["w0", "w2"]
    assert names(await plane.good("GET", f"{CONFIG_MAPS}?resourceVersion={then}&limit=2")) == ["w0", "w1"]
    plane.server.cluster.storage.compact()
    assert (await plane.request("GET", path))[0] == 410


async def test_a_limit_is_ignored_for_version_zero() -> None:
    plane = await filled()

    page = await plane.good("GET", f"{CONFIG_MAPS}?limit=2&resourceVersion=0")

    assert len(page["items"]) == 5
    assert "continue" not in page["metadata"]


@pytest.mark.parametrize("path", [f"{CONFIG_MAPS}?resourceVersionMatch=NotOlderThan&", f"{CONFIG_MAPS}/w0?"])
async def test_a_future_version_is_awaited_for_three_seconds(path: str) -> None:
    plane = await filled(1)
    future = plane.server.cluster.storage.revision + 1
    start = asyncio.get_running_loop().time()

    code, error = await plane.request("GET", f"{path}resourceVersion={future}")
    assert (code, error["details"]["retryAfterSeconds"]) == (504, 1)
    assert 3 <= asyncio.get_running_loop().time() - start < 3.2

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(plane.request("GET", f"{path}resourceVersion={future}"))
        await asyncio.sleep(1)
        await plane.good("POST", CONFIG_MAPS, config_map("later"))
    assert waiting.result()[0] == 200


async def test_all_namespaces_are_listed_in_the_order_of_their_keys() -> None:
    plane = VirtualTimeServer()
    for namespace in ("a", "a-b"):
        await plane.good("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        await plane.good("POST", f"/api/v1/namespaces/{namespace}/configmaps", config_map("x"))

    page = await plane.good("GET", "/api/v1/configmaps?limit=1")
    rest = await plane.good("GET", f"/api/v1/configmaps?limit=1&continue={page['metadata']['continue']}")

    expected = [each["metadata"]["namespace"] for each in (*page["items"], *rest["items"])]
    assert expected == ["a-b", "a"]
