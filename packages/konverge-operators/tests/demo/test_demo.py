"""The demo: its parts, and the whole of it as a process that leaves nothing behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from konverge.cli import main
from konverge.cli.loopback_webhooks import is_loopback, loopback_hooks
from konverge.cli.targets import load_operator
from konverge.client import Client, InProcessTransport
from konverge.k8s.admissionregistration.v1 import ValidatingWebhookConfiguration
from konverge.objects import Unstructured
from konverge_cluster import EmbeddedServer
from konverge_operators.demo.replicas import Replicas, replicas_of
from konverge_operators.demo.steps import Teller
from programs import LIMIT, Program, program
from repository import ROOT

STEPS = ["cluster", "installed", "operator", "created", "ready", "scaled", "healed", "rolled", "refused by the webhook"]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Program]:
    with program("demo", folder=ROOT, temporary=tmp_path) as started:
        yield started


def test_the_demo_tells_the_whole_story_and_leaves_nothing_behind(demo: Program) -> None:
    told = demo.rest()

    assert demo.process.returncode == 0, told
    steps = [line.split(" s  ", 1)[1].partition(":")[0] for line in told.splitlines()[:-1]]
    assert steps == [*STEPS, "handed over", "deleted", "ended"]
    assert told.splitlines()[-1].endswith("nothing is left behind.")
    assert demo.left_behind() == []


def test_a_demo_that_is_interrupted_leaves_nothing_behind(demo: Program) -> None:
    demo.read_until("operator:")

    told = demo.end(signal.SIGINT)

    assert demo.process.returncode == 130, told
    assert "interrupted; nothing is left behind" in told
    assert demo.left_behind() == []


def test_a_demo_that_is_killed_takes_the_operator_with_it(demo: Program) -> None:
    demo.read_until("operator:")
    assert len(demo.processes) == 3

    demo.process.kill()
    demo.process.wait()

    demo.wait_until_nobody_runs()


def test_a_context_needs_a_kubeconfig() -> None:
    result = CliRunner().invoke(main, ["demo", "--context", "prod"])
    assert result.exit_code == 2
    assert "give --kubeconfig as well" in result.output


def test_steps_are_counted_and_a_failure_names_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    teller.say("created: one")
    teller.say("ready: it")

    first, second = capsys.readouterr().out.splitlines()
    assert (first[:3], second[:3]) == (" 1.", " 2.")
    assert second.endswith(" s  ready: it")
    assert teller.failed("not so").message == "step 3: not so"


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://[::1]:6443", True),
        ("http://localhost:8080/prefix", True),
        ("https://10.0.0.1:6443", False),
        ("https://localhost.example.com", False),
    ],
)
def test_a_server_on_this_machine_is_known_by_its_address(url: str, here: bool) -> None:
    assert is_loopback(url) is here


def test_a_replica_that_ends_again_and_again_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    with replicas_of(["no/such/operator"], tmp_path) as replicas:
        replicas.start("web-1")
        with pytest.raises(ChildProcessError, match="web-1 ended by itself, with exit code 2"):
            look_after_for_long(replicas)

        assert "--- web-1" in replicas.last_words()
        assert "there is no file, package or module" in replicas.last_words()


def look_after_for_long(replicas: Replicas) -> None:
    never, deadline = threading.Event(), time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        replicas.look_after()
        never.wait(0.05)


@pytest.mark.real_time(limit=60)
async def test_where_webhooks_are_not_asked_they_are_taken_back() -> None:
    operator = load_operator("konverge_operators.webapp")
    server = EmbeddedServer()
    async with Client(InProcessTransport(server.handle)) as client:
        for crd in operator.crds():
            await client.apply(crd)
        app = Unstructured({"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {"name": "web"}})
        app["spec"] = {"image": "nginx:1.25"}
        other = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}})

        async with loopback_hooks(client, operator, app, name="demo") as address:
            assert address is not None
            assert len(await client.list(ValidatingWebhookConfiguration)) == 1
        async with loopback_hooks(client, operator, other, name="demo", patience=0.3) as address:
            assert address is None
            assert len(await client.list(ValidatingWebhookConfiguration)) == 0
    await server.webhook_client.close()
