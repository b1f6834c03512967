"""The demo of the Database operator as a process: every step is printed, and no process is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import program
from repository import ROOT

pytestmark = pytest.mark.engines

STEPS = [
    "cluster",
    "operator",
    "ready",
    "wrote",
    "killed",
    "failed over",
    "wrote",
    "healed",
    "backed up",
    "dropped",
    "restored",
    "deleted",
    "ended",
]


def test_the_demo_prints_every_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with program("demo", "database", folder=ROOT, temporary=tmp_path) as demo:
        output = demo.rest()

        assert demo.process.returncode == 0, output
        steps = [line.split(" s  ", 1)[1].partition(":")[0] for line in output.splitlines()[:-1]]
        assert steps == STEPS
        assert output.splitlines()[-1].endswith("nothing is left behind.")
        assert demo.left_behind() == []
