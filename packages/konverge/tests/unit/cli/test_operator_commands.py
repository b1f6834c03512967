"""Commands that load an operator: how they find the target, and what they generate."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from konverge.cli import main
from konverge.cli.manifests import Release, files_of
from konverge.cli.targets import load_operator
from konverge.controller import rules_of

OPERATOR = '''
from konverge import Context, CustomResource, Spec, controller_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import Operator

class ThingSpec(Spec):
    size: int = 1

class Thing(CustomResource[ThingSpec], group="{group}", version="v1"):
    """A thing."""

async def reconcile(thing: Thing, ctx: Context) -> None: ...

operator = Operator(
    name="thing-operator", kinds=(Thing,), controllers=(controller_for(Thing).owns(ConfigMap).build(reconcile),)
)
other = Operator(name="other", kinds=(), controllers=())
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with an operator in the working directory. No other test uses its name."""
    name = f"things_{abs(hash(tmp_path))}"
    folder = tmp_path / "operators_here" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "operator.py").write_text(textwrap.dedent(OPERATOR.format(group="test.konverge.dev")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return f"operators_here/{name}"


def test_a_target_is_a_folder_a_file_or_a_module_with_an_optional_name(package: str) -> None:
    module = package.replace("/", ".")
    assert load_operator(package).name == "thing-operator"
    assert load_operator(f"{package}/operator.py").name == "thing-operator"
    assert load_operator(f"{module}.operator").name == "thing-operator"
    assert load_operator(f"{module}.operator:other").name == "other"


@pytest.mark.parametrize("target", ["no/such/folder", "no_such_module", "yaml"])
def test_a_target_without_an_operator_is_an_error(target: str) -> None:
    result = CliRunner().invoke(main, ["crd", target])
    assert result.exit_code == 2
    assert "there is no" in result.output


def test_the_error_for_an_operator_that_cannot_be_imported_has_the_reason(package: str) -> None:
    Path(package, "operator.py").write_text("import something_that_is_not_there\n")
    result = CliRunner().invoke(main, ["crd", f"{package}/operator.py"])
    assert result.exit_code != 0
    assert "something_that_is_not_there" in str(result.exception) + result.output


def test_the_crds_of_an_operator_are_printed(package: str) -> None:
    result = CliRunner().invoke(main, ["crd", package])
    assert result.exit_code == 0
    assert yaml.safe_load(result.output)["metadata"]["name"] == "things.test.konverge.dev"


def test_an_operator_without_kinds_has_no_crds_and_prints_a_note(package: str) -> None:
    result = CliRunner().invoke(main, ["crd", f"{package}/operator.py:other"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "other defines no kinds, so it has no CRDs\n"


def test_the_kustomization_lists_all_files(package: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["manifests", package, "-o", str(tmp_path / "deploy"), "--namespace", "things"])
    assert result.exit_code == 0, result.output
    base = tmp_path / "deploy" / "base"
    resources = yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]
    assert sorted(resources) == sorted(path.name for path in base.iterdir() if path.name != "kustomization.yaml")
    assert "konverge" in (tmp_path / "deploy" / "Dockerfile").read_text()


def test_rbac_grants_what_the_controllers_declare_and_the_lease_by_name(package: str) -> None:
    operator = load_operator(package)
    release = Release(operator=operator, target=package, namespace="things", image="things:1")
    documents = list(yaml.safe_load_all(files_of(release)["base/rbac.yaml"]))
    roles = {one["metadata"]["name"]: one["rules"] for one in documents if one["kind"] in ("Role", "ClusterRole")}
    allowed = {
        (verb, resource) for rule in roles["thing-operator"] for verb in rule["verbs"] for resource in rule["resources"]
    }
    assert ("create", "configmaps") in allowed
    assert ("patch", "things/status") in allowed
    assert ("delete", "things") not in allowed
    assert not any(resource in ("*", "secrets", "leases") for _, resource in allowed)
    lease = [rule for rule in roles["thing-operator-own"] if "resourceNames" in rule]
    assert lease[0]["resourceNames"] == ["thing-operator"]
    assert roles["thing-operator"] == rules_of(one for one in operator.permissions() if one.resource != "leases")


def test_an_operator_limited_to_namespaces_gets_roles_there_only(package: str) -> None:
    release = Release(
        operator=load_operator(package), target=package, namespace="things", image="things:1", namespaces=("a", "b")
    )
    documents = list(yaml.safe_load_all(files_of(release)["base/rbac.yaml"]))
    # Reviews, and permissions for paths, exist for the whole cluster only.
    reviews = {f"{release.name}-{suffix}" for suffix in ("metrics-auth", "metrics-reader", "debug-reader")}
    assert {one["metadata"]["name"] for one in documents if one["kind"].startswith("ClusterRole")} == reviews
    insecure = files_of(replace(release, insecure_metrics=True))["base/rbac.yaml"]
    assert "ClusterRole" not in insecure
    assert {one["metadata"]["namespace"] for one in documents if one["kind"] == "Role"} == {"a", "b", "things"}


def test_run_without_a_cluster_is_an_error(package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = CliRunner().invoke(main, ["run", package, "--metrics-port=0"])  # other tests may listen on the default
    assert result.exit_code == 1
    assert "kubeconfig" in result.output.lower()


def test_why_without_a_running_operator_is_an_error() -> None:
    result = CliRunner().invoke(main, ["why", "WebApp", "shop/web", "--address", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no operator answers at 127.0.0.1:1" in result.output
