"""`konverge manifests`: what is written, and what every part of it promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from operators.webapp.operator import operator

from konverge.cli import main
from konverge.cli.manifests import Release, files_of
from konverge.manager import Operator

RELEASE = Release(operator=operator, target="operators/webapp", namespace="home", image="webapp:1")
BARE = Release(
    operator=Operator(name="bare", controllers=()), target="bare.py", namespace="home", image="bare:1", replicas=1
)


def documents(release: Release) -> list[dict[str, Any]]:
    files = {name: text for name, text in files_of(release).items() if name.startswith("base/")}
    del files["base/kustomization.yaml"]
    return [one for text in files.values() for one in yaml.safe_load_all(text)]


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
    command = main.commands[container["args"][0]]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {each.partition("=")[0] for each in container["args"][2:]} <= known


def test_services_lead_to_ports_that_the_container_has() -> None:
    (container,) = one(RELEASE, "Deployment")["spec"]["template"]["spec"]["containers"]
    there = {port["name"] for port in container["ports"]}
    asked = {
        port["targetPort"] for each in documents(RELEASE) if each["kind"] == "Service" for port in each["spec"]["ports"]
    }
    assert asked == there == {"metrics", "webhooks"}


def test_an_operator_without_webhooks_gets_nothing_for_them() -> None:
    text = "".join(files_of(BARE).values())
    assert "webhook" not in text
    assert "secrets" not in text


def test_a_single_replica_has_no_budget_that_would_keep_its_node_from_being_drained() -> None:
    assert "PodDisruptionBudget" not in kinds(BARE)
    assert one(RELEASE, "PodDisruptionBudget")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_no_rule_holds_a_star_and_secrets_are_read_by_name_only() -> None:
    rules = [rule for each in documents(RELEASE) if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    assert not [rule for rule in rules if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]]
    for rule in rules:
        if "secrets" in rule["resources"]:
            assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["webapp-operator-webhook-certificate"]


def test_webhooks_leave_kube_system_and_the_own_namespace_alone() -> None:
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for hook in one(RELEASE, kind)["webhooks"]:
            (claim,) = hook["namespaceSelector"]["matchExpressions"]
            assert (claim["key"], claim["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
            assert claim["values"] == ["kube-system", "home"]


def test_without_a_folder_the_base_is_printed_as_one_stream() -> None:
    printed = CliRunner().invoke(main, ["manifests", "operators.webapp", "--namespace", "home"])
    assert printed.exit_code == 0, printed.output
    assert {each["kind"] for each in yaml.safe_load_all(printed.output)} == kinds(RELEASE)


def test_what_is_written_twice_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = CliRunner().invoke(main, ["manifests", "operators.webapp", "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    names = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert names
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_the_image_runs_as_nobody_and_starts_what_the_deployment_starts() -> None:
    lines = files_of(RELEASE)["Dockerfile"].splitlines()
    user = one(RELEASE, "Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}" in lines
    assert 'ENTRYPOINT ["konverge"]' in lines


@pytest.mark.parametrize("target", ["operators/webapp", "operators/webapp/operator.py:operator", "operators.webapp"])
def test_the_image_holds_the_folder_that_the_target_is_in(target: str) -> None:
    assert "COPY operators ./operators" in files_of(replace(RELEASE, target=target))["Dockerfile"].splitlines()
