"""`konverge cluster` and `konverge nodes` as programs: they start, print, stop and leave nothing behind."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml
from click.testing import CliRunner

from konverge import Client
from konverge.cli import main
from konverge.cli.server_check import check_server
from konverge.client import has_condition, load_config
from konverge.client.impersonation import Impersonation
from konverge.errors import Forbidden
from konverge_cluster import EmbeddedServer
from konverge_cluster.cli.cluster import print_event
from kubectl_clusters import in_thread
from programs import LIMIT, Program, program
from running_clusters import deployment, pod


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Program]:
    with program(*arguments, folder=folder, temporary=folder / "tmp") as started:
        yield started


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def server_of(kubeconfig: Path) -> str:
    url: str = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return url


async def _names(kubeconfig: Path) -> list[str]:
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        return sorted(one.name for one in await client.list("nodes"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_cluster_and_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"
    with running(tmp_path, "cluster", "--nodes", "2") as started:
        output = started.read_until("Ctrl-C stops it.")
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        url = server_of(kubeconfig)
        assert url in output
        assert asyncio.run(_names(kubeconfig)) == ["node-1", "node-2"]

        last = started.end(number)

    assert started.process.returncode == 0, last
    assert last.endswith("stopped, nothing is left behind\n")
    assert "Traceback" not in last
    assert files_in(tmp_path) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5)


@pytest.mark.parametrize(("options", "allowed"), [((), False), (("--no-rbac",), True)])
def test_roles_decide_unless_they_are_switched_off(tmp_path: Path, options: tuple[str, ...], allowed: bool) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"

    async def may_list_secrets() -> bool:
        config = load_config(kubeconfig=kubeconfig)
        async with Client.connect(replace(config, impersonation=Impersonation("somebody"))) as client:
            try:
                await client.list("secrets")
            except Forbidden:
                return False
            return True

    with running(tmp_path, "cluster", *options) as started:
        started.read_until("Ctrl-C stops it.")
        assert asyncio.run(may_list_secrets()) == allowed
        started.end(signal.SIGINT)


def test_a_cluster_prints_events_and_containers_behave_as_the_options_say(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "here"
    arguments = ("cluster", "--kubeconfig", str(kubeconfig), "--behaves", "image=bad:*,pull-fails", "--nodes", "1")

    async def deploy() -> None:
        async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
            await client.create(deployment("web", replicas=1, image="bad:1"))

    with running(tmp_path, *arguments) as started:
        started.read_until("Ctrl-C stops it.")
        asyncio.run(deploy())
        output = started.read_until("Error: ErrImagePull")
        last = started.end(signal.SIGINT)

    assert "Deployment  default/web  ScalingReplicaSet: Scaled up replica set web-" in output
    assert started.process.returncode == 0, last
    assert files_in(tmp_path) == []


def test_an_event_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    regarding = {"kind": "Pod", "namespace": "default", "name": "p"}

    print_event({"type": "Normal", "regarding": regarding, "reason": "R", "note": "\x1b[2J\r\nNormal  \u202ed\u00e9"})

    assert capsys.readouterr().out == "Normal  Pod         default/p  R: \\x1b[2J\\r\\nNormal  \\u202ed\u00e9\n"


def test_a_second_signal_kills_a_cluster_that_is_slow_to_stop(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"
    with running(tmp_path, "cluster", "--nodes", "0", "--quiet") as started:
        started.read_until("Ctrl-C stops it.")
        with _half_a_request(kubeconfig):  # the server waits for the rest of it
            _signal_until_it_exits(started)

    assert started.process.returncode == -signal.SIGINT
    assert files_in(tmp_path) == []


@contextmanager
def _half_a_request(kubeconfig: Path) -> Iterator[None]:
    document = yaml.safe_load(kubeconfig.read_text())
    token, port = document["users"][0]["user"]["token"], urlsplit(server_of(kubeconfig)).port
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = f"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    with (
        socket.create_connection(("127.0.0.1", port or 0)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        yield


def _signal_until_it_exits(started: Program) -> None:
    deadline = time.monotonic() + LIMIT
    while started.process.poll() is None and time.monotonic() < deadline:
        started.process.send_signal(signal.SIGINT)
        try:
            started.process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue


def test_a_port_in_use_is_an_error_and_the_kubeconfig_of_the_other_cluster_stays(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("clusters: [{name: konverge}]\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["cluster", "--port", str(port), "--kubeconfig", str(kubeconfig)])

    assert result.exit_code == 1
    assert f"Error: cannot listen on port {port}" in result.output
    assert "in use" in result.output
    assert kubeconfig.read_text() == "clusters: [{name: konverge}]\n"


def test_a_kubeconfig_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["cluster", "--kubeconfig", str(tmp_path / "none" / "kubeconfig")])

    assert result.exit_code == 1
    assert f"cannot write kubeconfig {tmp_path / 'none' / 'kubeconfig'}: No such file or directory" in result.output


@pytest.mark.parametrize(
    "content", [b"clusters: [{name: production}]\n", b"clusters: [{name: konverge}, {name: a}]", b"a: [", b"x", b"\xff"]
)
def test_a_file_of_another_cluster_is_neither_replaced_nor_removed(tmp_path: Path, content: bytes) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_bytes(content)
    result = CliRunner().invoke(main, ["cluster", "--nodes", "0", "--kubeconfig", str(kubeconfig)])

    assert result.exit_code == 1
    assert "already exists and does not belong to a konverge cluster (use another --kubeconfig)" in result.output
    assert kubeconfig.read_bytes() == content


def test_the_kubeconfig_of_a_killed_cluster_is_replaced_and_that_of_a_later_one_stays(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"
    with running(tmp_path, "cluster", "--nodes", "0", "--quiet") as first:
        first.read_until("Ctrl-C stops it.")
        first.end(signal.SIGKILL)
    old = kubeconfig.read_bytes()

    with running(tmp_path, "cluster", "--nodes", "0", "--quiet") as second:
        second.read_until("Ctrl-C stops it.")
        assert kubeconfig.read_bytes() != old
        kubeconfig.write_bytes(old)
        second.end(signal.SIGTERM)

    assert second.process.returncode == 0
    assert kubeconfig.read_bytes() == old


@pytest.mark.parametrize("command", ["cluster", "nodes"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("image=bad:*,never-reddy", "'never-reddy' is no field of a behavior"),
        ("crashes=often", "crashes takes a number, got 'often'"),
        ("runs-for=-1", "runs_for is a number of seconds, 0 or more"),
        ("runs-for=nan", "runs_for is a number of seconds, 0 or more"),
        ("ready-after=inf", "ready_after is a number of seconds, 0 or more"),
        ("crashes=-2", "crashes is a number of runs, 0 or more, or -1 for all of them"),
        ("", "'' does not say what containers do: write one or more of start-after, ready-after, never-ready"),
        ("image=bad:*", "'image=bad:*' does not say what containers do"),
        ("name=,never-ready", "name= has no value"),
    ],
)
def test_an_invalid_behavior_is_a_usage_error(command: str, text: str, why: str) -> None:
    result = CliRunner().invoke(main, [command, "--behaves", text])

    assert result.exit_code == 2
    assert f"'--behaves' (env var: 'KONVERGE_BEHAVES'): {why}" in result.output


# konverge nodes


@asynccontextmanager
async def _serving(kubeconfig: Path) -> AsyncGenerator[EmbeddedServer]:
    async with EmbeddedServer() as server:
        server.write_kubeconfig(kubeconfig)
        yield server


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_simulated_nodes_run_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    async def run_a_pod() -> None:
        async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
            for name in ("node-1", "node-2"):  # as the controller manager does for a ready node
                await client.patch("nodes", name, {"spec": {"taints": None}})
            await client.create(pod("web"))
            await client.wait_for("pods", "web", has_condition("Ready"), timeout=LIMIT)

    arguments = ("nodes", "--kubeconfig", str(kubeconfig), "--nodes", "2")
    with in_thread(lambda: _serving(kubeconfig)), running(tmp_path, *arguments) as started:
        assert "2 nodes: node-1, node-2; Ctrl-C stops them" in started.read_until("Ctrl-C")
        asyncio.run(run_a_pod())
        last = started.end(number)

    assert started.process.returncode == 0, last
    assert "Traceback" not in last
    assert files_in(tmp_path) == ["kubeconfig"]


def test_nodes_for_a_server_that_refuses_them_is_an_error(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with in_thread(lambda: _serving(kubeconfig)):
        document = yaml.safe_load(kubeconfig.read_text())
        document["users"][0]["user"] = {"token": "wrong"}
        kubeconfig.write_text(yaml.safe_dump(document))
        result = CliRunner().invoke(main, ["nodes", "--kubeconfig", str(kubeconfig)])

    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "Unauthorized" in result.output


def test_nodes_for_a_kubeconfig_or_context_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    missing = CliRunner().invoke(main, ["nodes", "--kubeconfig", str(tmp_path / "none")])
    assert missing.exit_code == 2
    assert "does not exist" in missing.output

    kubeconfig = tmp_path / "kubeconfig"
    with in_thread(lambda: _serving(kubeconfig)):
        pass
    other = CliRunner().invoke(main, ["nodes", "--kubeconfig", str(kubeconfig), "--context", "other"])
    assert other.exit_code == 1
    assert "other" in other.output


def _kubeconfig_of(path: Path, server: str) -> Path:
    document = {
        "clusters": [{"name": "far", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "contexts": [{"name": "far", "context": {"cluster": "far", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "mine"}}],
        "current-context": "far",
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("command", ["nodes", "demo"])
def test_a_server_that_does_not_listen_is_an_immediate_error_with_its_address(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        server = f"https://127.0.0.1:{closed.getsockname()[1]}"
    started = time.monotonic()

    result = CliRunner().invoke(main, [command, "--kubeconfig", str(_kubeconfig_of(tmp_path / "config", server))])

    assert result.exit_code == 1
    assert f"Error: the API server {server} does not answer: " in result.output
    assert "refused" in result.output
    assert time.monotonic() - started < 15, "there is no retry: an operator retries for longer"


@pytest.mark.real_time(limit=30)
async def test_a_server_that_does_not_respond_times_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stalled:
        server = f"https://127.0.0.1:{stalled.getsockname()[1]}"
        config = load_config(kubeconfig=_kubeconfig_of(tmp_path / "config", server))
        with pytest.raises(
            click.ClickException, match=f"the API server {server} does not answer: no response within 0.2"
        ):
            await check_server(config, timeout=0.2)
