"""The drawing in the README is that of the workflow, and its table has every field of the spec."""

from __future__ import annotations

from pathlib import Path

import konverge_operators.webapp
from konverge.schema import root_schema
from konverge.workflow import render_mermaid
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.reconciler import workflow

README = (Path(konverge_operators.webapp.__file__).parent / "README.md").read_text()


def test_the_drawing_is_current() -> None:
    drawing = README.partition("<!-- konverge graph konverge_operators.webapp -->\n")[2].partition("<!-- end -->")[0]
    assert drawing.strip() == render_mermaid(workflow).strip(), "run `konverge graph konverge_operators.webapp`"


def test_every_field_of_the_spec_is_described() -> None:
    fields = root_schema(WebApp)["properties"]["spec"]["properties"]
    missing = [name for name in fields if f"`{name}" not in README]
    assert missing == []
