"""`konverge new`: a project that passes its own tests, mypy and pyright at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from konverge.cli import main
from programs import program


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["new", *arguments])


def check(*command: str, folder: Path) -> None:
    result = subprocess.run([sys.executable, "-m", *command], cwd=folder, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    "arguments", [("shop-operator", "--kind", "ShopPolicy", "--group", "shop.example.org"), ("queue-watch",)]
)
def test_a_new_project_passes_its_own_tests_and_type_checks(arguments: tuple[str, ...], here: Path) -> None:
    result = new(*arguments)
    assert result.exit_code == 0, result.output

    folder = here / arguments[0]
    check("pytest", "-q", "-p", "no:cacheprovider", folder=folder)
    check("mypy", folder=folder)
    check("basedpyright", "--pythonpath", sys.executable, folder=folder)
    for command in (("check", "."), ("format", "--check", ".")):
        check("ruff", *command, "--isolated", "--line-length", "120", folder=folder)


def test_konverge_dev_runs_a_new_project_with_its_sample(here: Path) -> None:
    assert new("shop-operator").exit_code == 0
    with program("dev", "shop_operator", folder=here / "shop-operator", temporary=here / "scratch") as dev:
        dev.read_until("Shop default/sample: Ready")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Shop",), "is not a project name: write lower-case letters, digits and '-'"),
        (("9shop",), "is not a project name"),
        (("class",), "is not a project name"),
        (("operator",), "is the name of another module: choose another"),
        (("shop", "--kind", "shop"), "is not a kind: write it in CamelCase, such as WebApp"),
        (("shop", "--group", "shop"), "is not an API group: write a domain, such as example.com"),
        (("taken",), "already exists and is not an empty folder"),
    ],
)
def test_invalid_arguments_are_refused_and_nothing_is_written(arguments: tuple[str, ...], message: str) -> None:
    Path("taken").mkdir()
    Path("taken", "file").write_text("mine")
    result = new(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert [path.name for path in Path.cwd().iterdir()] == ["taken"]
