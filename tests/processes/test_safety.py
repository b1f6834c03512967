"""Process nodes leave nothing behind, and nothing outside of a pod is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from konverge_cluster.processes.directories import open_directory
from process_clusters import LIMIT, ProcessCluster, Start, has_phase, is_ready, shared
from process_tables import processes_with

pytestmark = pytest.mark.processes

PROGRAM = """
    import asyncio, sys
    sys.path[:0] = {paths!r}
    from process_clusters import is_ready, process_cluster

    async def run(namespaces, marker):
        async with process_cluster(directory={directory!r}, namespaces=namespaces) as cluster:
            script = f"setsid sleep {{marker}} & setsid sh -c 'sleep {{marker}} & sleep {{marker}}' & sleep {{marker}}"
            await cluster.create("p", {{"args": [script]}})
            await cluster.wait("p", is_ready)
            print(cluster.process_pod("p").sandbox.supervisor.pid, flush=True)
            await asyncio.sleep(3600)

    async def main():
        await asyncio.gather(run(True, 98771), run(False, 98772))

    asyncio.run(main())
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "processes"


def wait_until(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_nothing_is_left_of_clusters_that_were_killed(directory: Path) -> None:
    program, markers = textwrap.dedent(PROGRAM.format(directory=str(directory), paths=sys.path)), ("98771", "98772")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as clusters:
        assert clusters.stdout is not None
        supervisors = [int(clusters.stdout.readline()) for _ in range(2)]
        wait_until(lambda: [len(processes_with(one)) for one in markers] == [4, 4])
        assert len(list(directory.glob("run-*"))) == 2

        clusters.send_signal(signal.SIGKILL)

    wait_until(lambda: [len(processes_with(one)) for one in markers] == [0, 0])
    wait_until(lambda: not any(Path("/proc", str(one)).exists() for one in supervisors))
    assert len(list(directory.glob("run-*"))) == 2, "a killed process removes no files"
    with open_directory(directory, keep=False) as fresh:
        assert list(directory.glob("run-*")) == [fresh], "the next start removes them"


@pytest.mark.real_time
async def test_nothing_is_left_of_a_cluster_that_was_stopped(start: Start, directory: Path) -> None:
    async with start(directory=directory) as cluster:
        await cluster.create("p", {"args": ["setsid sleep 98773 & sleep 98773"]})
        await cluster.wait("p", is_ready)

    assert not processes_with("98773")
    assert os.listdir(directory) == []


def test_files_stay_when_asked_for(directory: Path) -> None:
    with open_directory(directory, keep=True) as kept:
        (kept / "file").touch()

    with open_directory(directory, keep=False):
        assert (kept / "file").exists()


def test_a_running_cluster_keeps_its_files_when_another_starts(directory: Path) -> None:
    with open_directory(directory, keep=False) as first, open_directory(directory, keep=False) as second:
        assert first.exists()
        assert first != second


def test_the_last_runtime_removes_the_directory_of_this_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def use(_: int) -> bool:
        with open_directory(None, keep=False) as directory:
            return directory.is_dir()

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(100))), "one that is being removed is created again"

    assert os.listdir(tmp_path) == []


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(PermissionError, match="not a directory of this user"):
        open_directory(tmp_path / "link", keep=False).__enter__()


@shared
async def test_the_host_is_not_touched(cluster: ProcessCluster) -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    mounts = [{"name": "v", "mountPath": "/etc/konverge-absent/deep"}]
    script = "echo x > /etc/konverge-absent/deep/file; cat /etc/konverge-absent/deep/file"
    await cluster.create("p", {"args": [script], "volumeMounts": mounts}, volumes=volumes, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    assert cluster.log("p") == "x"
    assert "konverge-absent" not in os.listdir("/etc")


@shared
async def test_with_namespaces_a_container_sees_its_own_processes_and_its_own_tmp(cluster: ProcessCluster) -> None:
    directory = cluster.runtime.options.directory
    script = f"echo $$$$; test -e {directory}; echo $?; touch $HOME/private"
    await cluster.create("p", {"args": [script]}, restartPolicy="Never")

    await cluster.wait("p", has_phase("Succeeded"))

    first, missing = cluster.log("p").split()
    assert (first == "1", missing == "1") == (cluster.runtime.namespaces, cluster.runtime.namespaces)
