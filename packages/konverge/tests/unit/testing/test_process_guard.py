"""What the cleanup process ends when the test run cannot."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.testing.process_guard import ProcessGuard, clean_up


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "plane"
    (path / "etcd").mkdir(parents=True)
    (path / "etcd" / "data").write_text("x")
    return path


def test_when_the_lines_end_every_server_is_killed_and_the_directory_removed(
    server: subprocess.Popen[bytes], directory: Path
) -> None:
    clean_up([f"started {server.pid}\n"], directory)

    assert server.wait() == -signal.SIGKILL
    assert not directory.exists()


def test_a_server_that_was_struck_off_is_left_alone(server: subprocess.Popen[bytes], directory: Path) -> None:
    clean_up([f"started {server.pid}\n", f"stopped {server.pid}\n"], directory)

    assert server.poll() is None
    assert not directory.exists()


def test_after_done_nothing_is_killed(server: subprocess.Popen[bytes], directory: Path) -> None:
    clean_up([f"started {server.pid}\n", "done\n"], directory)

    assert server.poll() is None
    assert directory.exists()


def test_a_server_that_ended_on_its_own_is_no_error(directory: Path) -> None:
    with subprocess.Popen(["true"], start_new_session=True) as process:
        process.wait()

    clean_up([f"started {process.pid}\n"], directory)

    assert not directory.exists()


def test_a_launched_program_has_its_own_group_log_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCD_NAME", "of somebody else")
    guard = ProcessGuard()
    log = guard.directory / "program.log"

    process = guard.start(["/bin/sh", "-c", 'echo "out $ETCD_NAME"; echo "err $PWD" >&2; kill -STOP $$'], log=log)
    os.waitpid(process.pid, os.WUNTRACED)

    assert os.getpgid(process.pid) == process.pid
    assert log.read_text() == f"out \nerr {guard.directory}\n"
    process.kill()
    process.wait()
    guard.unregister(process)
    guard.close()
    assert not guard.directory.exists()


def test_a_guard_whose_cleanup_process_was_killed_still_closes() -> None:
    guard = ProcessGuard()
    guard.cleanup_process.kill()
    guard.cleanup_process.wait()

    guard.close()

    assert not guard.directory.exists()
