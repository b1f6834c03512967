"""Build the programs of the real control plane from Go modules, once: ``python -m konverge.testing.build``.

Rules:

1. A program appears in the directory under its name only when it is complete: it is built under another name and
   renamed.
2. One build at a time fills a directory. A second one waits for the first and finds its work done.
3. What was built stays: a build that failed or was stopped goes on with the program it had come to.
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
# As Kubernetes' own release build: neither hooks for its tests nor a tracer that keeps the linker from dropping code.
TAGS = "notest,grpcnotrace"

Say = Callable[[str], object]


def build(directory: Path, *, say: Say, environ: Mapping[str, str] | None = None) -> None:
    """Build into `directory` whatever it lacks, telling `say` how far it is, a line at a time.

    Raises:
        ControlPlaneError: there is no Go, or it failed; the message ends with the end of its log.
    """
    if missing_from(directory, PROGRAMS):
        workshop = _Workshop(directory, say, os.environ if environ is None else environ)
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory / ".lock", say):
            workshop.build_all(missing_from(directory, PROGRAMS))
    say(f"control plane {kubernetes_version()} is in {directory}")


class _Workshop:
    """One run of the build: which Go, for which directory, how far it is."""

    def __init__(self, directory: Path, say: Say, environ: Mapping[str, str]) -> None:
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
        self._say = say
        # A workspace around the current directory would take the place of the pinned module.
        self._environ = {**environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        self._began = time.monotonic()

    def build_all(self, names: Sequence[str]) -> None:
        """Build the named programs, one after the other."""
        if not names:
            return
        self._say(
            f"building {', '.join(names)} {kubernetes_version()} once from source, about five minutes on two cores"
        )
        total = len(self._packages([PROGRAMS[name] for name in names]))
        compiled = 0
        for number, name in enumerate(names, start=1):
            step = f"{name} ({number} of {len(names)})"
            compiled += len(self._build_one(name, step=step, compiled=compiled, total=total))
            self._say(f"{step}: done, {self._seconds()}")
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
        """Run go, say the progress now and then, and return the lines that it printed."""
        with self._log.open("wb") as log:
            # In a group of its own: a Ctrl-C ends it from here, with the compilers that it started.
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
                self._say(f"{progress(self._lines())}, {self._seconds()}")
        except BaseException:
            _end_group(go)
            raise
        if go.returncode:
            tail = "\n".join(self._lines()[-TAIL_LINES:])
            raise ControlPlaneError(f"{task}: go failed; the end of {self._log}:\n{tail}")
        return self._lines()

    def _lines(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.0f} s"


@contextlib.contextmanager
def _alone(lock: Path, say: Say) -> Iterator[None]:
    """Hold the lock for the time of the block; the kernel drops it if this process dies."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _linker_flags() -> str:
    """Leave debug tables out, and write the version where `/version` and `kubectl version` read it."""
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean", "gitCommit": ""}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    written = (f"-X {package}.{name}={value}" for package in packages for name, value in facts.items())
    return " ".join(["-s", "-w", *written])


def _packages_in(lines: Sequence[str]) -> list[str]:
    # Everything else that go prints is a sentence: "go: downloading k8s.io/api v0.36.4".
    return [line for line in lines if line and " " not in line]


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> int:
    """Build into the user's cache directory, with progress on standard output."""
    try:
        build(cache_directory(), say=click.echo)
    except ControlPlaneError as failure:
        click.echo(failure, err=True)
        return 1
    except KeyboardInterrupt:
        click.echo("stopped; what is built so far stays", err=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
