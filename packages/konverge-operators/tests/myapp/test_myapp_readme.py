"""The README of the MyApp operator, what it imports, and the package as a target of commands."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

import konverge_operators.myapp
from konverge.cli import main
from konverge.cli.targets import load_operator
from konverge.workflow import render_mermaid
from konverge_operators.myapp.operator import workflow


def test_the_drawing_is_current() -> None:
    readme = (Path(konverge_operators.myapp.__file__).parent / "README.md").read_text()
    drawing = readme.partition("<!-- konverge graph konverge_operators.myapp -->\n")[2].partition("<!-- end -->")[0]
    assert drawing.strip() == render_mermaid(workflow).strip(), "run `konverge graph konverge_operators.myapp`"


def test_the_package_is_a_target_with_all_operators() -> None:
    operator = load_operator("konverge_operators")
    assert operator.name == "konverge-operators"
    assert {one.name for one in operator.controllers} >= {"webapp", "database", "cache", "ecommerceapp", "myapp"}
    drawn = CliRunner().invoke(main, ["graph", "konverge_operators", "--kind", "MyApp"])
    assert drawn.output == render_mermaid(workflow)
    assert "add --kind WebApp or" in CliRunner().invoke(main, ["graph", "konverge_operators"]).output


SHARED = {"manifests", "protection"}
"""Modules that belong to no operator."""


def test_nothing_of_the_other_operators_is_imported() -> None:
    folder = Path(konverge_operators.myapp.__file__).parent
    text = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    imported = set(re.findall(r"(?:from|import) konverge_operators\.(\w+)", text))
    assert imported == {"myapp", *SHARED}
