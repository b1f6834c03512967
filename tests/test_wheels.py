"""The three packages as users get them: built, installed into an empty environment outside the repository, and run.

The environment grows: first the framework alone, then the operators, then the embedded cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from repository import ROOT

pytestmark = pytest.mark.wheels

PACKAGES = ("konverge", "konverge-cluster", "konverge-operators")
VERSION = (ROOT / "VERSION").read_text().strip()
LIMIT = 120.0

OPERATOR = """
from konverge import CustomResource, Reconciler, Result, Spec, Status, controller_for
from konverge.manager import Operator


class ShopSpec(Spec):
    size: int = 1


class Shop(CustomResource[ShopSpec, Status], group="example.com", version="v1"):
    pass


class ShopReconciler(Reconciler[Shop]):
    async def reconcile(self, shop, ctx):
        return Result.done()


operator = Operator(name="shop", kinds=(Shop,), controllers=(controller_for(Shop).build(ShopReconciler()),))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a folder outside the repository to work in."""

    folder: Path
    wheels: Path
    work: Path

    def install(self, *requirements: str) -> None:
        """Install packages of this project from their wheels, and everything else from the package index."""
        pins = ("--constraint", str(ROOT / "constraints" / "dev.txt"), "--find-links", str(self.wheels))
        command = [str(self.folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *pins]
        subprocess.run([*command, *requirements], check=True, cwd=self.work)

    def installed(self) -> set[str]:
        """Return the names of the installed distributions."""
        listed = self.run_program("pip", "list", "--format", "freeze", "--disable-pip-version-check").stdout
        return {line.partition("==")[0].lower() for line in listed.splitlines()}

    def run_program(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment where nothing of the repository can be imported."""
        program = self.folder / "bin" / arguments[0]
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KONVERGE"))}
        return subprocess.run(
            [program, *arguments[1:]],
            cwd=self.work,
            env=variables,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )


def build(folder: Path) -> Path:
    """Build wheel and source distribution of every package, as `make dist` does."""
    for package in PACKAGES:
        command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
        subprocess.run(command, cwd=ROOT / "packages" / package, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def environment(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder, work = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("work")
    venv.create(folder, with_pip=True)
    (work / "shop").mkdir()
    (work / "shop" / "operator.py").write_text(OPERATOR)
    return Environment(folder, wheels, work)


def metadata(wheel: Path) -> dict[str, list[str]]:
    with ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        parsed = Parser().parsestr(archive.read(name).decode())
    return {key: [str(value) for value in parsed.get_all(key, [])] for key in parsed}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_metadata_says_what_is_true(wheels: Path, package: str) -> None:
    (wheel,) = wheels.glob(f"{package.replace('-', '_')}-*.whl")
    facts = metadata(wheel)
    assert facts["Version"] == [VERSION]
    assert facts["Author"] == ["The konverge authors"]
    assert "Author-email" not in facts
    assert facts["License-Expression"] == ["Apache-2.0"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_source_distribution_holds_the_sources_and_the_license(wheels: Path, package: str) -> None:
    (source,) = wheels.glob(f"{package.replace('-', '_')}-*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "NOTICE", "README.md", f"src/{package.replace('-', '_')}/py.typed"} <= names


def test_ranges_between_the_packages_contain_the_version() -> None:
    major, minor, *_ = map(int, VERSION.split("."))
    expected = f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={major}.{minor},<{major + 1}"
    for package in PACKAGES:
        text = (ROOT / "packages" / package / "pyproject.toml").read_text()
        for line in text.splitlines():
            for other in PACKAGES:
                if f'"{other}>' in line:
                    assert f'"{other}{expected}"' in line, f"{package}: {line.strip()}"


def test_the_framework_alone_is_what_an_operator_image_needs(environment: Environment) -> None:
    environment.install("konverge")

    assert environment.installed() & {"rich", "konverge-cluster", "konverge-operators", "patroni"} == set()
    printed = environment.run_program("konverge", "crd", "shop/operator.py")
    assert printed.returncode == 0, printed.stderr
    assert yaml.safe_load(printed.stdout)["metadata"]["name"] == "shops.example.com"
    for command, requirement in (
        ("cluster", "konverge[cluster]"),
        ("dev", "konverge[cluster]"),
        ("nodes", "konverge[cluster]"),
        ("demo", "konverge-operators[cluster]"),
    ):
        refused = environment.run_program("konverge", command)
        assert refused.returncode == 2
        assert f"pip install '{requirement}'" in refused.stderr


def test_operators_need_no_api_server(environment: Environment) -> None:
    environment.install("konverge-operators")

    assert environment.installed() & {"rich", "konverge-cluster", "patroni", "redis"} == set()
    printed = environment.run_program("konverge", "crd", "konverge_operators.webapp")
    assert printed.returncode == 0, printed.stderr
    refused = environment.run_program("konverge", "demo")
    assert refused.returncode == 2
    assert "pip install 'konverge-operators[cluster]'" in refused.stderr


@pytest.fixture(scope="module")
def complete(environment: Environment) -> Environment:
    environment.install("konverge-operators[cluster]")
    return environment


def test_the_demo_runs(complete: Environment) -> None:
    done = complete.run_program("konverge", "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is left behind" in done.stdout


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
def test_commands_take_relative_and_absolute_paths(complete: Environment, tmp_path: Path, absolute: bool) -> None:
    target = str(complete.work / "shop" / "operator.py") if absolute else "shop/operator.py"
    output = str(tmp_path / "deploy") if absolute else "deploy"

    printed = complete.run_program("konverge", "crd", target)
    assert printed.returncode == 0, printed.stderr
    assert yaml.safe_load(printed.stdout)["metadata"]["name"] == "shops.example.com"

    written = complete.run_program("konverge", "manifests", target, "-o", output)
    assert written.returncode == 0, written.stderr
    assert (complete.work / output / "base" / "crds.yaml").is_file()


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("command", ["cluster", "dev"])
def test_a_cluster_starts_and_ends_clean(complete: Environment, tmp_path: Path, command: str, absolute: bool) -> None:
    kubeconfig = tmp_path / "kubeconfig" if absolute else Path("relative.kubeconfig")
    target = complete.work / "shop" / "operator.py" if absolute else Path("shop/operator.py")
    arguments = [command, "--kubeconfig", str(kubeconfig)]
    if command == "dev":
        arguments += ["--plain", str(target)]
    with started(complete, *arguments) as process:
        read_until(process, str(kubeconfig))
        assert (complete.work / kubeconfig).is_file()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=LIMIT)
    assert process.returncode == 0
    assert not (complete.work / kubeconfig).exists()


@contextmanager
def started(environment: Environment, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `konverge` beside the test."""
    process = subprocess.Popen(
        [environment.folder / "bin" / "konverge", *arguments],
        cwd=environment.work,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], words: str) -> None:
    """Read the output up to the line with these words."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if words in line:
            return
    raise AssertionError(f"{words!r} is not in the output:\n{output}")
