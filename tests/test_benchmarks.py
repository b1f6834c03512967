"""The benchmarks run, and the page about them is made: small, without peers, and no time is judged."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "bench"
RUNS = {
    "transport": ("bench_transport.py", "--rounds", "1", "--gets", "20"),
    "client": ("bench_client.py", "--rounds", "1", "--contenders", "konverge"),
    "controller": ("bench_controller.py", "--rounds", "1", "--contenders", "konverge", "--count", "20", "--no-steady"),
    "scale": ("bench_scale.py", "--sizes", "200", "400", "--seconds", "1"),
}


@pytest.mark.control_plane
def test_every_benchmark_runs_and_the_page_shows_it(tmp_path: Path) -> None:
    results = tmp_path / "results"
    environment = os.environ | {"KONVERGE_BENCH_RESULTS": str(results), "KONVERGE_BENCH_SHARE": "0.01"}
    results.mkdir()
    for name, command in RUNS.items():
        more = ("--metrics", str(tmp_path / "metrics.jsonl")) if name == "controller" else ()
        run([*command, *more], environment)
        assert json.loads((results / f"{name}.json").read_text())["name"] == name
    run(["report.py", str(tmp_path / "docs")], environment)
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert all(f"## {name}" in page for name in RUNS)
    charts = re.findall(r"!\[.*\]\((.*)\)", page)
    assert charts
    assert all((tmp_path / "docs" / one).exists() for one in charts)


@pytest.mark.control_plane
def test_a_profile_names_the_parts_of_an_operator(tmp_path: Path) -> None:
    run(["profile_operator.py", "--shops", "5"], os.environ | {"KONVERGE_BENCH_RESULTS": str(tmp_path)})

    rows = (tmp_path / "profile.md").read_text().splitlines()
    assert all(any(row.startswith(f"| {part} |") for row in rows) for part in ("konverge.reconcile", "asyncio", "all"))


def run(command: list[str], environment: dict[str, str]) -> None:
    program = [sys.executable, str(BENCH / command[0]), *command[1:]]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
