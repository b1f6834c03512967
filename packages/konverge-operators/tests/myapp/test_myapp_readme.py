"""The README of the MyApp operator has the current drawing."""

from __future__ import annotations

from pathlib import Path

import konverge_operators.myapp
from konverge.workflow import render_mermaid
from konverge_operators.myapp.operator import workflow


def test_the_drawing_is_current() -> None:
    readme = (Path(konverge_operators.myapp.__file__).parent / "README.md").read_text()
    drawing = readme.partition("<!-- konverge graph konverge_operators.myapp -->\n")[2].partition("<!-- end -->")[0]
    assert drawing.strip() == render_mermaid(workflow).strip(), "run `konverge graph konverge_operators.myapp`"
