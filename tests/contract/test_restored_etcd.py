"""T41 on a real server: etcd is restored from a backup under a cache, and the cache follows it.

The backup is a copy of the data of a stopped etcd. A restored server has lower versions than the cache, accepts its
watches and sends nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge import Client, ObjectMeta, load_config
from konverge.cache import Cache, CacheOptions, ReflectorOptions
from konverge.errors import KonvergeError
from konverge.k8s.core.v1 import ConfigMap
from konverge.testing import ControlPlane

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("control_plane")]

QUICK = ReflectorOptions(idle_timeout=4.0, healthy_after=0.5)
"""So that a silent watch is noticed after seconds instead of three quarters of a minute."""

LIMIT = 120.0


class Backup:
    """A copy of the data of a control plane's etcd."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._copy = folder / "backup"
        self._data = plane.directory / "etcd"

    def take(self) -> None:
        self._stop()
        shutil.copytree(self._data, self._copy)
        self._start()

    def restore(self) -> None:
        self._stop()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        self._start()

    def _stop(self) -> None:
        self._plane._apiserver.kill()
        self._plane._etcd.kill()

    def _start(self) -> None:
        self._plane._etcd.start(deadline=time.monotonic() + LIMIT)
        self._plane.start_apiserver()


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        yield plane


def config_map(name: str, value: str = "") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"value": value})


async def versions(client: Client) -> dict[str, str]:
    found = await client.list(ConfigMap, namespace="default")
    return {one.name: one.metadata.resource_version or "" for one in found}


async def until_equal(client: Client, cache: Cache) -> None:
    """Wait until the cache has what the server has."""
    lister = cache.lister(ConfigMap)
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                if {one.name: one.metadata.resource_version for one in lister.list()} == await versions(client):
                    return
            except KonvergeError:
                pass  # the server is not up again
            await asyncio.sleep(0.2)


@pytest.mark.real_time(limit=400)
async def test_a_cache_follows_a_server_whose_etcd_was_restored(
    plane: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backup = Backup(plane, tmp_path)
    config = load_config(kubeconfig=plane.kubeconfig)
    async with Client.connect(config) as client:
        for name in ("changed", "deleted", "kept"):
            await client.create(config_map(name))
        await asyncio.to_thread(backup.take)
        async with Cache(client.collection, reflector_options=QUICK) as cache:
            cache.declare(ConfigMap, CacheOptions(namespaces=("default",)))
            await cache.wait_for_sync(LIMIT)
            await client.apply(config_map("changed", "since"), force=True)
            await client.delete(ConfigMap, "deleted", namespace="default")
            for number in range(300):  # versions that the restored server does not reach by itself for a while
                await client.apply(config_map("late", str(number)), force=True)
            await until_equal(client, cache)
            before = await versions(client)

            await asyncio.to_thread(backup.restore)

            await until_equal(client, cache)
            after = await versions(client)
            assert set(after) == {*before, "deleted"} - {"late"}
            assert int(after["changed"]) < int(before["changed"])
            assert "server history restarted: listing again" in caplog.messages
            # The watch works again.
            await client.create(config_map("new"))
            await until_equal(client, cache)
