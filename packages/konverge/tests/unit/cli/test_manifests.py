"""`konverge manifests`: the generated files and what they guarantee."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Context
from click.testing import CliRunner, Result

from konverge.cli import main
from konverge.cli.manifests import Release, files_of
from konverge.cli.manifests.release import default_installation
from konverge.manager import Operator
from konverge.objects import Key
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
        is_shared = each["kind"] in ("Namespace", "CustomResourceDefinition")
        labels = release.shared_labels if is_shared else release.labels
        assert each["metadata"]["labels"].items() >= labels.items(), each["kind"]


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
    assert targets == {"metrics", "webhooks"}
    probes = {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")}
    assert existing == targets | probes
    assert probes == {"probes"}


def test_an_operator_without_webhooks_has_no_webhook_objects() -> None:
    text = "".join(files_of(BARE).values())
    assert "webhook" not in text
    assert "- secrets" not in text


def test_a_single_replica_has_no_disruption_budget_that_would_block_a_drain() -> None:
    assert "PodDisruptionBudget" not in kinds(BARE)
    assert one(RELEASE, "PodDisruptionBudget")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_no_rule_has_a_wildcard_and_secrets_are_written_by_name_only() -> None:
    rules = [rule for each in documents(RELEASE) if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    assert not [rule for rule in rules if any("*" in values for values in rule.values())]
    for rule in rules:
        if "secrets" in rule.get("resources", ()) and not {"get", "list", "watch"} >= set(rule["verbs"]):
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


# Network


def ingress_of(release: Release) -> dict[int, Any]:
    """Return the clients of each port; None for everybody."""
    policy = one(release, "NetworkPolicy")["spec"]
    assert policy["podSelector"] == one(release, "Deployment")["spec"]["selector"]
    assert policy["policyTypes"] == ["Ingress"]
    return {port["port"]: rule.get("from") for rule in policy["ingress"] for port in rule["ports"]}


def ports_of(release: Release) -> dict[str, int]:
    (container,) = one(release, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def test_metrics_are_open_to_namespaces_with_a_label_and_webhooks_and_probes_to_all() -> None:
    ports = ports_of(RELEASE)
    assert ingress_of(RELEASE) == {
        ports["metrics"]: [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
        ports["probes"]: None,
        ports["webhooks"]: None,
    }
    assert set(ingress_of(BARE)) == set(ports_of(BARE).values())


def test_with_addresses_of_api_servers_webhooks_have_no_other_clients() -> None:
    result = generate("--apiserver-cidr", "10.0.0.1/32", "--apiserver-cidr", "2001:db8::/64")
    (policy,) = [each for each in yaml.safe_load_all(result.output) if each["kind"] == "NetworkPolicy"]
    rule = next(each for each in policy["spec"]["ingress"] if each["ports"][0]["port"] == 9443)
    assert rule["from"] == [{"ipBlock": {"cidr": cidr}} for cidr in ("10.0.0.1/32", "2001:db8::/64")]


@pytest.mark.parametrize("text", ["", "10.0.0.1/8", "10.0.0.0/33", "api.example", "10.0.0.0/8\nx"])
def test_an_invalid_block_of_addresses_is_refused(text: str) -> None:
    result = generate("--apiserver-cidr", text)
    assert result.exit_code == 2
    assert "is not a block of addresses such as 10.0.0.0/16" in result.output


# Metrics


def test_metrics_are_protected_unless_asked_otherwise() -> None:
    monitor = yaml.safe_load(files_of(RELEASE)["monitoring/servicemonitor.yaml"])["spec"]["endpoints"][0]
    assert monitor["scheme"] == "https"
    assert "bearerTokenFile" in monitor
    roles = {each["metadata"]["name"]: each["rules"] for each in documents(RELEASE) if each["kind"] == "ClusterRole"}
    assert roles["webapp-operator-metrics-reader"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    granted = {(rule["resources"][0], *rule["verbs"]) for rule in roles["webapp-operator-metrics-auth"]}
    assert granted == {("tokenreviews", "create"), ("subjectaccessreviews", "create")}
    bound = {each["roleRef"]["name"] for each in documents(RELEASE) if each["kind"] == "ClusterRoleBinding"}
    assert "webapp-operator-metrics-auth" in bound
    assert not [name for name in bound if name.endswith("-reader")]
    (container,) = one(RELEASE, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--insecure-metrics" not in container["args"]


def test_unprotected_metrics_need_no_rights() -> None:
    release = replace(RELEASE, insecure_metrics=True)
    (container,) = one(release, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--insecure-metrics" in container["args"]
    assert "tokenreviews" not in files_of(release)["base/rbac.yaml"]
    monitor = yaml.safe_load(files_of(release)["monitoring/servicemonitor.yaml"])["spec"]["endpoints"][0]
    assert monitor == {"port": "metrics", "path": "/metrics", "interval": "30s"}


# Installations


def identities(release: Release) -> set[tuple[str, str, str]]:
    found = documents(release)
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in found}


@pytest.mark.parametrize("namespaces", [("home", "home"), ("a-system", "b-system")], ids=["same", "own"])
def test_two_installations_share_no_object_but_an_equal_namespace(namespaces: tuple[str, str]) -> None:
    one, other = (
        replace(RELEASE, namespaces=(tenant,), namespace=namespace)
        for tenant, namespace in zip(("tenant-a", "tenant-b"), namespaces, strict=True)
    )
    shared = identities(one) & identities(other)
    assert shared == ({("Namespace", "", "home")} if namespaces[0] == namespaces[1] else set())
    assert files_of(one)["base/namespace.yaml"] == files_of(other)["base/namespace.yaml"] or not shared
    assert "base/crds.yaml" not in files_of(one)
    assert "crds/crds.yaml" in files_of(one)


def test_without_conversion_the_crds_of_all_installations_are_equal() -> None:
    plain = replace(RELEASE, operator=replace(operator, webhooks=()), namespaces=("tenant-a",))
    assert files_of(plain)["crds/crds.yaml"] == files_of(replace(plain, namespaces=("b", "c")))["crds/crds.yaml"]


def test_an_installation_has_a_name_of_its_own() -> None:
    assert default_installation("shop", ()) == "shop"
    assert default_installation("shop", ("a",)) == "shop-a"
    several = {default_installation("shop", names) for names in [("a", "b"), ("a-b",), ("a", "b", "c"), ("a", "b-c")]}
    assert len(several) == 4
    assert default_installation("shop", ("b", "a")) == default_installation("shop", ("a", "b"))
    long = {default_installation("x" * 40, ("y" * 60 + end,)) for end in "ab"}
    assert len(long) == 2
    assert all(len(name) <= 54 for name in long)


def test_an_installation_knows_its_name_and_its_namespace() -> None:
    result = generate("--watch", "tenant-a")
    (deployment,) = [each for each in yaml.safe_load_all(result.output) if each["kind"] == "Deployment"]
    assert deployment["metadata"]["namespace"] == "webapp-operator-tenant-a-system"
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "--installation=webapp-operator-tenant-a" in container["args"]
    serving = operator.serving("home", installation="webapp-operator-tenant-a")
    release = replace(RELEASE, namespaces=("tenant-a",))
    assert serving.service == Key("home", release.address.service)
    generated = {(each["kind"], each["metadata"]["name"]) for each in documents(release)}
    assert {(each.kind.kind, each.name) for each in serving.targets if each.service is None} <= generated
    names = {name for each in documents(release) if each["kind"] == "Role" for rule in each["rules"]
             for name in rule.get("resourceNames", ())}  # fmt: skip
    assert serving.secret is not None
    assert {serving.secret.name, release.name} <= names


def test_webhooks_select_the_watched_namespaces_only() -> None:
    release = replace(RELEASE, namespaces=("tenant-a", "tenant-b"))
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for hook in one(release, kind)["webhooks"]:
            expressions = {each["operator"]: each["values"] for each in hook["namespaceSelector"]["matchExpressions"]}
            assert expressions == {"NotIn": ["kube-system", "home"], "In": ["tenant-a", "tenant-b"]}


def test_alerts_of_an_installation_are_about_its_own_lease() -> None:
    release = replace(RELEASE, namespaces=("tenant-a",))
    rules = files_of(release)["monitoring/alerts-webapp-operator.yaml"]
    assert 'lease="webapp-operator-tenant-a"' in rules
    assert 'lease="webapp-operator"' not in rules
    assert yaml.safe_load(rules)["metadata"]["name"] == "webapp-operator-tenant-a-webapp-operator"


# The image

DIGEST = "python@sha256:" + "0123456789abcdef" * 4
HASH = "sha256:" + "ab" * 32
PINNED = f"""\
# generated
--index-url https://index.example/simple
konverge==0.1.0 \\
    --hash={HASH} \\
    --hash=sha256:{"cd" * 32}
    # via nobody
Konverge_Operators[extra]==0.1.0 ; python_version > "3" --hash={HASH}
msgspec==0.20.0 --hash {HASH}
"""


def test_a_base_image_is_pinned_or_a_comment_says_how() -> None:
    lines = files_of(replace(RELEASE, base_image=DIGEST))["Dockerfile"].splitlines()
    assert [line for line in lines if line.startswith("FROM ")] == [f"FROM {DIGEST}"]
    plain = files_of(RELEASE)["Dockerfile"]
    assert "pass --base-image python@sha256:..." in plain
    assert not re.search("sha256:[0-9a-f]", plain)


@pytest.mark.parametrize("text", ["", "python", "python:3.12", "python@sha256:12", f"python@sha512:{'0' * 128}"])
def test_a_base_image_without_a_digest_is_refused(text: str) -> None:
    result = generate("--base-image", text)
    assert result.exit_code == 2
    assert "'--base-image' (env var: 'KONVERGE_BASE_IMAGE')" in result.output


def test_requirements_with_hashes_are_installed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pins").mkdir()
    Path("pins/requirements.txt").write_text(PINNED)
    result = generate("--requirements", "pins/requirements.txt", "-o", "out")
    assert result.exit_code == 0, result.output
    lines = Path("out/Dockerfile").read_text().splitlines()
    assert 'COPY ["pins/requirements.txt", "./requirements.txt"]' in lines
    installs = [line for line in lines if line.startswith("RUN")]
    assert installs == ["RUN pip install --no-cache-dir --require-hashes --requirement requirements.txt"]
    found = {each["name"]: each for each in json.loads(Path("out/sbom.cdx.json").read_text())["components"]}
    assert {name: each["version"] for name, each in found.items()} == {
        "konverge": "0.1.0",
        "konverge-operators": "0.1.0",
        "msgspec": "0.20.0",
    }
    assert [each["content"] for each in found["konverge"]["hashes"]] == ["ab" * 32, "cd" * 32]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "has no requirements"),
        ("konverge==0.1.0\n", "'konverge==0.1.0' has no version with sha256 hashes"),
        ("-r other.txt\n", "'-r other.txt' has no version with sha256 hashes"),
        ("--requirement other.txt\n", "has no version with sha256 hashes"),
        (f"konverge>=0.1.0 --hash={HASH}\n", "has no version with sha256 hashes"),
        (f"konverge==0.1.0 --hash={HASH}\n", "does not install konverge-operators"),
        (f"msgspec==0.20.0 --hash={HASH}\n", "does not install konverge"),
    ],
)
def test_requirements_that_are_not_pinned_are_refused(
    content: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("requirements.txt").write_text(content)
    result = generate("--requirements", "requirements.txt")
    assert result.exit_code == 1
    assert why in result.output


def test_requirements_must_be_in_the_folder_where_the_image_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "requirements.txt").write_text(PINNED)
    monkeypatch.chdir(tmp_path / "here")
    result = generate("--requirements", "../requirements.txt")
    assert result.exit_code == 1
    assert f"is not in {tmp_path / 'here'}, the folder where the image is built" in result.output


def test_the_bill_of_materials_lists_what_is_installed_and_what_needs_what() -> None:
    release = replace(RELEASE, requirement="konverge-operators", base_image=DIGEST)
    document = json.loads(files_of(release)["sbom.cdx.json"])
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    components = {each["name"]: each for each in document["components"]}
    assert {"konverge", "konverge-operators", "msgspec", "aiohttp", "yarl", "cryptography"} <= set(components)
    assert "pytest" not in components
    assert "konverge-cluster" not in components, "an extra that the image does not have"
    for name, each in components.items():
        if each["type"] == "library":
            assert each["version"] == version(name)
            assert each["purl"] == f"pkg:pypi/{name}@{each['version']}"
    assert components["python"]["version"] == DIGEST.partition("@")[2]
    graph = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    refs = {each["bom-ref"] for each in components.values()} | {"operator"}
    assert {ref for ref, needed in graph.items() for ref in (ref, *needed)} <= refs
    assert len(refs) == len(components) + 1
    reached, waiting = set[str](), ["operator"]
    while waiting:
        reached.add(waiting[-1])
        waiting += [ref for ref in graph.get(waiting.pop(), ()) if ref not in reached]
    assert reached == refs, "nothing is listed that nothing needs"


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
