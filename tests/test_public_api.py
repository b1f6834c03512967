"""Every change of the public API shows in review: the golden file docs/reference/api.txt lists names and signatures.

`python tests/test_public_api.py` writes it anew; `make generate` does so too.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

import msgspec
import pytest

import konverge
import konverge_cluster
import konverge_cluster.nodes
import konverge_cluster.testing

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "docs" / "reference" / "api.txt"
GENERATED = {"k8s"}
"""Generated kinds are as many as Kubernetes has; their own test compares them with the API description."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""A default that shows where it lives shows something else in each run."""


def modules() -> list[ModuleType]:
    names = sorted(m.name for m in pkgutil.iter_modules(konverge.__path__) if m.name != "__main__")
    parts = [importlib.import_module(f"konverge.{name}") for name in names if name not in GENERATED]
    return [konverge, *parts, konverge_cluster, konverge_cluster.nodes, konverge_cluster.testing]


def signature(thing: Any) -> str:
    if get_origin(thing) is not None:  # an alias, such as one of Callable
        return ""
    try:
        return ADDRESS.sub("", str(inspect.signature(thing)))
    except (TypeError, ValueError):
        return ""


def describe_class(cls: type) -> Iterator[str]:
    fields = getattr(cls, "__struct_fields__", ())
    if msgspec.Struct in cls.__bases__:
        yield f"    .__init__{signature(cls)}"
    else:
        yield from (f"    .{name}" for name in fields)
    constructor = vars(cls).get("__init__")
    if constructor is not None and not getattr(cls, "_is_protocol", False):
        yield f"    .__init__{signature(constructor)}"
    for name, member in sorted(vars(cls).items()):
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, property):
            yield f"    .{name} (property)"
        elif callable(getattr(cls, name, None)):
            yield f"    .{name}{signature(getattr(cls, name))}"


def describe(name: str, thing: Any) -> Iterator[str]:
    if inspect.isclass(thing):
        parents = ", ".join(base.__name__ for base in thing.__bases__ if base not in (object, msgspec.Struct))
        yield f"  class {name}({parents})"
        yield from describe_class(thing)
    elif callable(thing):
        yield f"  {name}{signature(thing)}"
    else:
        yield f"  {name}: {type(thing).__name__}"


def public_api(modules: list[ModuleType]) -> str:
    lines = ["# The public API: names and signatures. Made by `make generate`; a change here is a change for users."]
    for module in modules:
        lines.append(f"\n{module.__name__}")
        for name in sorted(module.__all__):
            lines += describe(name, getattr(module, name))
    return "\n".join(lines) + "\n"


def difference(golden: str, now: str) -> str:
    return "\n".join(difflib.unified_diff(golden.splitlines(), now.splitlines(), "golden", "now", lineterm=""))


def test_the_public_api_is_the_one_in_the_golden_file() -> None:
    changed = difference(GOLDEN.read_text(), public_api(modules()))
    assert not changed, f"the public API changed (make generate accepts it):\n{changed}"


def test_a_planted_change_is_found() -> None:
    module = ModuleType("konverge.planted")
    module.__dict__.update(__all__=["f"], f=lambda a: a)
    before = public_api([module])
    module.__dict__.update(f=lambda a, b: a + b)
    assert "+  f(a, b)" in difference(before, public_api([module]))


def test_a_planted_change_of_a_constructor_is_found() -> None:
    module = ModuleType("konverge.planted")
    module.__dict__.update(__all__=["C"], C=dataclasses.make_dataclass("C", ["a"]))
    before = public_api([module])
    module.__dict__.update(C=dataclasses.make_dataclass("C", ["a", "b"]))
    assert difference(before, public_api([module]))


def test_no_signature_shows_the_environment_that_it_is_read_in() -> None:
    assert "environ(" not in public_api(modules())


def test_every_name_of_the_top_level_api_resolves() -> None:
    assert all(hasattr(konverge, name) for name in konverge.__all__)
    assert set(konverge.__all__) <= set(dir(konverge))


SIMULATIONS = [
    path
    for folder in ("tests", "packages/konverge-operators/tests", "examples")
    for path in sorted((ROOT / folder).rglob("test_*.py"))
    if re.search(r"^from konverge_cluster.testing import .*\bsimulate\b", path.read_text(), re.MULTILINE)
]
PRIVATE = re.compile(
    r"^(?:from|import) konverge_cluster\.testing\.\w.*|^from konverge.* import .*\b_\w+|\bsim\._\w+", re.MULTILINE
)


def with_support(path: Path) -> list[Path]:
    """Return a file of tests and the modules of tests that it imports."""
    names = re.findall(r"^from (\w+) import", path.read_text(), re.MULTILINE)
    folders = (path.parent, ROOT / "tests" / "support")
    return [path, *(file for name in names for folder in folders if (file := folder / f"{name}.py").exists())]


@pytest.mark.parametrize("path", SIMULATIONS, ids=lambda path: path.stem)
def test_a_simulation_uses_nothing_private_of_the_kit(path: Path) -> None:
    assert [PRIVATE.findall(file.read_text()) for file in with_support(path)] == [[] for _ in with_support(path)]


def test_every_reference_operator_has_a_simulation() -> None:
    sources = ROOT / "packages/konverge-operators/src/konverge_operators"
    operators = {path.parent.name for path in sources.glob("*/operator.py")}
    assert operators
    assert operators <= {path.parent.name for path in SIMULATIONS}


if __name__ == "__main__":
    GOLDEN.write_text(public_api(modules()))
    sys.stdout.write(f"wrote {GOLDEN.name}\n")
