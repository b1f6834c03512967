"""The drawing in the README is that of the workflow."""

from __future__ import annotations

from pathlib import Path

import konverge_operators.ecommerce
from konverge.workflow import render_mermaid
from konverge_operators.ecommerce.operator import workflow


def test_the_drawing_is_current() -> None:
    readme = (Path(konverge_operators.ecommerce.__file__).parent / "README.md").read_text()
    drawing = readme.partition("<!-- konverge graph konverge_operators.ecommerce -->\n")[2].partition("<!-- end -->")[0]
    assert drawing.strip() == render_mermaid(workflow).strip(), "run `konverge graph konverge_operators.ecommerce`"
