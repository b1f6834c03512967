"""kubectl, pointed at a server: what it printed and how it ended, with what may differ masked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from konverge.testing import find_binaries

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}"), "<time>"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r'(resourceVersion"?: ["\']?)\d+'), r"\1<version>"),
    (re.compile(r"(Resource Version:\s+)\d+"), r"\1<version>"),
    (re.compile(r"(?<![\w.-])(\d+m)?\d+s(?![\w.-])"), "<age>"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"^[IWE]\d{4} [\d:.]+\s+\d+ ", re.MULTILINE), "<log> "),
    (re.compile(r"kubectl-edit-\d+"), "kubectl-edit-<number>"),
    (re.compile(r"(/tmp|/var)/[^\s:\"]*/"), "<directory>/"),
)


def masked(text: str) -> str:
    """The same text without uids, times, versions, ages and addresses; columns are one space apart."""
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return "\n".join(re.sub(r"(?<=\S)\s{2,}", "  ", line.rstrip()) for line in text.splitlines())


def _ordered(text: str) -> str:
    """An object in YAML with its managed fields sorted: their order depends on the second of each write."""
    document = yaml.safe_load(text)
    document["metadata"]["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True, default=str))
    for entry in document["metadata"]["managedFields"]:
        entry.pop("time", None)
    ordered: str = yaml.safe_dump(document)
    return ordered


@dataclass(frozen=True)
class Run:
    """One run of kubectl."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl with one kubeconfig, apart from whatever the user of this machine has set up.

    `program` is another program that has the option `--kubeconfig`, such as Helm.
    """

    def __init__(self, kubeconfig: Path, directory: Path, program: Path | None = None) -> None:
        self._program = program or find_binaries() / "kubectl"
        self._kubeconfig = kubeconfig
        self._directory = directory
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(directory),
            "KUBECACHEDIR": str(directory / "cache"),
            "KUBERC": "off",
            "KUBECTL_EXTERNAL_DIFF": "diff -u",
        }

    def run(
        self,
        arguments: list[str],
        *,
        text: str = "",
        environment: Mapping[str, str] | None = None,
        limit: float = 20,
    ) -> Run:
        """Run kubectl to its end, which must come within `limit` seconds; `text` is what it reads."""
        done = subprocess.run(
            [self._program, "--kubeconfig", self._kubeconfig, *arguments],
            input=text,
            capture_output=True,
            text=True,
            cwd=self._directory,
            env={**self._environment, **(environment or {})},
            check=False,
            timeout=limit,
        )
        out = _ordered(done.stdout) if "--show-managed-fields" in arguments and not done.returncode else done.stdout
        return Run(done.returncode, masked(out), masked(done.stderr))

    def start(self, arguments: Iterable[str]) -> Running:
        """Start kubectl and leave it running."""
        process = subprocess.Popen(
            [self._program, "--kubeconfig", self._kubeconfig, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._directory,
            env=self._environment,
        )
        return Running(process)


class Running:
    """A kubectl that goes on until it is stopped."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def lines(self, count: int) -> list[str]:
        """Wait for so many lines; fewer come when kubectl ends, or is stopped because they take too long."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(20, self._process.kill)
        watchdog.start()
        try:
            return [masked(self._process.stdout.readline()) for _ in range(count)]
        finally:
            watchdog.cancel()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=10)
