"""`konverge manifests`: the generated files and what they guarantee."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Context
from click.testing import CliRunner, Result

from konverge.cli import main
from konverge.cli.manifests import Release, files_of
from konverge.manager import Operator
from konverge_operators.webapp.operator import operator

RELEASE = Release(operator=operator, target="konverge_operators.webapp", namespace="home", image="webapp:1")
BARE = Release(
    operator=Operator(name="bare", controllers=()), target="bare.py", namespace="home", image="bare:1", replicas=1
)


def documents(release: Release) -> list[dict[str, Any]]:
    files = {name: text for name, text in files_of(release).items() if name.startswith("base/")}
    del files["base/kustomization.yaml"]
    return [document for text in files.values() for document in yaml.safe_load_all(text)]


def one(release: Release, kind: str) -> dict[str, Any]:
    found = [each for each in documents(release) if each["kind"] == kind]
    assert len(found) == 1
    return found[0]


def kinds(release: Release) -> set[str]:
    return {each["kind"] for each in documents(release)}


@pytest.mark.parametrize("release", [RELEASE, BARE], ids=["webapp", "bare"])
def test_everything_has_the_labels_of_the_release(release: Release) -> None:
    for each in documents(release):
        assert each["metadata"]["labels"].items() >= release.labels.items(), each["kind"]


@pytest.mark.parametrize("release", [RELEASE, BARE], ids=["webapp", "bare"])
def test_the_pod_is_hardened_probed_and_limited(release: Release) -> None:
    pod = one(release, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"livenessProbe", "readinessProbe"} <= set(container)
    assert "memory" in container["resources"]["limits"]
    grace = next(each for each in container["args"] if each.startswith("--grace="))
    assert pod["terminationGracePeriodSeconds"] > int(grace.partition("=")[2])


def test_the_arguments_of_the_container_are_options_of_run() -> None:
    (container,) = one(RELEASE, "Deployment")["spec"]["template"]["spec"]["containers"]
    command = main.get_command(Context(main), container["args"][0])
    assert command is not None
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {each.partition("=")[0] for each in container["args"][2:]} <= known


def test_services_target_ports_of_the_container() -> None:
    (container,) = one(RELEASE, "Deployment")["spec"]["template"]["spec"]["containers"]
    existing = {port["name"] for port in container["ports"]}
    targets = {
        port["targetPort"] for each in documents(RELEASE) if each["kind"] == "Service" for port in each["spec"]["ports"]
    }
    assert targets == existing == {"metrics", "webhooks"}


def test_an_operator_without_webhooks_has_no_webhook_objects() -> None:
    text = "".join(files_of(BARE).values())
    assert "webhook" not in text
    assert "secrets" not in text


def test_a_single_replica_has_no_disruption_budget_that_would_block_a_drain() -> None:
    assert "PodDisruptionBudget" not in kinds(BARE)
    assert one(RELEASE, "PodDisruptionBudget")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_no_rule_has_a_wildcard_and_secrets_are_written_by_name_only() -> None:
    rules = [rule for each in documents(RELEASE) if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    assert not [rule for rule in rules if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]]
    for rule in rules:
        if "secrets" in rule["resources"] and not {"get", "list", "watch"} >= set(rule["verbs"]):
            assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["webapp-operator-webhook-certificate"]


def test_webhooks_exclude_kube_system_and_the_operators_namespace() -> None:
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for hook in one(RELEASE, kind)["webhooks"]:
            (expression,) = hook["namespaceSelector"]["matchExpressions"]
            assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
            assert expression["values"] == ["kube-system", "home"]


def test_alert_rules_and_dashboards_are_installed_and_a_route_for_alerts_is_a_sample() -> None:
    files = {name: text for name, text in files_of(RELEASE).items() if name.startswith("monitoring/")}
    installed = yaml.safe_load(files["monitoring/kustomization.yaml"])["resources"]
    assert installed == ["servicemonitor.yaml", "alerts-webapp-operator.yaml", "dashboard-webapp-operator.yaml"]
    rules = yaml.safe_load(files["monitoring/alerts-webapp-operator.yaml"])
    assert (rules["kind"], rules["metadata"]["namespace"]) == ("PrometheusRule", "home")
    assert rules["metadata"]["labels"]["app.kubernetes.io/name"] == "webapp-operator"
    dashboard = yaml.safe_load(files["monitoring/dashboard-webapp-operator.yaml"])
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["webapp-operator.json"])["panels"]
    config = yaml.safe_load(files["monitoring/alertmanagerconfig-sample.yaml"])
    (receiver,) = config["spec"]["receivers"]
    assert receiver["name"] == config["spec"]["route"]["receiver"]
    (pager,) = receiver["pagerdutyConfigs"]
    assert pager["routingKey"] == {"name": "webapp-operator-pagerduty", "key": "routing-key"}
    plain = Release(operator=Operator(name="plain", controllers=()), target="plain", namespace="home", image="plain:1")
    assert "monitoring/alertmanagerconfig-sample.yaml" not in files_of(plain)


def test_without_an_output_folder_the_base_is_printed() -> None:
    printed = CliRunner().invoke(main, ["manifests", "konverge_operators.webapp", "--namespace", "home"])
    assert printed.exit_code == 0, printed.output
    assert {each["kind"] for each in yaml.safe_load_all(printed.output)} == kinds(RELEASE)


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = CliRunner().invoke(main, ["manifests", "konverge_operators.webapp", "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    names = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert names
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_the_image_runs_as_the_user_of_the_deployment_and_starts_konverge() -> None:
    lines = files_of(RELEASE)["Dockerfile"].splitlines()
    user = one(RELEASE, "Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}" in lines
    assert 'ENTRYPOINT ["konverge"]' in lines


@pytest.mark.parametrize("target", ["operators/webapp", "operators/webapp/operator.py:operator", "operators.webapp"])
def test_the_image_contains_the_folder_of_the_target(target: str) -> None:
    assert 'COPY ["operators", "./operators"]' in files_of(replace(RELEASE, target=target))["Dockerfile"].splitlines()


def test_an_operator_of_a_distribution_is_installed_into_the_image(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["manifests", "konverge_operators.webapp", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "Dockerfile").read_text().splitlines()
    assert "RUN pip install --no-cache-dir konverge-operators" in lines
    assert not [line for line in lines if line.startswith("COPY")]


# Invalid values


def generate(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["manifests", "konverge_operators.webapp", *arguments], env=env)


@pytest.mark.parametrize("flag", ["--namespace", "--watch"])
@pytest.mark.parametrize(
    "text", ["", "Shop", "a.b", "a_b", "-a", "x" * 64, "shop\nkind: Secret", "shop: x", "ä", " shop"]
)
def test_an_invalid_namespace_is_refused(flag: str, text: str) -> None:
    result = generate(flag, text)
    assert result.exit_code == 2
    assert "is not a valid namespace name: use lower-case letters" in result.output
    assert f"'{flag}' (env var: 'KONVERGE_{'NAMESPACE' if flag == '--namespace' else 'NAMESPACES'}')" in result.output


@pytest.mark.parametrize(
    "text",
    ["", "Web", "web:", "web:1 2", "web\nRUN rm", "web:1\n  args: []", "a//b", "/web", "web@sha256:1", "x" * 600],
)
def test_an_invalid_image_is_refused(text: str) -> None:
    for result in (generate("--image", text), generate(env={"KONVERGE_IMAGE": text or "-"})):
        assert result.exit_code == 2
        assert "'--image' (env var: 'KONVERGE_IMAGE')" in result.output
        assert "is not a valid image: use [HOST[:PORT]/]NAME[:TAG][@DIGEST]" in result.output


@pytest.mark.parametrize(
    "text",
    ["web", "web:1", "a/b_c/d-e:v1.2", "images.example.com:5000/a/web:1", f"web@sha256:{'0' * 64}", "localhost/a"],
)
def test_image_names_are_accepted_as_container_runtimes_accept_them(text: str) -> None:
    result = generate("--image", text)
    assert result.exit_code == 0, result.output
    (deployment,) = [each for each in yaml.safe_load_all(result.output) if each["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == text


@pytest.mark.parametrize("text", ["0", "-1", "101", "two", "1.5", "nan", "1e3", "9" * 30])
def test_an_invalid_number_of_replicas_is_refused(text: str) -> None:
    for result in (generate("--replicas", text), generate(env={"KONVERGE_REPLICAS": text})):
        assert result.exit_code == 2
        assert "'--replicas' (env var: 'KONVERGE_REPLICAS')" in result.output


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"namespace": "a\nb"}, "is not a valid namespace name"),
        ({"namespaces": ("ok", "")}, "is not a valid namespace name"),
        ({"image": "a\nRUN b"}, "is not a valid image"),
        ({"target": "a\nRUN b"}, "is not a valid target"),
        ({"replicas": 0}, "replicas must be at least 1"),
        (
            {"operator": Operator(name="x" * 60, controllers=())},
            "the operator's name has 60 characters, at most 54 are allowed",
        ),
    ],
)
def test_an_invalid_release_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        replace(RELEASE, **wrong)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("a_file", "'a_file' exists and is not a folder"),
        ("", "the folder is empty"),
        ("a_file/deploy", "cannot write a_file/deploy/base/namespace.yaml: Not a directory"),
        ("/proc/nope", "cannot write /proc/nope/base/namespace.yaml: No such file or directory"),
        ("a" * 300, ": File name too long"),
    ],
)
def test_a_folder_that_cannot_be_written_is_reported_in_one_line(
    place: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a_file").write_text("mine")
    result = generate("-o", place)
    assert result.exit_code in (1, 2)
    assert why in result.output.splitlines()[-1]
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a_file", "mine")]


@pytest.mark.parametrize("blocked", ["Dockerfile", "monitoring/servicemonitor.yaml", "base/operator.yaml"])
def test_if_one_file_cannot_be_written_none_is(blocked: str, tmp_path: Path) -> None:
    (tmp_path / blocked).mkdir(parents=True)
    (tmp_path / "base").mkdir(exist_ok=True)
    (tmp_path / "base" / "crds.yaml").write_text("older")
    before = {path: path.is_dir() or path.read_text() for path in tmp_path.rglob("*")}

    result = generate("-o", str(tmp_path))

    assert result.exit_code == 1
    assert result.output == f"Error: cannot write {tmp_path / blocked}: it is a folder\n"
    assert {path: path.is_dir() or path.read_text() for path in tmp_path.rglob("*")} == before


def test_existing_files_are_replaced_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "crds.yaml").write_text("older")
    (tmp_path / "base" / "mine.yaml").write_text("mine")
    assert generate("-o", str(tmp_path)).exit_code == 0
    assert "CustomResourceDefinition" in (tmp_path / "base" / "crds.yaml").read_text()
    assert (tmp_path / "base" / "mine.yaml").read_text() == "mine"
    assert not list(tmp_path.rglob(".*"))


def test_a_target_is_written_relative_to_the_folder_where_the_image_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from konverge.manager import Operator\noperator = Operator(name='spaced', controllers=())\n"
    folder = tmp_path / "my shop" / "operators"
    folder.mkdir(parents=True)
    (folder / "operator.py").write_text(source)
    for here, target in (
        (tmp_path, str(folder)),
        (tmp_path, "./my shop//operators"),
        (folder, "operator.py"),
        (folder, "."),
    ):
        monkeypatch.chdir(here)
        result = CliRunner().invoke(main, ["manifests", target, "-o", str(tmp_path / "out")])
        assert result.exit_code == 0, result.output
        lines = (tmp_path / "out" / "Dockerfile").read_text().splitlines()
        copied, expected = ("my shop", "my shop/operators") if here == tmp_path else ("operator.py", "operator.py")
        assert f'COPY ["{copied}", "./{copied}"]' in lines
        assert f'CMD ["run", "{expected}"]' in lines


def test_the_image_of_a_target_in_another_folder_is_built_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "there" / "elsewhere.py").write_text(
        "from konverge.manager import Operator\nother = Operator(name='elsewhere', controllers=())\n"
    )
    monkeypatch.chdir(tmp_path / "here")
    result = CliRunner().invoke(main, ["manifests", "../there/elsewhere.py:other"])
    assert result.exit_code == 0, result.output
    assert result.stderr == f"note: build the image in {tmp_path / 'there'}, the folder of the operator\n"
    (deployment,) = [each for each in yaml.safe_load_all(result.stdout) if each["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"][1] == "elsewhere.py:other"
