"""The documentation is true: its examples run, every function in them is called, links and commands lead somewhere."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from doc_calls import CALLS
from doc_examples import Examples
from konverge.testing import ControlPlane
from repository import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/README.md")])
ON_A_CONTROL_PLANE = {"test_it_is_stored", "test_a_reset_watch_is_opened_again"}
"""Examples of docs/testing.md that need a real control plane; they have a test of their own."""


def relative(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_the_examples_of_a_page_run_and_every_function_is_called(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = Examples(page)
    examples.run()
    if relative(page) in CALLS:
        CALLS[relative(page)](examples.namespace)
    unused = [name for name in examples.not_called() if name not in ON_A_CONTROL_PLANE]
    assert not unused, f"{page.name} defines functions that nothing calls: {', '.join(unused)}"


def test_examples_on_a_control_plane_run(control_plane: ControlPlane, namespace: str) -> None:
    examples = Examples(ROOT / "docs" / "testing.md")
    examples.run()
    asyncio.run(examples.namespace["test_it_is_stored"](control_plane, namespace))
    asyncio.run(examples.namespace["test_a_reset_watch_is_opened_again"](control_plane))
    assert not set(examples.not_called()) & ON_A_CONTROL_PLANE


def test_a_function_that_nothing_calls_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\ndef called(): ...\n\n\ndef forgotten(): ...\n\n\ncalled()\n```\n")
    examples = Examples(page)
    examples.run()
    assert examples.not_called() == ["forgotten"]


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{relative(page)}: {link}"
        for page in {*PAGES, *ROOT.glob("*.md"), *(ROOT / "designs").glob("*.md")}
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert not broken, "\n".join(broken)
