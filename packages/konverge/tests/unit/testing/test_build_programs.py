"""The build of the programs, with a fake go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing.binaries import PROGRAMS, cache_directory, kubernetes_version
from konverge.testing.build import build

Write = Callable[[Path, str], Path]
IsGone = Callable[[int], bool]

# Notes each call, prints what go prints, and "builds" a script under the name after -o. Files beside it tell it to
# wait (gate) or to fail (broken).
GO = """\
#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
[ "$1" = list ] && { [ -p "$here/gate" ] && read -r word < "$here/gate"; echo k8s.io/api; exit 0; }
echo "go: downloading k8s.io/api v0.36.0"
for last; do :; done
echo "$last"
if [ -f "$here/broken" ] && [ "$last" = "$(cat "$here/broken")" ]; then echo "main.go:1: does not compile"; exit 1; fi
while [ "$1" != -o ]; do shift; done
echo '#!/bin/sh' > "$2"; chmod +x "$2"
"""


@pytest.fixture
def go(tmp_path: Path, write: Write) -> Path:
    """The directory of the fake go."""
    return write(tmp_path / "bin" / "go", GO).parent


@pytest.fixture
def environ(go: Path, tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{go}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def calls(go: Path) -> list[str]:
    return (go / "calls").read_text().splitlines() if (go / "calls").exists() else []


def test_every_program_is_built_and_the_last_line_says_where(go: Path, environ: dict[str, str], tmp_path: Path) -> None:
    output: list[str] = []
    directory = tmp_path / "cache"

    build(directory, report=output.append, environ=environ)

    assert {path.name for path in directory.iterdir()} == {*PROGRAMS, ".lock"}
    assert output[-1] == f"control plane {kubernetes_version()} is in {directory}"
    assert [line.partition(":")[0] for line in output[1:-1]] == [
        f"{name} ({number} of {len(PROGRAMS)})" for number, name in enumerate(PROGRAMS, start=1)
    ]
    assert f"-X k8s.io/component-base/version.gitVersion={kubernetes_version()}" in calls(go)[1]


def test_what_is_built_is_not_built_again(go: Path, environ: dict[str, str], tmp_path: Path) -> None:
    build(tmp_path / "cache", report=str, environ=environ)
    (go / "calls").unlink()
    output: list[str] = []

    build(tmp_path / "cache", report=output.append, environ={"PATH": ""})

    assert output == [f"control plane {kubernetes_version()} is in {tmp_path / 'cache'}"]
    assert calls(go) == []


def test_without_go_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        ControlPlaneError, match=r"no `go` on the PATH \(install Go 1.26 or newer, or .*KUBEBUILDER_ASSETS"
    ):
        build(tmp_path / "cache", report=str, environ={"PATH": str(tmp_path)})

    assert not (tmp_path / "cache").exists()


def test_a_failed_build_shows_the_end_of_its_log_and_goes_on_there_next_time(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    directory = tmp_path / "cache"
    (go / "broken").write_text(PROGRAMS["kubectl"])

    with pytest.raises(ControlPlaneError, match=r"build kubectl: go failed; the end of .*:\n[\s\S]*does not compile$"):
        build(directory, report=str, environ=environ)
    assert {path.name for path in directory.iterdir()} == {"etcd", "kube-apiserver", "build.log", ".lock"}
    (go / "broken").unlink()
    (go / "calls").unlink()
    build(directory, report=str, environ=environ)

    assert {path.name for path in directory.iterdir()} == {*PROGRAMS, ".lock"}
    assert [call.split()[-1] for call in calls(go)[1:]] == list(PROGRAMS.values())[2:]


def test_a_second_build_waits_for_the_first_and_builds_nothing(
    go: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    os.mkfifo(go / "gate")
    begun, waiting = threading.Event(), threading.Event()
    output: list[str] = []

    def first(_line: str) -> None:
        begun.set()

    def second(line: str) -> None:
        output.append(line)
        waiting.set()

    builds = [
        threading.Thread(target=build, args=[tmp_path / "cache"], kwargs={"report": report, "environ": environ})
        for report in (first, second)
    ]
    builds[0].start()
    assert begun.wait(10)
    builds[1].start()
    assert waiting.wait(10)
    (go / "gate").write_text("go on\n")
    for thread in builds:
        thread.join()

    assert output == [
        "another build is running: waiting for it",
        f"control plane {kubernetes_version()} is in {tmp_path / 'cache'}",
    ]
    assert len(calls(go)) == 1 + len(PROGRAMS)


def start_main(environ: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "konverge.testing.build"]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_command_fills_the_users_cache(environ: dict[str, str]) -> None:
    with start_main(environ) as process:
        out, err = process.communicate()

    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] == f"control plane {kubernetes_version()} is in {cache_directory(environ)}"
    assert (cache_directory(environ) / "kubectl").exists()


def test_the_command_fails_with_the_error_alone(go: Path, environ: dict[str, str]) -> None:
    (go / "broken").write_text(PROGRAMS["etcd"])

    with start_main(environ) as process:
        _, err = process.communicate()

    assert process.returncode == 1
    assert err.startswith("build etcd: go failed")
    assert "Traceback" not in err


def test_ctrl_c_ends_the_compiler_and_leaves_nothing_unfinished(
    go: Path, write: Write, environ: dict[str, str], is_gone: IsGone
) -> None:
    os.mkfifo(go / "pids")
    write(go / "go", '#!/bin/sh\n[ "$1" = list ] && exit 0\nsleep 60 &\necho $! > "$(dirname "$0")/pids"\nwait\n')

    with start_main(environ) as process:
        compiler = int((go / "pids").read_text())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()

    assert (process.returncode, err) == (130, "interrupted; finished programs stay\n")
    assert is_gone(compiler)
    assert {path.name for path in cache_directory(environ).iterdir()} == {"build.log", ".lock"}
