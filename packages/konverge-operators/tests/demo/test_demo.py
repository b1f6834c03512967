"""The demo: its parts, and the whole command as a process that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from konverge.cli import main
from konverge.cli.loopback_webhooks import is_loopback, serve_loopback_webhooks
from konverge.cli.targets import load_operator
from konverge.client import Client, InProcessTransport
from konverge.k8s.admissionregistration.v1 import ValidatingWebhookConfiguration
from konverge.objects import Unstructured
from konverge_cluster import EmbeddedServer
from konverge_operators.demo.replicas import Replicas, run_replicas
from konverge_operators.demo.steps import StepPrinter
from programs import LIMIT, Program, program
from repository import ROOT

STEPS = [
    "cluster",
    "installed",
    "operator",
    "created",
    "ready",
    "scaled",
    "healed",
    "updated",
    "refused by the webhook",
]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """The demo without kubectl: with it, it runs on a real cluster (tests/cluster/test_demo_on_a_real_cluster.py)."""
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with program("demo", folder=ROOT, temporary=tmp_path) as started:
        monkeypatch.setenv("PATH", path)  # of this process only
        yield started


def test_the_demo_prints_every_step_and_leaves_nothing_behind(demo: Program) -> None:
    output = demo.rest()

    assert demo.process.returncode == 0, output
    steps = [line.split(" s  ", 1)[1].partition(":")[0] for line in output.splitlines()[:-1]]
    assert steps == [*STEPS, "failed over", "deleted", "ended"]
    assert "(condition Ready; kubectl is not installed)" in output
    assert output.splitlines()[-1].endswith("nothing is left behind.")
    assert demo.left_behind() == []


def test_a_demo_that_is_interrupted_leaves_nothing_behind(demo: Program) -> None:
    demo.read_until("operator:")

    output = demo.end(signal.SIGINT)

    assert demo.process.returncode == 130, output
    assert "interrupted; nothing is left behind" in output
    assert demo.left_behind() == []


def test_killing_the_demo_also_ends_the_operator_processes(demo: Program) -> None:
    demo.read_until("operator:")
    assert len(demo.processes) == 3

    demo.process.kill()
    demo.process.wait()

    demo.wait_until_all_exited()


def test_a_context_needs_a_kubeconfig() -> None:
    result = CliRunner().invoke(main, ["demo", "--context", "prod"])
    assert result.exit_code == 2
    assert "add --kubeconfig" in result.output


def test_steps_are_numbered_and_a_failure_names_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    printer = StepPrinter()
    printer.print_step("created: one")
    printer.print_step("ready: it")

    first, second = capsys.readouterr().out.splitlines()
    assert (first[:3], second[:3]) == (" 1.", " 2.")
    assert second.endswith(" s  ready: it")
    assert printer.failure("not true").message == "step 3: not true"


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://[::1]:6443", True),
        ("http://localhost:8080/prefix", True),
        ("https://10.0.0.1:6443", False),
        ("https://localhost.example.com", False),
    ],
)
def test_a_loopback_server_is_recognized_by_its_address(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback


def test_a_replica_that_keeps_exiting_is_not_restarted_for_ever_and_its_log_is_shown(tmp_path: Path) -> None:
    with run_replicas(["no/such/operator"], tmp_path) as replicas:
        replicas.start("web-1")
        with pytest.raises(ChildProcessError, match="web-1 exited on its own, with exit code 2"):
            restart_until_the_limit(replicas)

        assert "--- web-1" in replicas.log_tails()
        assert "there is no file, package or module" in replicas.log_tails()


def restart_until_the_limit(replicas: Replicas) -> None:
    never, deadline = threading.Event(), time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        replicas.restart_exited()
        never.wait(0.05)


@pytest.mark.real_time(limit=60)
async def test_webhooks_that_the_server_does_not_call_are_removed() -> None:
    operator = load_operator("konverge_operators.webapp")
    server = EmbeddedServer()
    async with Client(InProcessTransport(server.handle)) as client:
        for crd in operator.crds():
            await client.apply(crd)
        app = Unstructured({"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {"name": "web"}})
        app["spec"] = {"image": "nginx:1.25"}
        other = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}})

        async with serve_loopback_webhooks(client, operator, app, name="demo") as address:
            assert address is not None
            assert len(await client.list(ValidatingWebhookConfiguration)) == 1
        async with serve_loopback_webhooks(client, operator, other, name="demo", timeout=0.3) as address:
            assert address is None
            assert len(await client.list(ValidatingWebhookConfiguration)) == 0
    await server.webhook_client.close()
