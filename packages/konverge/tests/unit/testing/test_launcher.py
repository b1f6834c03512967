"""The life cycle of a control plane, with fakes of its programs: start, restart, stop, crash, failures."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane
from konverge.testing.servers import free_port

Write = Callable[[Path, str], Path]
IsGone = Callable[[int], bool]

# A test run of its own: starts a control plane, says where it is, and waits for its end.
RUN = """
import json, signal, sys
from pathlib import Path
from konverge.testing import ControlPlane

with ControlPlane(binaries=Path(sys.argv[1])) as plane:
    print(json.dumps({"directory": str(plane.directory), **plane.pids}), flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def _own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a temporary directory of its own, to find the files that a control plane leaves behind."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


@pytest.fixture
def left_behind(tmp_path: Path) -> Callable[[], list[Path]]:
    return lambda: list((tmp_path / "tmp").iterdir())


LeftBehind = Callable[[], list[Path]]


def test_it_starts_and_after_with_no_process_and_no_file_is_left(
    programs: Path, is_gone: IsGone, left_behind: LeftBehind
) -> None:
    with ControlPlane(binaries=programs, controller_manager=True) as plane:
        pids = plane.pids
        assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager"}
        assert plane.request("GET", "/readyz").status == 200
        assert plane.directory in left_behind()

    assert all(is_gone(pid) for pid in pids.values())
    assert left_behind() == []


def test_the_admin_kubeconfig_is_complete_in_itself(programs: Path) -> None:
    with ControlPlane(binaries=programs) as plane:
        config = yaml.safe_load(plane.kubeconfig.read_text())

        assert config["clusters"][0]["cluster"]["server"] == plane.url
        assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_kubectl_gets_the_kubeconfig_the_arguments_and_the_input(programs: Path) -> None:
    with ControlPlane(binaries=programs) as plane:
        alice = plane.kubeconfig_for("alice")

        assert (
            plane.kubectl("apply", "-f-", input="a: 1\n")
            == f"kubectl --kubeconfig {plane.kubeconfig} apply -f-\na: 1\n"
        )
        assert plane.kubectl("version", kubeconfig=alice) == f"kubectl --kubeconfig {alice} version\n"


def test_a_failing_kubectl_is_an_error_with_its_words(programs: Path, write: Write) -> None:
    write(programs / "kubectl", "#!/bin/sh\necho no such thing >&2\nexit 1\n")

    with (
        ControlPlane(binaries=programs) as plane,
        pytest.raises(ControlPlaneError, match=r"^kubectl get widgets: no such thing$"),
    ):
        plane.kubectl("get", "widgets")


def test_the_api_server_comes_back_on_its_port_and_etcd_stays(programs: Path, is_gone: IsGone) -> None:
    with ControlPlane(binaries=programs) as plane:
        url, before = plane.url, plane.pids
        plane.stop_apiserver()
        assert is_gone(before["kube-apiserver"])
        assert plane.pids == {"etcd": before["etcd"]}
        plane.start_apiserver()

        assert plane.url == url
        assert plane.request("GET", "/readyz").status == 200
        assert plane.pids["etcd"] == before["etcd"]


def test_flags_follow_the_options(programs: Path) -> None:
    def started_with(plane: ControlPlane) -> list[str]:
        return (plane.directory / "kube-apiserver.log").read_text().split()

    with ControlPlane(binaries=programs, extra_flags=["--feature-gates=CBOR=true"]) as plane:
        assert "--disable-admission-plugins=ServiceAccount" in started_with(plane)
        assert started_with(plane)[-1] == "--feature-gates=CBOR=true"
        with pytest.raises(ControlPlaneError, match=r"ControlPlane\(audit=True\)"):
            _ = plane.audit_log
    with ControlPlane(binaries=programs, controller_manager=True, audit=True) as plane:
        assert "--disable-admission-plugins=ServiceAccount" not in started_with(plane)
        assert f"--audit-log-path={plane.audit_log}" in started_with(plane)


def test_a_missing_program_is_named_before_anything_starts(programs: Path, left_behind: LeftBehind) -> None:
    (programs / "kube-controller-manager").unlink()
    (programs / "etcd").unlink()

    with pytest.raises(ControlPlaneError, match=r"has no etcd \(`make control-plane`"):
        ControlPlane(binaries=programs).start()
    with pytest.raises(ControlPlaneError, match=r"has no etcd, kube-controller-manager \(`make control-plane`"):
        ControlPlane(binaries=programs, controller_manager=True).start()

    assert left_behind() == []


@pytest.mark.parametrize("dying", ["etcd", "kube-apiserver", "kube-controller-manager"])
def test_a_server_that_dies_during_start_takes_the_others_with_it(
    programs: Path, write: Write, left_behind: LeftBehind, dying: str
) -> None:
    write(programs / dying, "#!/bin/sh\necho unknown flag: --colour\nexit 1\n")

    with pytest.raises(ControlPlaneError) as caught:
        ControlPlane(binaries=programs, controller_manager=True).start()

    output = f"start {dying}: it exited with code 1; the end of its log:\nunknown flag: --colour"
    assert str(caught.value) == output
    assert left_behind() == []


def test_a_fixed_port_is_used(programs: Path) -> None:
    port = free_port()

    with ControlPlane(binaries=programs, port=port) as plane:
        assert plane.url == f"https://127.0.0.1:{port}"


def test_a_fixed_port_in_use_is_one_clear_error(programs: Path, left_behind: LeftBehind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        with pytest.raises(ControlPlaneError, match=f"start kube-apiserver: port {port} is in use"):
            ControlPlane(binaries=programs, port=port).start()

    assert left_behind() == []


def test_a_control_plane_that_does_not_run_says_how_to_use_it(programs: Path) -> None:
    plane = ControlPlane(binaries=programs)

    plane.stop()
    for use in (lambda: plane.url, plane.stop_apiserver, plane.start_apiserver, plane.compact, plane.kubectl):
        with pytest.raises(ControlPlaneError, match="with ControlPlane"):
            use()


def test_a_running_control_plane_is_not_started_twice_but_a_stopped_one_starts_again(programs: Path) -> None:
    plane = ControlPlane(binaries=programs)
    with plane, pytest.raises(ControlPlaneError, match="already running"):
        plane.start()
    with plane:
        assert plane.request("GET", "/readyz").status == 200


@pytest.fixture
def run(programs: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a separate test run in its own process group, as a shell would."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(programs)], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_however_the_run_ends_nothing_outlives_it(
    run: subprocess.Popen[str], is_gone: IsGone, number: signal.Signals
) -> None:
    assert run.stdout is not None
    output = json.loads(run.stdout.readline())
    directory = Path(output.pop("directory"))
    cleanup_process = next(pid for pid in children_of(run.pid) if pid not in output.values())

    # To the whole group, as a terminal does it on Ctrl-C: servers and cleanup_process must not be in it.
    os.killpg(run.pid, number)

    assert all(is_gone(pid) for pid in [run.pid, *output.values(), cleanup_process])
    assert not directory.exists()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
