"""Imports only go down: the floors of the house, checked on the source without running it.

A room may import from floors below its own, and from itself. Rooms on one floor do not see each other. An import inside
`if TYPE_CHECKING` counts too: a type is a dependency.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "konverge"

FLOORS: list[set[str]] = [
    {"errors"},
    {"objects", "telemetry"},
    {"k8s"},
    {"wire", "schema", "queue", "codegen"},
    {"cache", "client"},
    {"reconcile", "triggers"},
    {"controller", "webhooks", "workflow"},
    {"manager"},
    {"controlplane"},
    {"testing"},
    {"cli", "__init__"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

HTTP_FILES = {
    "client/transport.py",
    "webhooks/server.py",
    "manager/probes.py",
    "controlplane/http.py",
    "testing/faultproxy.py",
}
"""Only these files import the HTTP library: nothing of it leaks past them."""


def room_of(path: str) -> str:
    """Give the room that a file of the package belongs to: the first folder, or the file itself."""
    return path.split("/")[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give line and absolute name of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports"
            yield node.lineno, str(node.module)
            if node.module == "konverge":
                yield from ((node.lineno, f"konverge.{alias.name}") for alias in node.names)


def violations(path: str, text: str) -> list[str]:
    """List what a file imports that it must not, one line each."""
    room = room_of(path)
    found = []
    for line, name in imports(ast.parse(text)):
        if name.split(".")[0] == "aiohttp" and path not in HTTP_FILES:
            found.append(f"{path}:{line} imports aiohttp; only {', '.join(sorted(HTTP_FILES))} may")
        if not name.startswith("konverge."):
            continue
        other = name.split(".")[1]
        if other != room and LEVEL.get(other, 0) >= LEVEL[room]:
            found.append(f"{path}:{line} ({room}) imports {name}, which is not below it")
    return found


def test_imports_only_go_down() -> None:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        found += violations(file.relative_to(SOURCE).as_posix(), file.read_text())
    assert not found, "\n".join(found)


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(file.relative_to(SOURCE).as_posix()) for file in SOURCE.rglob("*.py")}
    assert rooms <= LEVEL.keys()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("objects/kinds.py", "from konverge.schema import CustomResource"),
        ("wire/frames.py", "import konverge.queue.workqueue"),
        ("client/client.py", "def late():\n    from konverge.cache.store import Store"),
        ("errors.py", "from konverge import objects"),
        ("client/client.py", "import aiohttp"),
        (
            "objects/kinds.py",
            "if TYPE_CHECKING:\n    from konverge.client import Client",
        ),
    ],
)
def test_a_planted_violation_is_found(path: str, text: str) -> None:
    assert violations(path, text)
