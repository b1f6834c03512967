"""The first example of README.md: at most 25 lines, and `konverge dev` runs it as it stands, and the other examples."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge import Client, Unstructured, load_config
from konverge.client import exists, has_condition
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.core.v1 import ConfigMap
from programs import Program, program
from repository import ROOT

EXAMPLE = ROOT / "examples" / "greeting.py"
GREETING = {"apiVersion": "example.com/v1", "kind": "Greeting", "spec": {"text": "hello world"}}


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Program]:
    shutil.copy(EXAMPLE, tmp_path / "app.py")
    with program("dev", "app.py", folder=tmp_path, temporary=tmp_path / "scratch") as started:
        yield started


def test_the_first_example_is_short_and_the_one_in_the_readme() -> None:
    (first, *_) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert first == EXAMPLE.read_text()
    assert len(first.splitlines()) <= 25


def test_konverge_dev_runs_the_first_example(dev: Program) -> None:
    dev.read_until("watching")
    asyncio.run(create_and_restore(dev.folder / "konverge.kubeconfig"))
    dev.read_until("Greeting default/world")
    assert "greeting  default/world\n" in why(dev)
    assert "owns ConfigMap: ConfigMap default/world deleted" in why(dev, "Greeting", "world")
    assert "(it has that of default/world)" in why(dev, "greeting", "nobody")
    output = dev.end(signal.SIGINT)
    assert output.endswith("stopped, nothing is left behind\n")
    assert "ERROR" not in output


def why(dev: Program, *arguments: str) -> str:
    """Return the output of `konverge why`, which finds the address of the operator by itself."""
    command = [sys.executable, "-m", "konverge", "why", *arguments]
    return subprocess.run(command, cwd=dev.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


async def create_and_restore(kubeconfig: Path) -> None:
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        await client.wait_for(CustomResourceDefinition, "greetings.example.com", has_condition("Established"))
        await client.create(Unstructured({**GREETING, "metadata": {"name": "world"}}))
        first = await client.wait_for(ConfigMap, "world", exists())
        assert first is not None
        assert first.data == {"text": "hello world"}
        await client.delete(first)
        restored = await client.wait_for(ConfigMap, "world", lambda found: found is not None and found.uid != first.uid)
        assert restored is not None
        assert restored.data == {"text": "hello world"}


@pytest.mark.parametrize(
    ("example", "line"), [("backup", "Backup default/sample: not Ready"), ("tenant", "Tenant acme: Ready")]
)
def test_konverge_dev_runs_the_other_examples_with_their_samples(
    example: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_URL", "http://127.0.0.1:9")  # nothing listens there: a backup is not ready
    shutil.copytree(ROOT / "examples" / example / "src", tmp_path / "src")
    shutil.copytree(ROOT / "examples" / example / "samples", tmp_path / "samples")
    target = f"src/{example}_operator"
    with program("dev", target, folder=tmp_path, temporary=tmp_path / "scratch") as started:
        started.read_until(line)
        assert "ERROR" not in started.end(signal.SIGINT)
