"""Every Python block of the documentation runs: what the pages show is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run_one_after_the_other(page: Path) -> None:
    name = f"examples of {page.name}"
    namespace: dict[str, object] = {"__name__": "examples"}
    for number, block in enumerate(BLOCK.findall(page.read_text())):
        exec(compile(block, f"{name}, block {number}", "exec", dont_inherit=True), namespace)


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in [*PAGES, *ROOT.glob("*.md"), *(ROOT / "designs").glob("*.md")]
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert not broken, "\n".join(broken)
