"""S4, T35: what `konverge manifests` writes, taken by a real cluster, and harmless when nobody serves."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from konverge import Client, ObjectMeta, load_config
from konverge.cli import main
from konverge.cli.manifests import Release, files_of
from konverge.client import is_deployment_complete
from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Container, Pod, PodSpec
from konverge.manager import Operator
from konverge.objects import Kind
from konverge.schema import to_yaml
from konverge.testing import ControlPlane
from konverge.webhooks import AdmissionRequest, validating
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.operator import operator
from webapps import optional_crd, webapp

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("control_plane")]

LIMIT = 120.0
HOME = "webapp-operator-system"
GUARDED = "pod-guard-system"
STUBS = [
    Kind("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    Kind("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
    Kind("monitoring.coreos.com", "v1alpha1", "AlertmanagerConfig", "alertmanagerconfigs"),
]


@validating(Pod)
def guard(pod: Pod, old: Pod | None, request: AdmissionRequest) -> None:
    """Look at every pod: what an operator must be that can bring a whole cluster down."""


GUARD = Operator(name="pod-guard", controllers=(), webhooks=(guard,))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(controller_manager=True) as plane:
        yield plane


@pytest.fixture(scope="module")
def folder(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes for the WebApp operator, applied once; a warning would be an error."""
    folder = tmp_path_factory.mktemp("deploy")
    written = CliRunner().invoke(main, ["manifests", "konverge_operators.webapp", "-o", str(folder)])
    assert written.exit_code == 0, written.output
    applied = plane.kubectl("apply", "--warnings-as-errors", "-k", str(folder / "base"))
    assert {line.rpartition(" ")[2] for line in applied.splitlines()} == {"created"}
    return folder


def specified(plane: ControlPlane, folder: Path) -> list[Any]:
    """Give what is there of a folder, but for what others write: status, versions, who manages what."""
    answer = json.loads(plane.kubectl("get", "-k", str(folder), "-o", "json"))
    found: list[Any] = answer["items"] if answer["kind"] == "List" else [answer]
    for one in found:
        one.pop("status", None)
        for name in ("resourceVersion", "managedFields", "generation"):  # of a Deployment, annotations count too
            one["metadata"].pop(name, None)
        for name in ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"):
            one["metadata"].get("annotations", {}).pop(name, None)
    return found


@pytest.mark.parametrize("way", [(), ("--server-side",), ("--server-side", "--field-manager=gitops")])
def test_what_is_applied_again_changes_nothing(plane: ControlPlane, folder: Path, way: tuple[str, ...]) -> None:
    before = specified(plane, folder / "base")
    plane.kubectl("apply", "--warnings-as-errors", *way, "-k", str(folder / "base"))
    assert specified(plane, folder / "base") == before


def test_a_strict_server_knows_every_field(plane: ControlPlane, folder: Path) -> None:
    plane.kubectl("apply", "--validate=strict", "--dry-run=server", "-k", str(folder / "base"))


def test_the_monitoring_is_taken_where_its_kinds_are_known(plane: ControlPlane, folder: Path) -> None:
    for crd in map(optional_crd, STUBS):
        plane.kubectl("apply", "-f", "-", input=to_yaml(crd))
        plane.kubectl("wait", "--for=condition=Established", f"crd/{crd.name}", "--timeout=60s")
    plane.kubectl("apply", "--warnings-as-errors", "-k", str(folder / "monitoring"))
    plane.kubectl("apply", "--warnings-as-errors", "-f", str(folder / "monitoring" / "alertmanagerconfig-sample.yaml"))
    found = plane.kubectl("get", "prometheusrules,configmaps,alertmanagerconfigs", "-n", HOME, "-o", "name").split()
    group = "monitoring.coreos.com"
    expected = {f"{one}.{group}/webapp-operator" for one in ("prometheusrule", "alertmanagerconfig")}
    assert {*expected, "configmap/webapp-operator-dashboard"} <= set(found)
    before = specified(plane, folder / "monitoring")
    assert "unchanged" in plane.kubectl("apply", "-k", str(folder / "monitoring"))
    assert specified(plane, folder / "monitoring") == before


def pod_of(plane: ControlPlane, **changes: Any) -> dict[str, Any]:
    """Make a pod of the template of the operator's Deployment."""
    found = json.loads(plane.kubectl("get", "deployment", operator.name, "-n", HOME, "-o", "json"))
    template = found["spec"]["template"]
    metadata = {"namespace": HOME, "name": f"by-hand-{uuid.uuid4().hex[:8]}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"], **changes}}


def test_the_restricted_level_takes_the_pod_of_the_deployment(plane: ControlPlane, folder: Path) -> None:
    assert folder.exists()
    taken = plane.request("POST", f"/api/v1/namespaces/{HOME}/pods?dryRun=All", body=pod_of(plane))
    assert taken.status == 201, taken.body


@pytest.mark.parametrize("part", ["runAsNonRoot", "seccompProfile"])
def test_the_restricted_level_would_say_no(plane: ControlPlane, folder: Path, part: str) -> None:
    assert folder.exists()
    context = dict(pod_of(plane)["spec"]["securityContext"])
    del context[part]
    refused = plane.request(
        "POST", f"/api/v1/namespaces/{HOME}/pods?dryRun=All", body=pod_of(plane, securityContext=context)
    )
    assert refused.status == 403
    assert 'violates PodSecurity "restricted:latest"' in refused.json()["message"]
    assert part in refused.json()["message"]


# T35: nobody serves, and the policy is Fail


@pytest.mark.real_time(limit=300)
async def test_without_the_operator_its_kind_is_refused_but_for_the_namespaces_that_must_work(
    plane: ControlPlane, folder: Path
) -> None:
    assert folder is not None
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        for namespace in ("kube-system", HOME):
            app = webapp("kept")
            app.metadata.namespace = namespace
            await client.create(app)
            await client.patch(WebApp, "kept", {"spec": {"replicas": 3}}, namespace=namespace)
            await client.delete(WebApp, "kept", namespace=namespace)
        with pytest.raises(KonvergeError, match="failed calling webhook"):
            await client.create(webapp("refused"))


def pod(name: str, namespace: str) -> Pod:
    metadata = ObjectMeta(name=name, namespace=namespace)
    return Pod(metadata=metadata, spec=PodSpec(containers=[Container(name="a", image="nginx:1.25")]))


async def refuses_pods(client: Client) -> None:
    """Wait until the server knows of the webhook, which nobody answers."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                await client.using(dry_run=True).create(pod("probe", "default"))
            except KonvergeError as error:
                if "failed calling webhook" in str(error):
                    return
            await asyncio.sleep(0.2)


@pytest.mark.real_time(limit=400)
async def test_without_an_operator_that_looks_at_every_pod_the_cluster_and_its_own_roll_out_still_work(
    plane: ControlPlane, tmp_path: Path
) -> None:
    release = Release(operator=GUARD, target="guard", namespace=GUARDED, image="guard:1")
    for name, text in files_of(release).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    async with (
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client,
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as nodes,
    ):
        try:
            await asyncio.to_thread(plane.kubectl, "apply", "-k", str(tmp_path / "base"))
            await refuses_pods(client)
            await client.create(pod("kept", "kube-system"))
            async with SimulatedNodes(nodes, nodes=2).running():
                await client.wait_for(
                    Deployment, GUARD.name, is_deployment_complete(), namespace=GUARDED, timeout=LIMIT
                )
                newer = {"spec": {"template": {"spec": {"containers": [{"name": "operator", "image": "guard:2"}]}}}}
                await client.patch(Deployment, GUARD.name, newer, namespace=GUARDED, patch_type="strategic")
                await client.wait_for(
                    Deployment, GUARD.name, is_deployment_complete(), namespace=GUARDED, timeout=LIMIT
                )
        finally:
            await asyncio.to_thread(plane.kubectl, "delete", "--wait=false", "-k", str(tmp_path / "base"))
