"""Namespaces on the embedded server with our controller, and on a real one with the real controllers: the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from konverge import Client
from konverge.client import load_config
from konverge.testing import ControlPlane, run_in_virtual_time
from namespace_scenarios import delete_namespace, namespace_server, restore_defaults

# A test that starts control planes of its own needs the real programs, as one that asks for the fixture does.
pytestmark = pytest.mark.usefixtures("control_plane")


@pytest.fixture(scope="module")
def managed_plane() -> Iterator[ControlPlane]:
    with ControlPlane(controller_manager=True) as plane:
        yield plane


async def on_ours(scenario: Any) -> Any:
    async with namespace_server() as (_, client):
        return await scenario(client, "departing")


async def on_theirs(plane: ControlPlane, scenario: Any, name: str) -> Any:
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        return await scenario(client, name)


@pytest.mark.real_time(limit=300)
async def test_a_departing_namespace_says_the_same_on_both(managed_plane: ControlPlane) -> None:
    ours = await asyncio.to_thread(lambda: run_in_virtual_time(on_ours(delete_namespace), debug=False))
    theirs = await on_theirs(managed_plane, delete_namespace, "departing")

    assert ours == theirs


@pytest.mark.real_time(limit=300)
async def test_what_a_namespace_comes_with_is_the_same_on_both(managed_plane: ControlPlane) -> None:
    ours = await asyncio.to_thread(lambda: run_in_virtual_time(on_ours(restore_defaults), debug=False))
    theirs = await on_theirs(managed_plane, restore_defaults, "defaults")

    assert ours == theirs
