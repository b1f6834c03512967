"""ARCHITECTURE.md is a map: every path on it exists, and every part of the packages is on it."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from repository import ROOT

MODULES = ROOT / "docs" / "reference" / "modules.txt"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
ROOTS = (ROOT, *ROOT.glob("packages/*/src"), *ROOT.glob("packages/*/src/*"))
NAMED = re.compile(r"`([\w./*-]+(?:/|\.py|\.md|\.txt|\.toml|\.in))`")


def exists(path: str) -> bool:
    """Report whether a path leads somewhere, from the root of the repository or from that of a package."""
    return any(list(root.glob(path.rstrip("/"))) for root in ROOTS)


def paths(text: str) -> list[str]:
    """Return the paths that a page names: in backquotes, with a slash at the end or a file name."""
    return NAMED.findall(text)


def parts() -> list[str]:
    """Return the parts of the packages as the page names them, such as `konverge/cache/`."""
    found = []
    for package in sorted(ROOT.glob("packages/*/src/*")):
        for entry in sorted(package.iterdir()):
            if entry.is_dir() and entry.name not in ("__pycache__", "data"):
                found.append(f"{package.name}/{entry.name}/")
    return found


def test_every_path_exists() -> None:
    missing = [path for path in paths(PAGE) if not exists(path)]
    assert not missing, f"ARCHITECTURE.md names what is not there: {', '.join(missing)}"


@pytest.mark.parametrize("part", parts())
def test_every_part_of_a_package_is_named(part: str) -> None:
    assert f"`{part}`" in PAGE


def test_a_path_that_does_not_exist_is_found() -> None:
    assert paths("see `konverge/cash/` and `konverge/cache/store.py`") == ["konverge/cash/", "konverge/cache/store.py"]
    assert not exists("konverge/cash/")
    assert exists("konverge/cache/store.py")


def modules() -> str:
    """Return a line for every module: its path in its package, and the first sentence of its docstring."""
    lines = ["# Every module and what it is for. Written by `make generate` from the docstrings."]
    for package in sorted(ROOT.glob("packages/*/src/*/")):
        for file in sorted(package.rglob("*.py")):
            path = file.relative_to(package.parent).as_posix()
            docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
            if docstring and not path.startswith("konverge/k8s/"):
                lines.append(f"{path}: {' '.join(docstring.partition(chr(10) * 2)[0].split())}")
    return "\n".join(lines) + "\n"


def test_the_list_of_modules_is_up_to_date() -> None:
    assert MODULES.read_text() == modules(), "run `make generate`"


if __name__ == "__main__":
    MODULES.write_text(modules())
    sys.stdout.write(f"wrote {MODULES.name}\n")
