"""Local images: tables in YAML, those that an operator ships, and the option `--run` of the commands."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from konverge.cli import main
from konverge.manager import Operator
from konverge_cluster.processes import LocalImage, LocalImages

OPERATOR = Operator(name="shop-operator", controllers=())
WEB = LocalImage("web:*", command=["web"])


def table(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_last_entry_wins_over_files_functions_and_operators(tmp_path: Path) -> None:
    first = table(tmp_path / "a.yaml", "images: [{image: 'web:*', command: [old]}, {image: 'db:*', command: [db]}]")
    one = replace(OPERATOR, images=(first, lambda: [WEB]))
    two = replace(OPERATOR, images=(lambda: [LocalImage("web:2", command=["two"])],))

    images = LocalImages.of(one, two)

    commands = {name: found.command for name in ("web:1", "web:2", "db:1") if (found := images.find(name))}
    assert commands == {"web:1": ["web"], "web:2": ["two"], "db:1": ["db"]}
    assert images.find("cache") is None


def test_a_file_knows_its_directory_and_the_interpreter(tmp_path: Path) -> None:
    text = "{images: [{image: web, command: [$(PYTHON), $(DIR)/web.py], stopSignal: SIGINT}], others: fail}"
    shipped = replace(OPERATOR, images=(table(tmp_path / "a.yaml", text),))

    images = LocalImages.of(shipped)

    found = images.find("web")
    assert found is not None
    assert found.command == [sys.executable, f"{tmp_path}/web.py"]
    assert found.stop_signal == "SIGINT"
    assert images.others == "fail"


def test_an_image_without_a_tag_is_the_latest_one() -> None:
    images = LocalImages([WEB, LocalImage("registry.example:5000/db", command=["db"])])

    assert images.find("web") is WEB
    assert images.find("registry.example:5000/db") is not None
    assert images.find("registry.example:5000/db:1") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("images: {}", "a table of local images has a list `images`"),
        ("images: [web]", "an entry of a table is a mapping with image and command, got 'web'"),
        ("images: [{image: web, comand: [a]}]", "'comand' is no field of a local image: write one of image, command"),
        ("images: [{image: web, command: a}]", "command of 'web' is a list, got 'a'"),
        ("images: [{command: [a]}]", "a local image needs the pattern of the images that it stands for: image: 'pos"),
        ("images: [{image: 1}]", "a local image needs the pattern of the images that it stands for: image: 'pos"),
        ("{images: [], other: fail}", "'other' is no field of a table: write images or others"),
        ("{images: [], others: fial}", "others is one of simulate, fail, got 'fial'"),
        ("images: [", "is no YAML"),
    ],
)
@pytest.mark.parametrize("command", ["cluster", "nodes"])
def test_an_invalid_table_is_a_usage_error(tmp_path: Path, command: str, text: str, why: str) -> None:
    path = table(tmp_path / "images.yaml", text)

    result = CliRunner().invoke(main, [command, "--run", str(path)])

    assert result.exit_code == 2, result.output
    assert why in " ".join(result.output.split())


def test_what_an_operator_ships_is_checked() -> None:
    images: Any = [WEB]
    with pytest.raises(TypeError, match=r"images is a tuple: write images=\(one, two\)"):
        Operator(name="shop-operator", controllers=(), images=images)
    with pytest.raises(ValueError, match="items LocalImage"):
        LocalImages.of(replace(OPERATOR, images=(lambda: ["web"],)))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["dev", "shop.py", "--run"], "shop.py ships no local images: name a table (--run images.yaml)"),
        (["dev", "--run", "shop.py"], "shop.py ships no local images: name a table (--run images.yaml)"),
        (["dev", "--run"], "Missing argument 'TARGET'"),
        (["dev", "--run", "images.yaml"], "Missing argument 'TARGET'"),
        (["dev"], "Missing argument 'TARGET'"),
        (["cluster", "--run"], "there are no local images: name a table (--run images.yaml)"),
        (["cluster", "--run", "shop.py"], "there are no local images: name a table (--run images.yaml)"),
        (["cluster", "--run", "none.yaml"], "No such file or directory: 'none.yaml'"),
        (["cluster", "--run", "none"], "there is no file, package or module 'none'"),
    ],
)
def test_run_without_any_image_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "from konverge.manager import Operator\noperator = Operator(name='shop-operator', controllers=())\n"
    (tmp_path / "shop.py").write_text(text)

    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 2, result.output
    assert why in " ".join(result.output.split())
