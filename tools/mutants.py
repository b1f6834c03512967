"""Mutation tests: which small changes of a part of konverge its unit tests do not notice.

`make mutants PKG=queue` copies the sources and tests into build/mutants/queue, lets mutmut change each function there
in many ways, one at a time, runs the unit tests of the part that call the function, and prints the score: the share of
changes that a test notices. SAMPLE=200 tries that many changes, drawn at random with a fixed seed, SEED=2 others; what
was noticed already is not tried again, survivors are. They are listed; `make mutants PKG=queue SHOW=name` prints one as
a diff. MINUTES=20 or Ctrl-C stops a run; WORKERS=1 leaves the other processors alone.

A sample is tried in the order of the draw. So the changes that a stopped run tried are a fair sample too, and it prints
their score: mutmut itself would try those with the quickest tests first.

Mutmut has an environment of its own, .venv-mutants: it does not run with the pytest that the other tests use.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "packages" / "konverge"
BUILD = ROOT / "build" / "mutants"

NOT_TRIED, SURVIVED, NO_TESTS = None, 0, 33
STATUSES = {SURVIVED: "survived", 1: "killed", 3: "killed", 5: "no tests", NO_TESTS: "no tests", 34: "skipped"}
"""The exit codes of mutmut; all others are of a run that was too long or crashed, and count as noticed."""

TESTS = {"reconcile": ("reconcile", "controller")}
"""The folders of unit tests that are run for a part, where these are more than its own: finalizers, contexts and the
observers of reconciles are used by controllers, and tested there."""

# Every call of a changed function is two, so tests that count all calls are left out.
CONFIGURATION = '''\
[tool.mutmut]
source_paths = ["src/konverge"]
only_mutate = ["src/konverge/{part}/*"]
pytest_add_cli_args_test_selection = {tests}
timeout_multiplier = 6.0
timeout_constant = 2.0
also_copy = ["conftest.py", "quick_tests_first.py", "support", "pyproject.toml", "src"]

[tool.pytest.ini_options]
pythonpath = ["src", ".", "support"]
addopts = """-q --import-mode=importlib -p no:anyio -p quick_tests_first
    -m 'not faults and not campaigns and not control_plane and not processes'
    -k 'not few_calls'"""
filterwarnings = ["error"]
markers = {markers}
'''

QUICK_TESTS_FIRST = """\
import itertools, json, os, pathlib
from hypothesis import settings

def pytest_collection_modifyitems(items):
    stats = pathlib.Path("mutmut-stats.json")
    durations = json.loads(stats.read_text())["duration_by_test"] if stats.exists() else {}
    items.sort(key=lambda item: durations.get(item.nodeid, 0.0))
    if "__mutmut_" in os.environ.get("MUTANT_UNDER_TEST", ""):
        seconds = itertools.accumulate(durations.get(item.nodeid, 0.0) for item in items)
        items[:] = [item for item, until in zip(items, seconds) if until <= 20] or items[:1]
    for item in items:
        for holder, name in ((item.obj, "_hypothesis_internal_use_settings"), (item.cls, "settings")):
            found = getattr(holder, name, None)
            if isinstance(found, settings) and found.max_examples > 20:
                setattr(holder, name, settings(found, max_examples=20))
"""
"""A plugin of pytest: quick tests run first and the others only if there are few, properties are tried on few examples.

So a score is a lower bound: all tests together may notice more.
"""

MUTMUT_IN_ORDER = """\
import signal, sys
from mutmut import __main__ as mutmut

places = {name: place for place, name in enumerate(sys.argv)}
mutmut.estimated_worst_case_time = lambda name: places.get(name, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
mutmut.cli()
"""
"""Mutmut, but trying changes in the order of its arguments, and stopping by SIGINT also in the background of a shell,
where the signal is ignored otherwise."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", help="a part of konverge with unit tests: queue, cache, reconcile, ...")
    parser.add_argument("--sample", type=_count, default=0, metavar="N", help="try N changes drawn at random, not all")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draws others")
    parser.add_argument("--minutes", type=_count, default=0, metavar="N", help="stop after N minutes of trying")
    parser.add_argument("--workers", type=_count, default=0, metavar="N", help="try N changes at a time")
    parser.add_argument("--show", default="", metavar="NAME", help="print a change as a diff")
    options = parser.parse_args()
    if not options.part.isidentifier() or not (PACKAGE / "tests" / "unit" / options.part).is_dir():
        sys.stderr.write(f"mutants: {options.part!r} is no part of konverge with unit tests\n")
        return 2
    directory = BUILD / options.part
    if options.show:
        if not (directory / "mutants").exists():
            sys.stderr.write(f"mutants: nothing was tried yet: make mutants PKG={options.part}\n")
            return 2
        return _mutmut(directory, "show", options.show)
    _copy_sources(directory, options.part)
    return _try_changes(directory, options)


def _try_changes(directory: Path, options: argparse.Namespace) -> int:
    run = ["run", *(["--max-children", str(options.workers)] if options.workers else [])]
    _mutmut(directory, *run, "none")  # makes the changes, and finds out which tests call which function
    results = _results(directory, options.part)
    names = sorted(results)
    drawn = random.Random(options.seed).sample(names, min(options.sample, len(names))) if options.sample else names
    left = [name for name in drawn if results[name] in (NOT_TRIED, SURVIVED, NO_TESTS)]
    if left and (code := _mutmut(directory, *run, *left, seconds=options.minutes * 60 or None)):
        return code
    results = _results(directory, options.part)
    # Changes after the first that was not tried are left out: earlier runs noticed some of them, but what they did not
    # try is missing, so the rest is no fair sample.
    tried = takewhile(lambda name: results[name] is not NOT_TRIED, drawn)
    _print_results({name: results[name] for name in tried}, len(names))
    return 0


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _copy_sources(directory: Path, part: str) -> None:
    """Copy what may have changed since the last run; mutmut keeps its results, and tries changed functions again."""
    for name in ("src", "tests", "support"):
        shutil.rmtree(directory / name, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE / "src", directory / "src", ignore=ignored)
    shutil.copytree(PACKAGE / "tests", directory / "tests", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "support", directory / "support", ignore=ignored)
    shutil.copy(ROOT / "conftest.py", directory)
    markers = ["control_plane", "faults", "campaigns", "interop", "engines", "wheels", "processes", "peers"]
    (directory / "quick_tests_first.py").write_text(QUICK_TESTS_FIRST)
    (directory / "mutmut_in_order.py").write_text(MUTMUT_IN_ORDER)
    tests = json.dumps([f"tests/unit/{name}" for name in TESTS.get(part, (part,))])
    (directory / "pyproject.toml").write_text(CONFIGURATION.format(part=part, tests=tests, markers=json.dumps(markers)))


def _mutmut(directory: Path, *arguments: str, seconds: float | None = None) -> int:
    """Run mutmut, and stop it after the seconds or by Ctrl-C, which is no failure: it keeps the results until then."""
    environment = os.environ | {"KONVERGE_DERANDOMIZE": "1"}  # the same examples for every change
    command = [sys.executable, "mutmut_in_order.py", *arguments]
    with subprocess.Popen(command, cwd=directory, env=environment) as process:
        try:
            return process.wait(seconds)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            process.send_signal(signal.SIGINT)
            process.wait()
            return 0


def _results(directory: Path, part: str) -> dict[str, int | None]:
    """Return the exit code of each change, by its name."""
    files = (directory / "mutants" / "src" / "konverge" / part).rglob("*.meta")
    return {name: code for file in files for name, code in json.loads(file.read_text())["exit_code_by_key"].items()}


def _print_results(results: dict[str, int | None], possible: int) -> None:
    tried = {name: STATUSES.get(code, "killed") for name, code in results.items() if code is not NOT_TRIED}
    for name in _unnoticed(tried):
        sys.stdout.write(f"{tried[name]}: {name}\n")
    counts = Counter(status for status in tried.values() if status != "skipped")
    total = counts.total()
    score = counts["killed"] / total if total else 0.0
    kinds = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()))
    sys.stdout.write(f"{score:.1%} of {total} changes were noticed ({kinds}; {possible} are possible)\n")


def _unnoticed(tried: dict[str, str]) -> Iterator[str]:
    yield from sorted(name for name, status in tried.items() if status in ("survived", "no tests"))


if __name__ == "__main__":
    sys.exit(main())
