from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import yaml
from click import Context
from click.testing import CliRunner

from konverge.cli import main
from konverge.cli.commands import GROUP, load, missing


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def test_every_command_has_a_help_text_with_an_example(runner: CliRunner) -> None:
    result = runner.invoke(main, ["--help"])
    assert result.exit_code == 0
    names = main.list_commands(Context(main))
    assert {
        "cluster",
        "crd",
        "demo",
        "dev",
        "fault",
        "graph",
        "manifests",
        "models",
        "new",
        "nodes",
        "run",
        "sample",
        "why",
    } == set(names)
    for name in names:
        assert name in result.output
        printed = runner.invoke(main, [name, "--help"])
        assert printed.exit_code == 0
        assert f"Example: konverge {name}" in printed.output


@pytest.mark.parametrize(
    ("name", "requirement"),
    [("cluster", "konverge[cluster]"), ("dev", "konverge[cluster]"), ("demo", "konverge-operators[cluster]")],
)
def test_a_command_of_a_missing_package_names_what_to_install(name: str, requirement: str) -> None:
    assert missing(name) == f"'konverge {name}' is not installed: pip install '{requirement}'"


@pytest.mark.parametrize(
    ("value", "error"),
    [("no.such.module:command", "No module named 'no'"), ("math:pi", "3.14159"), ("konverge.cli:nothing", "nothing")],
)
def test_a_contributed_command_that_cannot_be_imported_fails_only_when_it_is_run(
    runner: CliRunner, value: str, error: str
) -> None:
    command = load(EntryPoint("broken", value, GROUP))
    assert runner.invoke(command, ["--help"]).exit_code == 0
    result = runner.invoke(command, [])
    assert result.exit_code == 1
    assert "the command 'broken' cannot be imported" in result.output
    assert error in result.output


def test_an_unknown_command_is_one_clear_error(runner: CliRunner) -> None:
    result = runner.invoke(main, ["smaple"])
    assert result.exit_code == 2
    assert "No such command 'smaple'" in result.output


def test_without_arguments_the_module_prints_the_sample_crd() -> None:
    done = subprocess.run([sys.executable, "-m", "konverge"], capture_output=True, text=True, check=True)
    crd = yaml.safe_load(done.stdout)
    assert (crd["kind"], crd["metadata"]["name"]) == ("CustomResourceDefinition", "webapps.example.com")


def test_importing_konverge_loads_neither_the_http_library_nor_the_kinds() -> None:
    code = (
        "import sys, konverge; print(*(m for m in ('aiohttp', 'konverge.k8s.core.v1', 'msgspec') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_command_line_starts_without_what_only_some_commands_need() -> None:
    heavy = ("aiohttp", "yaml", "konverge.manager", "konverge.schema", "konverge.client")
    code = f"import sys, konverge.cli; print(*(m for m in {heavy} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
