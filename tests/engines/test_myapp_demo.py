"""The demo of the MyApp operator as a process: every step is printed, and nothing is left, also after Ctrl-C."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from programs import program
from repository import ROOT

pytestmark = pytest.mark.engines

STEPS = ["cluster", "operators", "ready", "wrote", "read", "rotated", "deleted", "taken over", "ended"]


def test_the_demo_prints_every_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with program("demo", "myapp", folder=ROOT, temporary=tmp_path) as demo:
        output = demo.rest()

        assert demo.process.returncode == 0, output
        steps = [line.split(" s  ", 1)[1].partition(":")[0] for line in output.splitlines()[:-1]]
        assert steps == STEPS
        assert output.splitlines()[-1].endswith("nothing is left behind.")
        assert demo.left_behind() == []


def test_a_demo_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    with program("demo", "myapp", folder=ROOT, temporary=tmp_path) as demo:
        demo.read_until("ready:")
        output = demo.end(signal.SIGINT)
        assert demo.process.returncode == 130, output
        assert "interrupted; nothing is left behind" in output
        assert demo.left_behind() == []
