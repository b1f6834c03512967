"""`konverge cluster --run --keep` from start to end; `test_dev.py` checks that without `--keep` nothing is left."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from konverge import Client
from konverge.client import exists, load_config
from process_clusters import LIMIT, pod
from programs import program

pytestmark = [pytest.mark.processes, pytest.mark.real_time]

TABLE = """
images:
- image: "hello:*"
  command: ["$(DIR)/hello.sh"]
  args: ["$(POD_NAME)"]
  env: {GREETING: "hello from"}
  paths: ["$(DIR)/hello.sh"]
"""


async def run_pod(folder: Path) -> str:
    """Run a pod in the cluster of a kubeconfig until it has succeeded; return its log."""
    async with Client.connect(load_config(kubeconfig=str(folder / "konverge.kubeconfig"))) as client:
        await client.wait_for("serviceaccounts", "default", exists(), timeout=LIMIT)
        await client.create(pod("p", {"image": "hello:1"}, restartPolicy="Never"))
        await client.wait_for("pods", "p", lambda obj: _phase(obj) == "Succeeded", timeout=LIMIT)
        return b"".join([line async for line in client.logs("p")]).decode()


def _phase(obj: Any) -> str | None:
    return None if obj is None else obj["status"].get("phase")


async def test_a_cluster_runs_the_images_of_a_table_and_keeps_files_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(TABLE)
    (tmp_path / "hello.sh").write_text("#!/bin/sh\necho $GREETING $1\n")
    (tmp_path / "hello.sh").chmod(0o755)
    arguments = ("cluster", "--run", "images.yaml", "--nodes", "1", "--keep")

    with program(*arguments, folder=tmp_path, temporary=tmp_path / "scratch") as running:
        assert "1 local images" in running.read_until("Ctrl-C stops it.")
        assert await run_pod(tmp_path) == "hello from p"
        running.end(signal.SIGINT)

    assert running.process.returncode == 0
    assert running.processes == []
    (log,) = (tmp_path / "scratch").rglob("*.log")
    assert log.read_text().endswith(" hello from p\n")
