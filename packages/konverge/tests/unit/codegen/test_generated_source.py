"""Generated source is formatted, passes the linter, and is fully typed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.codegen import models_from_crds
from konverge.codegen.shapes import ClassShape, Default, FieldShape, ModuleShape, TypeShape
from konverge.codegen.source import source_of
from konverge.objects.kinds import Kind, Scope
from repository import ROOT

CRDS = ROOT / "tests" / "data" / "crds"
PACKAGE = ROOT / "packages" / "konverge" / "src" / "konverge" / "k8s"

USE = """
from typing import assert_type
from certificates import Certificate, CertificateSpec, CertificateSpecIssuerRef, CertificateSpecPrivateKey
from monitoring import Prometheus
from konverge.objects.quantities import Quantity

certificate = Certificate(
    spec=CertificateSpec(
        secret_name="web-tls",
        issuer_ref=CertificateSpecIssuerRef(name="ca"),
        private_key=CertificateSpecPrivateKey(algorithm="RSA", size=2048),
    )
)
assert_type(certificate.spec.dns_names, list[str])
assert_type(certificate.status.revision, int | None)
prometheus = Prometheus()
assert_type(prometheus.status.available_replicas, int | None)
if prometheus.spec.resources:
    memory: Quantity = prometheus.spec.resources.limits["memory"]
CertificateSpecPrivateKey(algorithm="DSA")
CertificateSpec(secret_name="web-tls")
"""


def ruff(*arguments: str | Path) -> str:
    command = [Path(sys.executable).with_name("ruff"), *arguments, "--config", ROOT / "pyproject.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the modules generated from the two large files of CRDs."""
    directory = tmp_path_factory.mktemp("generated")
    for name in ("certificates", "monitoring"):
        text = models_from_crds((CRDS / f"{name}.yaml").read_text(), source=f"{name}.yaml")
        (directory / f"{name}.py").write_text(text)
    return directory


def test_modules_of_large_crds_are_formatted_and_pass_the_linter(generated: Path) -> None:
    assert ruff("format", "--diff", generated) == ""
    assert ruff("check", generated) == ""


def test_modules_of_large_crds_pass_strict_mypy_and_catch_mistakes(generated: Path) -> None:
    (generated / "use.py").write_text(USE)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(generated / "cache")]
    done = subprocess.run([*command, "use.py"], cwd=generated, capture_output=True, text=True, check=False)
    wrong = USE.splitlines()[-2:]

    assert [line.rpartition("  ")[2] for line in done.stdout.splitlines()] == ["[arg-type]", "[call-arg]"], done.stdout
    assert [int(line.split(":")[1]) for line in done.stdout.splitlines()] == [
        USE.splitlines().index(line) + 1 for line in wrong
    ]


@pytest.mark.parametrize("length", range(5, 120, 3))
def test_lines_are_wrapped_as_ruff_wraps_them(length: int, tmp_path: Path) -> None:
    name = f"N{'x' * length}"
    inner = TypeShape(name)
    fields = (
        FieldShape("plain", "plain", inner),
        FieldShape("optional", "optional", inner.optional(), Default()),
        FieldShape("many", "many", inner.in_list(), Default("list")),
        FieldShape("named", "noRuleGivesThis", inner.in_list(), Default("list")),
    )
    kind = Kind("some.group.example.com", "v1", name, f"{name.lower()}s", Scope.CLUSTER)
    module = ModuleShape("Long names.", [ClassShape(name, "", ()), ClassShape(f"{name}s", "", fields, kind)])
    file = tmp_path / "long.py"
    file.write_text(source_of(module))

    assert ruff("format", "--diff", file) == ""


def test_no_generated_class_hides_names_of_its_body_or_base() -> None:
    needed = {"bool", "bytes", "datetime", "dict", "field", "float", "int", "list", "str"}
    for file in sorted(PACKAGE.rglob("v*.py")):
        for class_node in ast.parse(file.read_text()).body:
            if isinstance(class_node, ast.ClassDef):
                fields = {
                    each.target.id
                    for each in class_node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
                assert not fields & needed, f"{file}: {class_node.name}"
