"""Limits of size: functions, files, arguments, nesting; and module names that say nothing.

`EXCEPTIONS` names what may exceed a limit, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import konverge

PACKAGES = Path(__file__).parent.parent / "packages"

BODY_LINES = 50
FILE_LINES = 600
ARGUMENTS = 7
NESTING = 4
TOP_LEVEL_NAMES = 40
EMPTY_NAMES = {"utils", "util", "helpers", "common", "base", "misc", "core", "tools"}

EXCEPTIONS: dict[str, str] = {
    "konverge_cluster/embedded_cluster.py:__init__": "the options of a whole cluster, all keyword-only and optional",
    "konverge_cluster/embedded_server.py:__init__": "the options of a whole server, all keyword-only and optional",
}
"""What may exceed a limit: "path:function" -> why."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NESTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)


def body_lines(function: Function) -> int:
    """Count the lines of a function without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def arguments(function: Function) -> int:
    """Count what a caller can pass; `self` and `cls` do not count."""
    args = function.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls", "mcls")])


def nesting(node: ast.AST, depth: int = 0) -> int:
    """Return the depth of the deepest statement; `elif` is no deeper than its `if`."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and child in node.orelse
        deeper = depth + (isinstance(child, _NESTS) and not is_elif)
        deepest = max(deepest, nesting(child, deeper))
    return deepest


def exceeded(path: str, text: str) -> Iterator[str]:
    """List the limits that a file exceeds, one line each."""
    if Path(path).stem in EMPTY_NAMES:
        yield f"{path}: the name says nothing"
    lines = text.count("\n")
    if lines > FILE_LINES and path not in EXCEPTIONS:
        yield f"{path}: {lines} lines (limit {FILE_LINES})"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or f"{path}:{node.name}" in EXCEPTIONS:
            continue
        for what, size, limit in (
            ("lines", body_lines(node), BODY_LINES),
            ("arguments", arguments(node), ARGUMENTS),
            ("levels of nesting", nesting(node), NESTING),
        ):
            if size > limit:
                yield f"{path}:{node.lineno} {node.name}: {size} {what} (limit {limit})"


def hand_written() -> Iterator[tuple[str, str]]:
    """Yield path and text of every file that people write; generated kinds are as large as Kubernetes."""
    for file in sorted(PACKAGES.glob("*/src/**/*.py")):
        path = file.relative_to(PACKAGES).as_posix().split("/src/")[1]
        if not path.startswith("konverge/k8s/"):
            yield path, file.read_text()


def test_the_limits_hold() -> None:
    found = [line for path, text in hand_written() for line in exceeded(path, text)]
    assert not found, "\n".join(found)


def test_exceptions_are_still_needed() -> None:
    broken = {
        exception
        for path, text in hand_written()
        for exception in EXCEPTIONS
        if exception.split(":")[0] == path and (":" in exception or text.count("\n") > FILE_LINES)
    }
    assert broken == EXCEPTIONS.keys()


def test_the_top_level_api_stays_small() -> None:
    assert len(konverge.__all__) <= TOP_LEVEL_NAMES


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("objects/utils.py", ""),
        ("objects/long.py", "x = 1\n" * 601),
        ("objects/f.py", "def f():\n" + "    x = 1\n" * 51),
        ("objects/f.py", "def f(a, b, c, d, *, e, f, g, h): ..."),
        ("objects/f.py", "def f():\n if a:\n  for b in c:\n   with d:\n    while e:\n     if f:\n      g"),
    ],
)
def test_a_planted_violation_is_found(path: str, text: str) -> None:
    assert list(exceeded(path, text))


def test_an_elif_chain_is_not_nesting() -> None:
    chain = "def f():\n if a: b\n" + " elif c: d\n" * 10
    assert not list(exceeded("objects/f.py", chain))
