"""kubectl's logs, exec, attach, cp and port-forward on pods whose containers are processes, and on a simulated one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import tempfile
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from konverge.client import ExecResult, InProcessTransport
from konverge.objects import Unstructured
from konverge.testing import find_binaries
from konverge.wire import Request, WebSocket
from kubectl import Kubectl, Run
from process_clusters import (
    LIMIT,
    ONE_MODE,
    SLEEP,
    ProcessCluster,
    has_phase,
    is_ready,
    python_container,
    shared,
    status_of,
)

pytestmark = [pytest.mark.processes, pytest.mark.real_time, pytest.mark.control_plane]


class Shell:
    """kubectl in the namespace of a test."""

    def __init__(self, cluster: ProcessCluster, directory: Path) -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        cluster.cluster.write_kubeconfig(self.kubeconfig)
        self._namespace = cluster.namespace
        self._kubectl = Kubectl(self.kubeconfig, directory)

    async def run(self, *arguments: str, text: str = "") -> Run:
        every = ["--namespace", self._namespace, *arguments]
        return await asyncio.to_thread(self._kubectl.run, every, text=text, limit=LIMIT)

    async def out(self, *arguments: str, text: str = "") -> str:
        """Return the output of a command that must succeed."""
        run = await self.run(*arguments, text=text)
        assert run.code == 0, run
        return run.out

    async def start(self, *arguments: str, **streams: int) -> asyncio.subprocess.Process:
        command = [find_binaries() / "kubectl", "--kubeconfig", self.kubeconfig, "--namespace", self._namespace]
        return await asyncio.create_subprocess_exec(*command, *arguments, **streams)  # type: ignore[arg-type]


@asynccontextmanager
async def shell(cluster: ProcessCluster) -> AsyncGenerator[Shell]:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # containers of another user read files in it
        yield Shell(cluster, Path(directory))


@ONE_MODE
@shared
async def test_logs(cluster: ProcessCluster) -> None:
    script = f"for i in 1 2 3; do echo line $i; done; echo ünï ✓; {SLEEP}"
    await cluster.create(
        "web", {"args": [script]}, containers=[{"name": "d", "image": "sh:1", "args": ["echo d; " + SLEEP]}]
    )
    await cluster.until_log("web", "ünï ✓")
    await cluster.wait("web", is_ready)
    async with shell(cluster) as kubectl:
        assert (await kubectl.out("logs", "web", "-c", "c")).splitlines() == ["line 1", "line 2", "line 3", "ünï ✓"]
        assert (await kubectl.out("logs", "web", "-c", "c", "--tail=2")).splitlines() == ["line 3", "ünï ✓"]
        assert await kubectl.out("logs", "web", "-c", "c", "--limit-bytes=9") == "line 1\nli"
        assert (await kubectl.out("logs", "web", "-c", "d", "--timestamps")).split() == ["<time>", "d"]
        assert await kubectl.out("logs", "web", "-c", "d", "--since=1h") == "d"
        assert await kubectl.out("logs", "web", "-c", "d", "--since-time=2100-01-01T00:00:00Z") == ""
        lines = await kubectl.out("logs", "web", "--all-containers", "--prefix")
        assert "[pod/web/d] d" in lines.splitlines()
        run = await kubectl.run("logs", "web", "-c", "c", "-p")
        message = 'previous terminated container "c" in pod "web" not found'
        assert (run.code, run.err) == (1, f"Error from server (BadRequest): {message}")


@ONE_MODE
@shared
async def test_following_ends_with_the_container(cluster: ProcessCluster) -> None:
    script = "echo begin; while [ ! -e /v/end ]; do sleep 0.05; done; echo end"
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mounts = [{"name": "v", "mountPath": "/v"}]
    await cluster.create("follow", {"args": [script], "volumeMounts": mounts}, restartPolicy="Never", **volume)
    await cluster.until_log("follow", "begin")
    async with shell(cluster) as kubectl:
        follower = await kubectl.start("logs", "-f", "follow", stdout=subprocess.PIPE)
        assert follower.stdout is not None
        async with asyncio.timeout(LIMIT):
            assert await follower.stdout.readline() == b"begin\n"
            cluster.touch("follow", "end")
            assert await follower.stdout.read() == b"end\n"
            assert await follower.wait() == 0
        await cluster.wait("follow", has_phase("Succeeded"))
        assert (await kubectl.out("logs", "follow")).splitlines() == ["begin", "end"]
        run = await kubectl.run("exec", "follow", "--", "true")
        assert (run.code, run.err) == (
            1,
            "error: cannot exec into a container in a completed pod; current phase is Succeeded",
        )


@ONE_MODE
@shared
async def test_the_log_of_the_previous_run(cluster: ProcessCluster) -> None:
    script = f"if [ -e /v/again ]; then echo second; {SLEEP}; fi; touch /v/again; echo first; exit 3"
    mounts = [{"name": "v", "mountPath": "/v"}]
    await cluster.create("crash", {"args": [script], "volumeMounts": mounts}, volumes=[{"name": "v", "emptyDir": {}}])
    await cluster.wait("crash", lambda obj: (status_of(obj).get("restartCount") or 0) == 1 and is_ready(obj))
    await cluster.until(lambda: "second" in cluster.log("crash", run=1))
    async with shell(cluster) as kubectl:
        assert await kubectl.out("logs", "crash") == "second"
        assert await kubectl.out("logs", "crash", "-p") == "first"


@shared
async def test_exec(cluster: ProcessCluster) -> None:
    await cluster.create("web", {"args": [SLEEP], "env": [{"name": "WHO", "value": "c"}]})
    await cluster.wait("web", is_ready)
    async with shell(cluster) as kubectl:
        run = await kubectl.run("exec", "web", "--", "sh", "-c", "echo $WHO ü; echo error >&2; exit 7")
        assert run == Run(7, "c ü", "error\ncommand terminated with exit code 7")
        assert await kubectl.out("exec", "-i", "web", "--", "cat", text="grün\n✓\n") == "grün\n✓"
        assert (await kubectl.out("exec", "-i", "web", "--", "wc", "-c", text="x" * 3_000_000)).strip() == "3000000"
        assert (
            len(await kubectl.out("exec", "web", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"))
            == 3_000_000
        )
        long = "y" * 30_000
        assert await kubectl.out("exec", "web", "--", "echo", long) == long
        run = await kubectl.run("exec", "web", "--", "no-such-program")
        message = 'error executing command in container: exec: "no-such-program": executable file not found in $PATH'
        assert (run.code, run.err) == (1, f"error: Internal error occurred: {message}")
        run = await kubectl.run("exec", "web", "-c", "x", "--", "true")
        assert run.code == 1
        assert "container x is not valid for pod web" in run.err


@shared
async def test_a_command_ends_with_its_client(cluster: ProcessCluster) -> None:
    await cluster.create("web", {"args": [SLEEP]})
    await cluster.wait("web", is_ready)
    async with shell(cluster) as kubectl:
        client = await kubectl.start("exec", "web", "--", "sh", "-c", "echo on; exec sleep 987", stdout=subprocess.PIPE)
        assert client.stdout is not None
        assert await client.stdout.readline() == b"on\n"
        client.kill()
        await client.wait()
        supervisor = cluster.process_pod("web").sandbox.supervisor
        await cluster.until(lambda: not any(name.startswith("exec-") for name in supervisor._running))


@ONE_MODE
@shared
async def test_exec_in_a_container_that_does_not_run(cluster: ProcessCluster) -> None:
    await cluster.create(
        "crash",
        {"args": ["echo run; exit 3"]},
        containers=[{"name": "d", "image": "sh:1", "args": [SLEEP]}],
        restartPolicy="Never",
    )
    await cluster.wait("crash", lambda obj: "terminated" in (status_of(obj).get("state") or {}))
    async with shell(cluster) as kubectl:
        run = await kubectl.run("exec", "crash", "-c", "c", "--", "true")
        message = 'unable to upgrade connection: container not found ("c")'
        assert (run.code, run.err) == (1, f"error: Internal error occurred: {message}")
        assert await kubectl.out("logs", "crash", "-c", "c") == "run"


@shared
async def test_a_terminal(cluster: ProcessCluster) -> None:
    await cluster.create("web", {"args": [SLEEP]})
    await cluster.wait("web", is_ready)
    async with shell(cluster) as kubectl:
        own, other = os.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        client = await kubectl.start("exec", "-it", "web", "--", "sh", stdin=other, stdout=other, stderr=other)
        os.close(other)
        os.set_blocking(own, False)
        screen = Screen(own)
        await cluster.until(lambda: "40 100" in screen.ask(b"stty size\n"))
        fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        client.send_signal(signal.SIGWINCH)
        await cluster.until(lambda: "50 120" in screen.ask(b"stty size\n"))
        os.write(own, b"exit 5\n")
        async with asyncio.timeout(LIMIT):
            assert await client.wait() == 5
        os.close(own)


class Screen:
    """The user's side of a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = ""

    def ask(self, line: bytes) -> str:
        """Type a line; return everything that was shown so far."""
        os.write(self._descriptor, line)
        with suppress(BlockingIOError):
            self._text += os.read(self._descriptor, 65536).decode(errors="replace")
        return self._text


@ONE_MODE
@shared
async def test_attach(cluster: ProcessCluster) -> None:
    script = "while read line; do echo got $line; echo error >&2; done; echo over"
    await cluster.create("pipe", {"args": [script], "stdin": True, "stdinOnce": True}, restartPolicy="Never")
    await cluster.wait("pipe", is_ready)
    async with shell(cluster) as kubectl:
        client = await kubectl.start("attach", "-i", "pipe", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        async with asyncio.timeout(LIMIT):
            out, _ = await client.communicate(b"one\ntwo\n")
        assert out.splitlines() == [b"got one", b"got two", b"over"]
        await cluster.wait("pipe", has_phase("Succeeded"))


@ONE_MODE
@shared
async def test_attached_clients_come_and_go(cluster: ProcessCluster) -> None:
    script = "while read line; do echo got $line; done"
    await cluster.create("pipe", {"args": [script], "stdin": True})
    await cluster.wait("pipe", is_ready)
    async with shell(cluster) as kubectl:
        for word in (b"one", b"two"):
            client = await kubectl.start("attach", "-i", "pipe", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert client.stdin is not None
            assert client.stdout is not None
            async with asyncio.timeout(LIMIT):
                client.stdin.write(word + b"\n")
                await client.stdin.drain()
                assert await client.stdout.readline() == b"got " + word + b"\n"
                client.kill()
                await client.wait()


@shared
async def test_copying(cluster: ProcessCluster) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    await cluster.create("web", {"args": [SLEEP], "volumeMounts": mounts}, volumes=[{"name": "v", "emptyDir": {}}])
    await cluster.wait("web", is_ready)
    volume = "/v" if cluster.runtime.namespaces else cluster.mounts("web")[0].source
    async with shell(cluster) as kubectl:
        source = kubectl.directory / "source"
        source.mkdir()
        (source / "text").write_text("grün ✓")
        (source / "zeros").write_bytes(bytes(2_000_000))
        await kubectl.out("cp", str(source), f"web:{volume}/there")
        await kubectl.out("cp", f"web:{volume}/there", str(kubectl.directory / "back"))
        assert (kubectl.directory / "back" / "text").read_text() == "grün ✓"
        assert (kubectl.directory / "back" / "zeros").stat().st_size == 2_000_000


@ONE_MODE
@shared
async def test_a_simulated_pod_says_so(cluster: ProcessCluster) -> None:
    spec = {"containers": [{"name": "c", "image": "other"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle"}, "spec": spec}
    await cluster.client.create(Unstructured(pod))
    await cluster.wait("idle", is_ready)
    async with shell(cluster) as kubectl:
        text = 'container "c" in pod "idle" is simulated and runs nothing, so'
        for arguments, rest in (
            (("logs", "idle"), "it has no log"),
            (("exec", "idle", "--", "true"), "no command can be executed in it"),
            (("attach", "idle"), "there is nothing to attach to"),
            (("port-forward", "idle", ":80"), "no port can be forwarded to it"),
        ):
            run = await kubectl.run(*arguments)
            assert run.code == 1
            assert f"{text} {rest}" in run.err
        assert f"{text} it has no log" in await kubectl.out("logs", "-f", "idle")
        assert await kubectl.run("top", "pods") == Run(1, "", "error: Metrics API not available")


ECHO = """
import os, socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while content := self.request.recv(65536):
            self.request.sendall(content)
        self.request.sendall(b"end")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
with Server((os.environ["POD_IP"], 7000), Handler) as server:
    server.serve_forever()
"""


async def echo(port: int, content: bytes) -> bytes:
    """Send something to a local port, and return everything that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(reader.read())
            writer.write(content)
            await writer.drain()
            writer.write_eof()
        return answer.result()
    finally:
        writer.close()


@ONE_MODE
@shared
async def test_port_forward(cluster: ProcessCluster) -> None:
    probe = {"tcpSocket": {"port": 7000}, "periodSeconds": 1}
    await cluster.create("echo", {**python_container(ECHO), "readinessProbe": probe})
    await cluster.wait("echo", is_ready)
    async with shell(cluster) as kubectl:
        client = await kubectl.start(
            *("port-forward", "--address=127.0.0.1", "echo", ":7000", ":7001"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert client.stdout is not None
        assert client.stderr is not None
        async with asyncio.timeout(LIMIT):
            lines = [(await client.stdout.readline()).decode() for _ in range(2)]
        opened, closed = (int(line.split("127.0.0.1:")[1].split(" ->")[0]) for line in lines)
        large = os.urandom(1_000_000)
        answers = await asyncio.gather(*(echo(opened, content) for content in (b"", b"one", large)))
        assert answers == [b"end", b"oneend", large + b"end"]
        assert await echo(closed, b"x") == b""
        async with asyncio.timeout(LIMIT):
            while b"error forwarding port 7001 to pod echo" not in (line := await client.stderr.readline()):
                assert line
        client.kill()
        await client.wait()


@shared
async def test_the_client_runs_commands_and_reads_logs(cluster: ProcessCluster) -> None:
    await cluster.create("web", {"args": [f"echo hello; {SLEEP}"]})
    await cluster.until_log("web", "hello")
    await cluster.wait("web", is_ready)
    command = ["sh", "-c", "cat; echo error >&2; exit 4"]
    assert await cluster.client.exec("web", command, stdin=b"abc", container="c") == ExecResult(b"abc", b"error\n", 4)
    assert [line async for line in cluster.client.logs("web")] == [b"hello"]


@ONE_MODE
@shared
async def test_both_protocols(cluster: ProcessCluster) -> None:
    await cluster.create("web", {"args": [SLEEP]})
    await cluster.wait("web", is_ready)
    await check_protocol(cluster, "v4.channel.k8s.io", "head", "-n1")
    await check_protocol(cluster, "v5.channel.k8s.io", "head", "-n1")
    await check_protocol(cluster, "v5.channel.k8s.io", "grep", "one", end=b"\xff\x00")


async def check_protocol(cluster: ProcessCluster, protocol: str, *command: str, end: bytes = b"") -> None:
    """Check the messages of a client that offers one protocol; `end` ends the input."""
    transport = InProcessTransport(cluster.cluster.server.handle)
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/web/exec"
    streams = (("stdin", "true"), ("stdout", "true"))
    request = Request("GET", path, (*streams, *(("command", one) for one in command)))
    websocket = await transport.open_websocket(request, ("other", protocol))
    assert isinstance(websocket, WebSocket)
    assert websocket.protocol == protocol
    await websocket.send(b"\x00one\ntwo\n")
    if end:
        await websocket.send(end)
    async with asyncio.timeout(LIMIT):
        assert await websocket.receive() == b"\x01one\n"
        assert await websocket.receive() == b'\x03{"metadata":{},"status":"Success"}'
        assert await websocket.receive() is None
    await websocket.close()
