"""The MyApp operator by commands: `konverge demo myapp`, also after Ctrl-C, and `konverge dev` with all operators."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path

import pytest

from kubectl import Kubectl
from my_apps import SAMPLES
from programs import program
from repository import ROOT

pytestmark = pytest.mark.engines

STEPS = ["cluster", "operators", "ready", "wrote", "read", "rotated", "deleted", "taken over", "ended"]


def test_the_demo_prints_every_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with program("demo", "myapp", folder=ROOT, temporary=tmp_path) as demo:
        output = demo.rest()

        assert demo.process.returncode == 0, output
        steps = [line.split(" s  ", 1)[1].partition(":")[0] for line in output.splitlines()[:-1]]
        assert steps == STEPS
        done = re.fullmatch(r"Done in ([\d.]+) s, nothing is left behind\.", output.splitlines()[-1])
        assert done is not None
        assert float(done[1]) < 120
        assert demo.left_behind() == []


def test_a_demo_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    with program("demo", "myapp", folder=ROOT, temporary=tmp_path) as demo:
        demo.read_until("ready:")
        output = demo.end(signal.SIGINT)
        assert demo.process.returncode == 130, output
        assert "interrupted; nothing is left behind" in output
        assert demo.left_behind() == []


def test_one_apply_gives_an_application_with_a_real_database_and_a_real_cache(tmp_path: Path) -> None:
    with program("dev", "konverge_operators", "--run", folder=tmp_path, temporary=tmp_path / "scratch") as dev:
        dev.read_until("controller webapp")
        kubectl = Kubectl(tmp_path / "konverge.kubeconfig", tmp_path)
        applied = kubectl.run(["apply", "-f", str(SAMPLES / "process_nodes" / "notes.yaml")])
        assert applied.code == 0, applied
        dev.read_until("MyApp default/notes: Running")
        address = kubectl.run(["get", "service", "notes", "-o", "jsonpath={.spec.clusterIP}"]).out
        assert send(f"http://{address}:8080/hello", b"good morning") == "stored"
        assert send(f"http://{address}:8080/hello") == "good morning (database)"
        assert send(f"http://{address}:8080/hello") == "good morning (cache)"
        dev.end(signal.SIGINT)
    assert dev.process.returncode == 0
    assert dev.left_behind() == []


def send(url: str, body: bytes | None = None) -> str:
    request = urllib.request.Request(url, data=body, method="GET" if body is None else "PUT")
    with urllib.request.urlopen(request, timeout=60) as response:
        content: bytes = response.read()
    return content.decode()
