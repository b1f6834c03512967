"""Child processes of a command: they exit when it does, however it exits, and not before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from konverge.cli.child_processes import ChildProcess
from programs import LIMIT, processes_of

CHILD = """
import os, signal, sys
from konverge.cli.child import exit_with_parent
{before}
exit_with_parent()
os.write(1, f"up {{sys.stdin.read()!r}}\\n".encode())  # in one write: two children share the pipe
while True:
    signal.pause()
"""
PARENT = """
import os, signal
from konverge.cli.child_processes import ChildProcess
children = [ChildProcess(name, ()) for name in ("sleeper", "stubborn")]
signal.pause()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules. Modules in the working directory must not be found."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "operator.py").write_text("raise RuntimeError('this is not the standard library')")
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "sleeper.py").write_text(CHILD.format(before=""))
    (tmp_path / "stubborn.py").write_text(CHILD.format(before="signal.signal(signal.SIGTERM, signal.SIG_IGN)"))
    return tmp_path


@contextmanager
def parent_of_two(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in its own session, with two running children."""
    (folder / "parent.py").write_text(textwrap.dedent(PARENT))
    command = [sys.executable, "-P", "-m", "parent"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            assert [process.stdout.readline(), process.stdout.readline()] == ["up ''\n"] * 2
            yield process
        finally:
            for pid in processes_of(process.pid):
                os.kill(pid, signal.SIGKILL)


def test_children_exit_when_their_parent_is_killed_even_if_they_ignore_sigterm(here: Path) -> None:
    with parent_of_two(here) as parent:
        parent.kill()
        parent.wait(LIMIT)
        assert parent.stdout is not None
        assert parent.stdout.read() == "", "the pipe ends when no process holds it any more"


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[ChildProcess] = []
    with (tmp_path / "log").open("wb") as log:
        thread = threading.Thread(target=lambda: started.append(ChildProcess("sleeper", (), output=log)))
        thread.start()
        thread.join()
    (child,) = started
    try:
        assert wait_for_output(tmp_path / "log") == "up ''\n"
        assert child.poll() is None
    finally:
        child.terminate()
        assert child.wait(LIMIT) == -signal.SIGTERM
    assert child.poll() == -signal.SIGTERM


def test_a_child_that_is_slow_to_exit_is_killed(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        child = ChildProcess("stubborn", (), output=log)
    wait_for_output(tmp_path / "log")
    child.terminate()
    assert child.wait(0.05) == -signal.SIGKILL
    assert child.kill() == -signal.SIGKILL


def wait_for_output(path: Path) -> str:
    never = threading.Event()
    for _ in range(int(LIMIT / 0.02)):
        if text := path.read_text():
            return text
        never.wait(0.02)
    raise AssertionError("no output")
