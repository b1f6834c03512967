"""The README of the Database operator draws the declared phases, and its samples are valid."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import konverge_operators.database
from konverge.objects import from_wire
from konverge.schema import validate
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.mariadb.engine import MariaDB
from konverge_operators.database.phases import phases
from konverge_operators.database.versions import find_violation
from konverge_operators.myapp.api import MyApp

FOLDER = Path(konverge_operators.database.__file__).parent


def test_the_readme_draws_every_declared_transition() -> None:
    edges = [f"    {before} --> {after}" for before in Phase for after in Phase if after in phases.transitions[before]]
    drawing = "\n".join(["stateDiagram-v2", f"    [*] --> {phases.initial}", *edges, f"    {Phase.DELETING} --> [*]"])
    assert drawing in (FOLDER / "README.md").read_text(), drawing


@pytest.mark.parametrize("sample", ["database.yaml", "production.yaml", "mariadb.yaml"])
def test_the_samples_are_valid(sample: str) -> None:
    document = yaml.safe_load((FOLDER / "samples" / sample).read_text())
    assert not validate(from_wire(Database, document))


@pytest.mark.parametrize("file", ["mariadb.yaml", "process_nodes/mariadb.yaml"])
def test_the_database_of_an_application_can_be_a_mariadb(file: str) -> None:
    sample = yaml.safe_load((FOLDER.parent / "myapp" / "samples" / file).read_text())
    assert not validate(from_wire(MyApp, sample))
    document = {"metadata": {"name": "shop-database"}, "spec": sample["spec"]["database"]["spec"]}
    found = from_wire(Database, {"apiVersion": "example.com/v1", "kind": "Database", **document})
    assert not validate(found)
    assert find_violation(found, MariaDB()) == ""
