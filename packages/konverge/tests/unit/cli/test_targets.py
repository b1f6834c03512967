"""Targets: files with any name, and invalid arguments."""

from __future__ import annotations

import operator as standard_operator
import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cli import main
from konverge.cli.sources import import_root
from konverge.cli.targets import load_operator, source_of

PLAIN = "from konverge.manager import Operator\noperator = Operator(name={name!r}, controllers=())\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory. Modules loaded from it are removed after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - set(before):
        if str(tmp_path) in str(getattr(sys.modules[name], "__spec__", "")):
            del sys.modules[name]


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(textwrap.dedent(text))


def crd(target: str) -> Result:
    return CliRunner().invoke(main, ["crd", target])


def refusal(target: str) -> str:
    """Return the error line for a target."""
    result = crd(target)
    assert isinstance(result.exception, SystemExit), result.exc_info
    *usage, line = result.output.splitlines()
    assert line.startswith("Error: "), result.output
    assert result.exit_code == (2 if usage else 1)
    return line


@pytest.mark.parametrize("target", ["operator.py", "operator", ".", "./operator.py", "operator.py:operator"])
def test_a_file_named_like_a_standard_library_module_is_loaded_from_its_path(target: str) -> None:
    write("operator.py", PLAIN.format(name="mine"))

    assert load_operator(target).name == "mine"
    assert sys.modules["operator"] is standard_operator


def test_a_file_is_loaded_once() -> None:
    write("operator.py", PLAIN.format(name="mine"))
    assert load_operator("operator.py") is load_operator(".") is load_operator(os.path.abspath("operator.py"))


def test_files_beside_a_file_can_be_imported() -> None:
    write("operator.py", "from beside import name\n" + PLAIN.replace("{name!r}", "name"))
    write("beside.py", "name = 'from-beside'")
    write("things/operator.py", "from near import name\n" + PLAIN.replace("{name!r}", "name"))
    write("things/near.py", "name = 'from-near'")

    assert load_operator("operator.py").name == "from-beside"
    assert load_operator("things").name == "from-near"
    assert load_operator("things/operator.py").name == "from-near"


@pytest.mark.parametrize("init", [True, False], ids=["package", "folder"])
@pytest.mark.parametrize("folder", ["shop", "platform", "shop/parts", "json"])
def test_relative_imports_work_in_a_package_of_any_name(folder: str, init: bool) -> None:
    source = "from .names import NAME\n" + PLAIN.replace("{name!r}", "NAME")
    write(f"{folder}/operator.py", source)
    write(f"{folder}/names.py", "NAME = 'related'")
    if init:
        write(f"{folder}/__init__.py", "")

    assert load_operator(folder).name == "related"
    assert load_operator(f"{folder}/operator.py").name == "related"
    assert load_operator(folder.replace("/", ".")).name == "related"


@pytest.mark.parametrize("target", ["grocer", "grocer.operator", "src/grocer", "src/grocer/operator.py"])
def test_a_project_with_a_src_folder_imports_its_own_package(target: str) -> None:
    write("src/grocer/__init__.py", "")
    write("src/grocer/names.py", "NAME = 'grocer-operator'")
    write("src/grocer/operator.py", "from grocer.names import NAME\n" + PLAIN.replace("{name!r}", "NAME"))

    found = load_operator(target)

    assert found.name == "grocer-operator"
    assert sys.modules["grocer.operator"].operator is found, "it is the module that `import grocer.operator` returns"


FARM = "projects/farm/src/farm"


def write_farm() -> None:
    """Write a project with a src folder, below the working directory, whose package imports itself."""
    write(f"{FARM}/__init__.py", "from farm.operator import operator")
    write(f"{FARM}/names.py", "NAME = 'farm-operator'")
    write(f"{FARM}/operator.py", "from farm.names import NAME\n" + PLAIN.replace("{name!r}", "NAME"))


@pytest.mark.parametrize("is_absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("target", [FARM, f"{FARM}/operator.py", f"{FARM}/operator.py:operator", f"./{FARM}/"])
def test_a_src_folder_of_a_project_below_the_working_directory_is_importable(
    here: Path, target: str, is_absolute: bool
) -> None:
    write_farm()

    found = load_operator(str(here / target) if is_absolute else target)

    assert found.name == "farm-operator"
    assert sys.modules["farm.operator"].operator is found
    assert not [name for name in sys.modules if name.startswith("projects")]


@pytest.mark.parametrize("folder", [".", "projects", "projects/farm", "projects/farm/src", FARM])
@pytest.mark.parametrize("is_absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("command", ["crd", "manifests"])
def test_commands_find_a_src_layout_from_every_folder_above_and_inside(
    here: Path, monkeypatch: pytest.MonkeyPatch, folder: str, is_absolute: bool, command: str
) -> None:
    write_farm()
    monkeypatch.chdir(folder)
    target = str(here / FARM) if is_absolute else os.path.relpath(here / FARM)

    result = CliRunner().invoke(main, [command, target])

    assert result.exit_code == 0, result.output
    assert command == "crd" or "name: farm-operator" in result.output


def test_a_src_folder_that_is_a_package_is_part_of_the_name() -> None:
    write("tools/src/__init__.py", "")
    write("tools/src/operator.py", "from . import names\n" + PLAIN.replace("{name!r}", "names.NAME"))
    write("tools/src/names.py", "NAME = __name__.replace('.', '-')")

    assert load_operator("tools/src/operator.py").name == "tools-src-names"


def test_a_module_of_a_package_keeps_its_dotted_name() -> None:
    write("store/__init__.py", "")
    write(
        "store/operator.py",
        PLAIN.format(name="store") + "where = Operator(name=__name__.replace('.', '-'), controllers=())",
    )
    assert load_operator("store/operator.py:where").name == "store-operator"


@pytest.mark.parametrize("init", [True, False], ids=["package", "folder"])
def test_folders_with_a_dot_in_their_name_are_targets_too(init: bool) -> None:
    write("shop.v2/inner/operator.py", PLAIN.format(name="dotted"))
    write("shop.v2/operator.v3.py", PLAIN.format(name="third"))
    if init:
        write("shop.v2/__init__.py", "")
        write("shop.v2/operator.py", "from .names import NAME\n" + PLAIN.replace("{name!r}", "NAME"))
        write("shop.v2/names.py", "NAME = 'related'")
        assert load_operator("shop.v2").name == "related"

    assert load_operator("shop.v2/inner").name == "dotted"
    assert load_operator("shop.v2/operator.v3.py").name == "third"


def test_a_missing_import_is_reported_with_file_and_line() -> None:
    write("operator.py", "x = 1\nimport helper_of_mine\n")
    write("helper_of_mine.py", "\n\nfrom not_installed.deep import thing\n")
    write("package/__init__.py", "")
    write("package/operator.py", "import not_installed\n")

    message = "there is no module 'not_installed' (install it next to konverge, or correct the import)"
    assert refusal("operator.py") == f"Error: helper_of_mine.py, line 3: {message}"
    assert refusal("package") == f"Error: package/operator.py, line 1: {message}"
    assert refusal("package.operator") == f"Error: package/operator.py, line 1: {message}"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\ndef (:\n", "operator.py, line 2: not valid Python: invalid syntax"),
        ("\n1 / 0\n", "operator.py, line 2: ZeroDivisionError: division by zero"),
        ("raise ValueError('a\\nb')\n", "operator.py, line 1: ValueError: a b"),
        ("import sys\nsys.exit(3)\n", "operator.py, line 2: SystemExit: 3"),
        ("raise KeyError\n", "operator.py, line 1: KeyError"),
        ("from json import nothing_such\n", "operator.py, line 1: ImportError: cannot import name 'nothing_such'"),
        ("operator = 3\n", "'operator.py': 'operator' is a value of type int, not an Operator, in operator.py"),
        ("", "'operator.py': there is no 'operator' in operator.py"),
    ],
)
def test_an_error_in_a_source_is_reported_in_one_line(source: str, line: str) -> None:
    write("operator.py", source)
    assert refusal("operator.py").startswith(f"Error: {line}")


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (
            "name='o', controllers=(), kinds=(int,)",
            "TypeError: <class 'int'> is not a custom resource (write class WebApp",
        ),
        ("name='o', controllers=(), kinds=((int, str),)", "TypeError: <class 'int'> is not a custom resource"),
        ("name='o', controllers=(), kinds=int", "TypeError: kinds is a tuple: write kinds=(one, two)"),
        ("name='o', controllers=(print,)", "TypeError: create a controller with controller_for(Kind).build(reconcile)"),
        ("name='', controllers=()", "ValueError: name must be at most 63 lower-case letters, digits and '-'"),
        ("name='a\\nb: c', controllers=()", "ValueError: name must be at most 63 lower-case letters, digits and '-'"),
        ("name='x' * 64, controllers=()", "ValueError: name must be at most 63 lower-case letters, digits and '-'"),
        ("name=3, controllers=()", "ValueError: name must be at most 63 lower-case letters, digits and '-'"),
    ],
)
def test_an_invalid_operator_is_reported_with_its_file_and_line(parts: str, why: str) -> None:
    write("operator.py", f"from konverge.manager import Operator\n\noperator = Operator({parts})\n")
    assert refusal("operator.py").startswith(f"Error: operator.py, line 3: {why}")


@pytest.mark.parametrize(
    ("content", "why"), [(b"\x7fELF\x00\x01", "null bytes"), (b"\xff\xfe", "can't decode byte 0xff")]
)
def test_a_binary_file_is_not_valid_python(content: bytes, why: str) -> None:
    Path("operator.py").write_bytes(content)
    Path("program").write_bytes(content)

    assert "not valid Python" in refusal("operator.py")
    assert why in refusal("operator.py")
    assert refusal("program") == "Error: 'program' is not a Python file (use a .py file)"


def test_a_named_pipe_is_refused_without_reading_it() -> None:
    os.mkfifo("operator.py")
    assert "is not a Python file" in refusal("operator.py")


def test_a_folder_without_python_files_is_refused() -> None:
    write("manifests/a.yaml", "")
    assert refusal("manifests") == (
        "Error: the folder 'manifests' contains neither __init__.py nor operator.py"
        " (use the file that defines the operator)"
    )


@pytest.mark.parametrize(
    "target", ["", " ", ":", "\n", "no/such", "no_such", "a b", "x" * 5000, "a\0b", ":operator", "..."]
)
def test_an_invalid_target_is_reported_in_one_short_line(target: str) -> None:
    assert len(refusal(target)) < 250


@given(st.text(max_size=30).filter(lambda text: not os.path.exists(text.rpartition(":")[0] or text)))
@settings(max_examples=100, deadline=None)
def test_no_argument_causes_a_traceback(text: str) -> None:
    with pytest.raises(click.ClickException) as refused:
        load_operator(text)
    assert "\n" not in refused.value.format_message()


@pytest.mark.parametrize("command", ["crd", "run", "dev", "manifests"])
def test_every_command_reports_an_invalid_target_in_the_same_way(command: str) -> None:
    result = CliRunner().invoke(main, [command, "no/such/operator.py"])
    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == "Error: there is no file, package or module 'no/such/operator.py'"


def test_module_names_start_at_the_working_directory_or_above_the_outermost_package(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("above/pkg/__init__.py", "")
    file = here / "above" / "pkg" / "operator.py"
    assert import_root(file) == here
    monkeypatch.chdir(file.parent)
    assert import_root(file) == here / "above"


def test_an_installed_module_has_no_file_to_load() -> None:
    assert source_of("konverge.cli") is None


SEVERAL = """
    from konverge.manager import Operator
    from boutique.red import operator as red
    from boutique.blue import operator as blue

    operator = Operator.combine("boutique", red, blue)
"""


def test_a_package_with_several_operators_is_a_target() -> None:
    for color in ("red", "blue"):
        write(f"boutique/{color}.py", PLAIN.format(name=color))
    write("boutique/__init__.py", "")
    write("boutique/operator.py", SEVERAL)
    assert load_operator("boutique").name == "boutique"


def test_operators_that_cannot_be_combined_are_named_with_the_reason() -> None:
    for color in ("red", "blue"):
        write(f"boutique/{color}.py", PLAIN.format(name="same"))
    write("boutique/__init__.py", "")
    write("boutique/operator.py", SEVERAL)
    assert "same and same cannot be combined: both have the name same" in refusal("boutique")


def test_a_package_of_packages_without_an_operator_names_those_that_have_one() -> None:
    for color in ("red", "blue"):
        write(f"boutique/{color}/operator.py", PLAIN.format(name=color))
        write(f"boutique/{color}/__init__.py", "")
    write("boutique/__init__.py", "")
    line = refusal("boutique")
    assert (
        "(use boutique/blue or boutique/red, or write `operator = Operator.combine(name, blue, red)` to run all)"
        in line
    )
