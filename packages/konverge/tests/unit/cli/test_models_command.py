"""The command `konverge models`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from konverge.cli.models import models
from konverge.codegen import models_from_crds
from repository import DATA

CRDS = DATA / "crds" / "certificates.yaml"


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(models, [str(each) for each in arguments], input=stdin)


def test_the_classes_are_printed() -> None:
    result = run(CRDS)

    assert result.exit_code == 0
    assert result.output == models_from_crds(CRDS.read_text(), source="certificates.yaml")


def test_the_classes_are_written_to_the_output_file(tmp_path: Path) -> None:
    out = tmp_path / "certificates.py"

    result = run(CRDS, "-o", out)

    assert (result.exit_code, result.output) == (0, "")
    assert out.read_text() == models_from_crds(CRDS.read_text(), source="certificates.yaml")


def test_standard_input_is_read_for_a_dash() -> None:
    result = run("-", stdin=CRDS.read_bytes())

    assert result.exit_code == 0
    assert "from standard input; do not edit" in result.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Error: no CustomResourceDefinition in f.yaml: it is empty\n"),
        (b"a: b: c", "Error: f.yaml is not YAML: mapping values are not allowed in this context, at line 1\n"),
        (b"kind: Pod", "Error: no CustomResourceDefinition in f.yaml: only Pod\n"),
        (b"\xff\xfe\x00", "Error: f.yaml is not valid UTF-8, at byte 0\n"),
    ],
)
def test_an_invalid_file_is_a_one_line_error_and_writes_nothing(content: bytes, message: str, tmp_path: Path) -> None:
    file, out = tmp_path / "f.yaml", tmp_path / "out.py"
    file.write_bytes(content)

    result = run(file, "-o", out)

    assert (result.exit_code, result.output) == (1, message)
    assert not out.exists()


def test_the_error_for_a_missing_file_names_it() -> None:
    result = run("no-such.yaml")

    assert result.exit_code == 2
    assert "'no-such.yaml' does not exist" in result.output


def test_the_error_for_an_output_that_cannot_be_written_names_it(tmp_path: Path) -> None:
    result = run(CRDS, "-o", tmp_path / "missing" / "out.py")

    assert result.exit_code == 1
    assert "missing" in result.output
    assert "Traceback" not in result.output


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + CRDS.read_bytes())

    assert run(file).exit_code == 0
