"""`konverge cluster` and `konverge nodes` as programs: how they start, what they say, and what they leave: nothing."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml
from click.testing import CliRunner

from konverge import Client
from konverge.cli import main
from konverge.cli.reachability import check_answers
from konverge.client import has_condition, load_config
from konverge_cluster import EmbeddedServer
from kubectl_clusters import in_thread
from live_cluster import deployment, pod
from programs import LIMIT, Program, program


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
def test_a_cluster_ends_at_a_signal_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"
    with running(tmp_path, "cluster", "--nodes", "2") as started:
        said = started.read_until("Ctrl-C ends it.")
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        url = server_of(kubeconfig)
        assert url in said
        assert asyncio.run(_names(kubeconfig)) == ["node-1", "node-2"]

        last = started.end(number)

    assert started.process.returncode == 0, last
    assert last.endswith("ended, nothing is left\n")
    assert "Traceback" not in last
    assert files_in(tmp_path) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5)


def test_a_cluster_shows_what_happens_and_containers_behave_as_the_command_line_says(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "here"
    arguments = ("cluster", "--kubeconfig", str(kubeconfig), "--behaves", "image=bad:*,pull-fails", "--nodes", "1")

    async def deploy() -> None:
        async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
            await client.create(deployment("web", replicas=1, image="bad:1"))

    with running(tmp_path, *arguments) as started:
        started.read_until("Ctrl-C ends it.")
        asyncio.run(deploy())
        shown = started.read_until("Error: ErrImagePull")
        last = started.end(signal.SIGINT)

    assert "Deployment  default/web  ScalingReplicaSet: Scaled up replica set web-" in shown
    assert started.process.returncode == 0, last
    assert files_in(tmp_path) == []


def test_a_second_signal_kills_a_cluster_that_takes_long_to_end(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"
    with running(tmp_path, "cluster", "--nodes", "0", "--quiet") as started:
        started.read_until("Ctrl-C ends it.")
        with _half_a_request(kubeconfig):  # the server waits for the rest of it
            _signal_until_it_ends(started)

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


def _signal_until_it_ends(started: Program) -> None:
    end = time.monotonic() + LIMIT
    while started.process.poll() is None and time.monotonic() < end:
        started.process.send_signal(signal.SIGINT)
        try:
            started.process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue


def test_a_port_that_is_taken_is_said_and_the_kubeconfig_of_whoever_has_it_stays(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("clusters: [{name: konverge}]\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["cluster", "--port", str(port), "--kubeconfig", str(kubeconfig)])

    assert result.exit_code == 1
    assert f"Error: port {port} cannot be listened on" in result.output
    assert "in use" in result.output
    assert kubeconfig.read_text() == "clusters: [{name: konverge}]\n"


def test_a_kubeconfig_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["cluster", "--kubeconfig", str(tmp_path / "none" / "kubeconfig")])

    assert result.exit_code == 1
    assert "none/kubeconfig cannot be written: No such file or directory" in result.output


@pytest.mark.parametrize(
    "content", [b"clusters: [{name: production}]\n", b"clusters: [{name: konverge}, {name: a}]", b"a: [", b"x", b"\xff"]
)
def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(tmp_path: Path, content: bytes) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_bytes(content)
    result = CliRunner().invoke(main, ["cluster", "--nodes", "0", "--kubeconfig", str(kubeconfig)])

    assert result.exit_code == 1
    assert "is there and not of a konverge cluster (give another --kubeconfig)" in result.output
    assert kubeconfig.read_bytes() == content


def test_a_kubeconfig_that_a_killed_cluster_left_is_replaced_and_that_of_a_later_one_stays(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "konverge.kubeconfig"
    with running(tmp_path, "cluster", "--nodes", "0", "--quiet") as first:
        first.read_until("Ctrl-C ends it.")
        first.end(signal.SIGKILL)
    left = kubeconfig.read_bytes()

    with running(tmp_path, "cluster", "--nodes", "0", "--quiet") as second:
        second.read_until("Ctrl-C ends it.")
        assert kubeconfig.read_bytes() != left
        kubeconfig.write_bytes(left)
        second.end(signal.SIGTERM)

    assert second.process.returncode == 0
    assert kubeconfig.read_bytes() == left


@pytest.mark.parametrize("command", ["cluster", "nodes"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("image=bad:*,never-reddy", "'never-reddy' is no part of a behavior"),
        ("crashes=often", "crashes takes a number, got 'often'"),
        ("runs-for=-1", "runs_for is a number of seconds, 0 or more"),
        ("runs-for=nan", "runs_for is a number of seconds, 0 or more"),
        ("ready-after=inf", "ready_after is a number of seconds, 0 or more"),
        ("crashes=-2", "crashes is a number of runs, 0 or more, or -1 for all of them"),
        ("", "'' does not say what containers do: write one or more of start-after, ready-after, never-ready"),
        ("image=bad:*", "'image=bad:*' does not say what containers do"),
        ("name=,never-ready", "nothing follows name="),
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
def test_nodes_are_played_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    async def run_a_pod() -> None:
        async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
            for name in ("node-1", "node-2"):  # the test is the controller manager: a new node may take pods
                await client.patch("nodes", name, {"spec": {"taints": None}})
            await client.create(pod("web"))
            await client.wait_for("pods", "web", has_condition("Ready"), timeout=LIMIT)

    arguments = ("nodes", "--kubeconfig", str(kubeconfig), "--nodes", "2")
    with in_thread(lambda: _serving(kubeconfig)), running(tmp_path, *arguments) as started:
        assert "2 nodes: node-1, node-2; Ctrl-C ends them" in started.read_until("Ctrl-C")
        asyncio.run(run_a_pod())
        last = started.end(number)

    assert started.process.returncode == 0, last
    assert "Traceback" not in last
    assert files_in(tmp_path) == ["kubeconfig"]


def test_nodes_for_a_server_that_refuses_them_is_an_error(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with in_thread(lambda: _serving(kubeconfig)) as server:
        kubeconfig.write_text(kubeconfig.read_text().replace(server.admin_token, "wrong"))
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
def test_a_server_that_is_not_there_is_said_at_once_with_its_address(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        server = f"https://127.0.0.1:{closed.getsockname()[1]}"
    started = time.monotonic()

    result = CliRunner().invoke(main, [command, "--kubeconfig", str(_kubeconfig_of(tmp_path / "config", server))])

    assert result.exit_code == 1
    assert f"Error: the API server {server} does not answer: " in result.output
    assert "refused" in result.output
    assert time.monotonic() - started < 15, "no second try: the patience of an operator takes longer"


@pytest.mark.real_time(limit=30)
async def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        config = load_config(kubeconfig=_kubeconfig_of(tmp_path / "config", server))
        with pytest.raises(
            click.ClickException, match=f"the API server {server} does not answer: nothing came within 0.2"
        ):
            await check_answers(config, patience=0.2)
