"""One server process, from start to end. The servers here are shell scripts that "listen" by creating a file."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing.process_guard import ProcessGuard
from konverge.testing.servers import PORTS, Server, free_port

Write = Callable[[Path, str], Path]
IsGone = Callable[[int], bool]

LISTEN = 'touch "ready-$1"\nexec sleep 60\n'


@pytest.fixture
def guard() -> Iterator[ProcessGuard]:
    process_guard = ProcessGuard()
    yield process_guard
    process_guard.close()


@pytest.fixture
def make(guard: ProcessGuard, write: Write, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Create a server from a shell script, which gets the port as $1."""
    servers: list[Server] = []

    def make(script: str, port: int = 0) -> Server:
        program = write(tmp_path / "fake-server", f"#!/bin/sh\n{script}")
        ready = lambda port: (guard.directory / f"ready-{port}").exists()  # noqa: E731
        servers.append(Server(program, lambda port: [str(port)], ready, guard=guard, port=port))
        return servers[-1]

    yield make
    for server in servers:
        server.kill()


Make = Callable[..., Server]


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def test_start_returns_when_the_server_is_ready(make: Make, guard: ProcessGuard) -> None:
    server = make(LISTEN)

    server.start(deadline=soon())

    assert server.port in PORTS
    assert (guard.directory / f"ready-{server.port}").exists()


def test_a_server_that_dies_is_one_error_with_the_end_of_its_log(make: Make) -> None:
    server = make("for n in $(seq 1 40); do echo line $n; done; exit 3\n")

    with pytest.raises(ControlPlaneError) as caught:
        server.start(deadline=soon())

    first, *log = str(caught.value).splitlines()
    assert first == "start fake-server: it exited with code 3; the end of its log:"
    assert log == [f"line {n}" for n in range(26, 41)]
    assert server.pid is None


def test_the_error_names_the_signal_that_ended_a_server(make: Make) -> None:
    server = make("kill -SEGV $$\n")

    with pytest.raises(ControlPlaneError, match=r"signal 11 ended it; the end of its log:\n\(nothing\)"):
        server.start(deadline=soon())


def test_a_program_that_cannot_be_executed_is_one_clear_error(make: Make, write: Write, tmp_path: Path) -> None:
    server = make(LISTEN)
    write(tmp_path / "fake-server", "#!/no/such/interpreter\n")

    with pytest.raises(ControlPlaneError, match=r"start fake-server: it exited with code 12\d; [\s\S]*not found"):
        server.start(deadline=soon())


def test_a_server_that_is_not_ready_in_time_is_stopped(make: Make) -> None:
    server = make("exec sleep 60\n")

    with pytest.raises(ControlPlaneError, match="start fake-server: it is not ready in time; the end of its log:"):
        server.start(deadline=soon(0))

    assert server.pid is None


def test_an_interrupted_start_leaves_nothing_of_the_server(
    guard: ProcessGuard, write: Write, tmp_path: Path, is_gone: IsGone
) -> None:
    program = write(tmp_path / "fake-server", "#!/bin/sh\nsleep 60 &\necho $! > child\nmv child started\nwait\n")
    started = guard.directory / "started"

    def interrupt(port: int) -> bool:
        if started.exists():
            raise KeyboardInterrupt(port)
        return False

    server = Server(program, lambda port: [str(port)], interrupt, guard=guard)
    with pytest.raises(KeyboardInterrupt):
        server.start(deadline=soon())

    assert server.pid is None
    assert is_gone(int(started.read_text()))


def test_a_free_port_that_another_process_bound_first_costs_another_attempt(make: Make, guard: ProcessGuard) -> None:
    tries = guard.directory / "tries"
    third = "[ $(wc -l < tries) -ge 3 ] || { echo bind: address already in use; exit 1; }"
    server = make(f"echo $1 >> tries\n{third}\n{LISTEN}")

    server.start(deadline=soon())

    ports = tries.read_text().split()
    assert len(set(ports)) == 3
    assert server.port == int(ports[-1])


def test_no_try_is_made_for_ever(make: Make, guard: ProcessGuard) -> None:
    server = make("echo $1 >> tries\necho address already in use\nexit 1\n")

    with pytest.raises(ControlPlaneError, match="is in use"):
        server.start(deadline=soon())

    assert len((guard.directory / "tries").read_text().split()) == 5


def test_a_fixed_port_in_use_is_an_error_that_names_it(make: Make, guard: ProcessGuard) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = make("touch launched\n", port=port)

        with pytest.raises(ControlPlaneError) as caught:
            server.start(deadline=soon())

    expected = f"start fake-server: port {port} is in use (leave the port out to get a free one)"
    assert str(caught.value) == expected
    assert not (guard.directory / "launched").exists()


def test_a_fixed_port_that_is_bound_at_the_last_moment_is_not_replaced(make: Make, guard: ProcessGuard) -> None:
    port = free_port()
    server = make("echo $1 >> tries\necho bind: address already in use\nexit 1\n", port=port)

    with pytest.raises(
        ControlPlaneError, match=f"port {port} is in use .*; the end of its log:\nbind: address already"
    ):
        server.start(deadline=soon())

    assert (guard.directory / "tries").read_text().split() == [str(port)]


def test_a_killed_server_comes_back_on_its_port(make: Make, is_gone: IsGone) -> None:
    server = make(LISTEN)
    server.start(deadline=soon())
    port, pid = server.port, server.pid
    assert pid is not None

    server.kill()
    assert is_gone(pid)
    server.start(deadline=soon())

    assert server.port == port
    assert server.pid not in (None, pid)


def test_a_running_server_is_not_started_twice(make: Make) -> None:
    server = make(LISTEN)
    server.start(deadline=soon())

    with pytest.raises(ControlPlaneError, match="already running"):
        server.start(deadline=soon())


def test_stop_lets_the_server_end_in_order(make: Make, guard: ProcessGuard) -> None:
    server = make("trap 'echo orderly > end; exit 0' TERM\ntouch ready-$1\nwhile :; do sleep 0.01; done\n")
    server.start(deadline=soon())

    server.stop()

    assert (guard.directory / "end").read_text() == "orderly\n"
    assert server.pid is None


def test_a_server_that_ignores_stop_is_killed(make: Make, is_gone: IsGone) -> None:
    server = make("trap '' TERM\ntouch ready-$1\nwhile :; do sleep 0.01; done\n")
    server.start(deadline=soon())
    pid = server.pid
    assert pid is not None

    server.stop(timeout=0.05)

    assert is_gone(pid)


def test_stop_and_kill_of_a_stopped_server_do_nothing(make: Make) -> None:
    server = make(LISTEN)
    server.stop()
    server.start(deadline=soon())
    server.stop()
    server.stop()
    server.kill()

    assert server.pid is None


def test_a_free_port_is_not_one_with_a_listener() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        taken = listener.getsockname()[1]

        assert taken not in {free_port() for _ in range(50)}
