"""What authors write type-checks in strict mode, and mistakes are found: by mypy and by pyright alike.

`project` is an operator as a user writes it. Each file of `mistakes` has one mistake, in the line that says so. Each
checker runs once, on all files and without any configuration of this repository, as in the project of a user.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from konverge.codegen import models_from_crds
from repository import ROOT

HERE = Path(__file__).parent
PROJECT = HERE / "project"
MISTAKES = sorted((HERE / "mistakes").glob("*.py"))
OPERATORS = ROOT / "packages" / "konverge-operators" / "src"
EXAMPLES = ROOT / "examples"
EXAMPLE_SOURCES = sorted(EXAMPLES.glob("*/src"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/README.md")])
CRDS = ROOT / "tests" / "data" / "crds" / "certificates.yaml"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Finding:
    """An error or a warning of a type checker; `file` is relative to the repository."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(origin: Path) -> str:
    return re.sub(r"\W", "_", relative(origin)).lower() + ".py"


def code_of(page: Path) -> str:
    """Return the Python blocks of a page as one module in which every line has the number that it has in the page.

    A block may import again what an earlier one imported, so that readers can begin at any section.
    """
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[start : start + len(code)] = code
    return "\n".join([*lines, "# pyright: reportDuplicateImport=false"])


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), f"{command[0]} failed: {done.stderr or done.stdout}"
    return done.stdout


def run_mypy(folder: Path, sources: list[Path]) -> list[tuple[str, int, str]]:
    files = [str(file) for source in sources for file in ([source] if source.is_file() else source.rglob("*.py"))]
    options = ["--strict", "--config-file=", "--explicit-package-bases", "--output=json"]
    cache_folder = f"--cache-dir={ROOT / '.mypy_cache' / 'type_checkers'}"
    path = {"MYPYPATH": os.pathsep.join(map(str, [folder, PROJECT, OPERATORS, *EXAMPLE_SOURCES]))}
    output = run([str(BIN / "mypy"), *options, cache_folder, *files], folder, path)
    entries = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [
        (str(folder / entry["file"]), entry["line"], entry["message"])
        for entry in entries
        if entry["severity"] == "error"
    ]


def run_pyright(folder: Path, sources: list[Path]) -> list[tuple[str, int, str]]:
    config = folder / "pyrightconfig.json"
    config.write_text(
        json.dumps(
            {
                "typeCheckingMode": "strict",
                "include": [os.path.relpath(source, folder) for source in sources],
                "extraPaths": [str(PROJECT), *map(str, EXAMPLE_SOURCES)],
            }
        )
    )
    command = [str(BIN / "basedpyright"), "--project", str(config), "--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(run(command, folder))
    assert report["summary"]["filesAnalyzed"] >= len(PAGES), report["summary"]
    return [
        (entry["file"], entry["range"]["start"]["line"] + 1, entry["message"])
        for entry in report["generalDiagnostics"]
        if entry["severity"] != "information"
    ]


CHECKERS: dict[str, Callable[[Path, list[Path]], list[tuple[str, int, str]]]] = {
    "mypy": run_mypy,
    "pyright": run_pyright,
}


@cache
def findings(checker: str) -> tuple[Finding, ...]:
    """Return what a checker finds in pages, generated models, operators, examples, the project and the mistakes."""
    code = {page: code_of(page) for page in PAGES} | {CRDS: models_from_crds(CRDS.read_text(), source=CRDS.name)}
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        origins = {folder / module_of(origin): origin for origin in code}
        for module, origin in origins.items():
            module.write_text(code[origin])
        found = CHECKERS[checker](folder, [*origins, OPERATORS, EXAMPLES, PROJECT, *MISTAKES])
    return tuple(Finding(relative(origins.get(Path(file), Path(file))), line, text) for file, line, text in found)


def findings_in(checker: str, path: Path) -> list[Finding]:
    name = relative(path)
    return [finding for finding in findings(checker) if finding.file == name or finding.file.startswith(f"{name}/")]


def marked_lines(file: Path) -> list[int]:
    return [number for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# mistake")]


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("path", [*PAGES, CRDS, OPERATORS, EXAMPLES, PROJECT], ids=relative)
def test_what_authors_read_and_write_has_no_type_errors(checker: str, path: Path) -> None:
    found = findings_in(checker, path)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("file", MISTAKES, ids=lambda file: file.stem)
def test_a_mistake_is_found_in_its_line_and_nowhere_else(checker: str, file: Path) -> None:
    found = findings_in(checker, file)
    assert sorted({finding.line for finding in found}) == marked_lines(file), "\n".join(map(str, found))
    assert len(marked_lines(file)) == 1


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_finding_is_in_a_file_that_was_checked(checker: str) -> None:
    paths = (*PAGES, CRDS, OPERATORS, EXAMPLES, PROJECT, *MISTAKES)
    checked = {finding for path in paths for finding in findings_in(checker, path)}
    assert set(findings(checker)) == checked


def test_code_keeps_the_line_numbers_of_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nfirst = 1\n```\n\ntext\n\n```python\n\nsecond = 2\n```\n")
    assert code_of(page).splitlines()[3] == "first = 1"
    assert code_of(page).splitlines()[10] == "second = 2"
