"""`konverge run` on the embedded and a real server: what is missing is one line, with the namespace and what to do."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge import Client, load_config
from konverge.k8s.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from konverge.objects import Unstructured
from konverge_cluster import EmbeddedServer
from programs import program

pytestmark = pytest.mark.real_time

OPERATOR = '''
from konverge import Context, CustomResource, Operator, Spec, Status, controller_for
from konverge.k8s.core.v1 import Secret

class Slate(CustomResource[Spec, Status], group="run.konverge.dev", version="v1"):
    """A slate."""

@controller_for(Slate).needs(Secret, "get")
async def slates(slate: Slate, ctx: Context) -> None:
    pass

operator = Operator(name="slates", controllers=(slates,))
'''
GROUP = "rbac.authorization.k8s.io"
RULES = [
    {"apiGroups": ["run.konverge.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
]


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def server(request: pytest.FixtureRequest) -> Any:
    """A real server, or None for an embedded one, which starts in the loop of the test."""
    return request.getfixturevalue("control_plane") if request.param == "real" else None


@asynccontextmanager
async def kubeconfig_of(server: Any, folder: Path) -> AsyncIterator[Path]:
    """Yield the kubeconfig of an admin; the operator is beside it."""
    (folder / "app.py").write_text(OPERATOR)
    if server is not None:
        yield server.kubeconfig
        return
    async with EmbeddedServer() as embedded:
        embedded.write_kubeconfig(folder / "admin")
        yield folder / "admin"


async def lines_of_run(folder: Path, kubeconfig: Path, last: str, *options: str) -> list[str]:
    """Run the operator until it has logged `last`; return what the lines of warnings say."""
    arguments = ("run", "app.py", "--kubeconfig", str(kubeconfig), "--metrics-port", "0", *options)
    with program(*arguments, folder=folder, temporary=folder / "scratch") as run:
        output = await asyncio.to_thread(run.read_until, last)
        output += await asyncio.to_thread(run.end, signal.SIGTERM)
    return [line.partition("WARNING ")[2] for line in output.splitlines() if "WARNING " in line]


async def test_a_missing_crd_and_wrong_namespaces_are_one_line_each(server: Any, tmp_path: Path) -> None:
    options = ("-n", "default", "-n", "shpo", "--leader-elect", "--lease-namespace", "nowhere")
    async with kubeconfig_of(server, tmp_path) as kubeconfig:
        lines = await lines_of_run(tmp_path, kubeconfig, "correct --lease-namespace", *options)
    assert [line.partition("konverge.run: ")[2] for line in lines if "konverge.run: " in line] == [
        "the server does not serve Slate.run.konverge.dev/v1 yet: add --install-crds,"
        " or run `konverge crd app.py | kubectl apply -f -` (slates.run.konverge.dev)",
        "namespace 'shpo' does not exist yet: run `kubectl create namespace shpo`, or correct --namespace",
        "namespace 'nowhere' does not exist yet: run `kubectl create namespace nowhere`, or correct --lease-namespace",
    ]


@pytest.mark.parametrize(
    ("options", "where"),
    [((), "all"), (("-n", "default", "-n", "kube-public"), '"default, kube-public"')],
    ids=["all", "two"],
)
async def test_a_missing_right_is_one_line(server: Any, tmp_path: Path, options: tuple[str, ...], where: str) -> None:
    async with kubeconfig_of(server, tmp_path) as kubeconfig:
        async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
            await grant(client, "mason")
        config = yaml.safe_load(kubeconfig.read_text())
        config["users"][0]["user"]["as"] = "mason"
        (tmp_path / "mason").write_text(yaml.safe_dump(config))
        lines = await lines_of_run(tmp_path, tmp_path / "mason", "permissions missing", *options)
    assert [line for line in lines if "permissions missing" in line] == [
        f"konverge.manager: permissions missing: add this RBAC rule  user=mason  namespaces={where}"
        "  rule=\"{apiGroups: [''], resources: [secrets], verbs: [get]}\""
    ]


async def grant(client: Client, user: str) -> None:
    """Give a user all rights of the operator but one, and wait until the server decides by them."""
    metadata = {"name": user}
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": user}
    subjects = [{"apiGroup": GROUP, "kind": "User", "name": user}]
    kind = {"apiVersion": f"{GROUP}/v1", "metadata": metadata}
    await client.apply(Unstructured(kind="ClusterRole", rules=RULES, **kind))
    await client.apply(Unstructured(kind="ClusterRoleBinding", roleRef=role, subjects=subjects, **kind))
    asked = ResourceAttributes(verb="create", group="events.k8s.io", resource="events")
    review = SubjectAccessReview(spec=SubjectAccessReviewSpec(user=user, resource_attributes=asked))
    async with asyncio.timeout(60):
        while not (await client.create(review)).status.allowed:
            pass
