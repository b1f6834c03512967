"""Build the programs of the real control plane from Go modules, once: ``python -m konverge.testing.build``.

Rules:

1. A program appears in the directory under its name only when it is complete: it is built under another name and
   renamed.
2. One build at a time runs for a directory. A second one waits for the first and finds everything built.
3. Finished programs stay: after a failure or an interrupt the next build continues with the first missing program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from konverge.errors import ControlPlaneError
from konverge.testing.binaries import MODULE, PROGRAMS, cache_directory, kubernetes_version, missing_from

__all__ = ["build"]

PROGRESS_INTERVAL = 10.0
TAIL_LINES = 20
# As in Kubernetes' own release build: no test hooks, and no tracer, which would disable dead code elimination.
TAGS = "notest,grpcnotrace"

Report = Callable[[str], object]


def build(directory: Path, *, report: Report, environ: Mapping[str, str] | None = None) -> None:
    """Build the programs that are missing from `directory`; call `report` with each line of progress.

    Raises:
        ControlPlaneError: Go is missing or failed; the message ends with the end of its log.
    """
    if missing_from(directory, PROGRAMS):
        go_build = _GoBuild(directory, report, os.environ if environ is None else environ)
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(directory / ".lock", report):
            go_build.build_all(missing_from(directory, PROGRAMS))
    report(f"control plane {kubernetes_version()} is in {directory}")


class _GoBuild:
    """One run of the build: the Go program, the directory, the progress."""

    def __init__(self, directory: Path, report: Report, environ: Mapping[str, str]) -> None:
        go = shutil.which("go", path=environ.get("PATH", ""))
        if go is None:
            programs = ", ".join(PROGRAMS)
            raise ControlPlaneError(
                "build control plane: there is no `go` on the PATH (install Go 1.26 or newer, or let"
                f" KUBEBUILDER_ASSETS name a directory that holds {programs})"
            )
        self._go = go
        self._directory = directory
        self._log = directory / "build.log"
        self._report = report
        # A workspace around the current directory would replace the pinned module.
        self._environ = {**environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        self._started = time.monotonic()

    def build_all(self, names: Sequence[str]) -> None:
        """Build the named programs, one after the other."""
        if not names:
            return
        self._report(
            f"building {', '.join(names)} {kubernetes_version()} once from source, about five minutes on two cores"
        )
        total = len(self._packages([PROGRAMS[name] for name in names]))
        compiled = 0
        for number, name in enumerate(names, start=1):
            step = f"{name} ({number} of {len(names)})"
            compiled += len(self._build_one(name, step=step, compiled=compiled, total=total))
            self._report(f"{step}: done, {self._seconds()}")
        self._log.unlink(missing_ok=True)

    def _packages(self, programs: Sequence[str]) -> list[str]:
        command = ["list", "-mod=readonly", "-deps", f"-tags={TAGS}", *programs]
        lines = self._run(
            command, task="fetch modules", progress=lambda lines: f"fetching modules: {len(lines)} so far"
        )
        return _packages_in(lines)

    def _build_one(self, name: str, *, step: str, compiled: int, total: int) -> list[str]:
        unfinished = self._directory / f".{name}.unfinished"
        command = ["build", "-mod=readonly", "-v", "-trimpath", f"-tags={TAGS}", f"-ldflags={_linker_flags()}"]

        def progress(lines: list[str]) -> str:
            return f"{step}: {compiled + len(_packages_in(lines))} of at most {total} packages compiled"

        try:
            lines = self._run(
                [*command, "-o", str(unfinished), PROGRAMS[name]], task=f"build {name}", progress=progress
            )
            unfinished.replace(self._directory / name)
            return _packages_in(lines)
        finally:
            unfinished.unlink(missing_ok=True)

    def _run(self, command: Sequence[str], *, task: str, progress: Callable[[list[str]], str]) -> list[str]:
        """Run go, report the progress, and return the lines that it printed."""
        with self._log.open("wb") as log:
            # In its own process group: on Ctrl-C it is killed below, together with its compilers.
            go = subprocess.Popen(
                [self._go, *command],
                cwd=MODULE,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            while not _ends_within(go, PROGRESS_INTERVAL):
                self._report(f"{progress(self._lines())}, {self._seconds()}")
        except BaseException:
            _kill_group(go)
            raise
        if go.returncode:
            tail = "\n".join(self._lines()[-TAIL_LINES:])
            raise ControlPlaneError(f"{task}: go failed; the end of {self._log}:\n{tail}")
        return self._lines()

    def _lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._started:.0f} s"


@contextlib.contextmanager
def _locked(lock: Path, report: Report) -> Iterator[None]:
    """Hold the lock while the block runs; the kernel releases it if this process dies."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another build is running: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _linker_flags() -> str:
    """Return linker flags that omit debug tables and set the version for `/version` and `kubectl version`."""
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean", "gitCommit": ""}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    variables = (f"-X {package}.{name}={value}" for package in packages for name, value in facts.items())
    return " ".join(["-s", "-w", *variables])


def _packages_in(lines: Sequence[str]) -> list[str]:
    # Every other line of go contains spaces: "go: downloading k8s.io/api v0.36.4".
    return [line for line in lines if line and " " not in line]


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> int:
    """Build into the user's cache directory, with progress on standard output."""
    try:
        build(cache_directory(), report=click.echo)
    except ControlPlaneError as failure:
        click.echo(failure, err=True)
        return 1
    except KeyboardInterrupt:
        click.echo("interrupted; finished programs stay", err=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
