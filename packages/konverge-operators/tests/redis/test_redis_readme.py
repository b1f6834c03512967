"""The README of the Redis operator has the current drawing."""

from __future__ import annotations

from pathlib import Path

import konverge_operators.redis
from konverge.workflow import render_mermaid
from konverge_operators.redis.cache.reconciler import new_workflow


def test_the_drawing_is_current() -> None:
    readme = (Path(konverge_operators.redis.__file__).parent / "README.md").read_text()
    drawing = readme.partition("<!-- konverge graph konverge_operators.redis -->\n")[2].partition("<!-- end -->")[0]
    assert drawing.strip() == render_mermaid(new_workflow()).strip(), "run `konverge graph konverge_operators.redis`"
