"""Two installations of one operator, for two namespaces, side by side: as generated, under their own accounts.

They run `konverge run` with the arguments of their Deployments, as their service accounts. Only the ports differ, and
the Services lead to this machine.
"""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from konverge import Client, load_config
from konverge.cli import main
from konverge.errors import KonvergeError, ServerError, TransportError
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import AnyObject
from konverge.testing import ControlPlane
from konverge.testing.servers import free_port
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1
from probe_requests import get
from programs import Program, program
from webapps import webapp

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("control_plane")]

LIMIT = 120.0
TENANTS = ("tenant-a", "tenant-b")
CONFIGURATIONS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


@dataclass
class Installation:
    """The generated files for one namespace, and the ports of the process that stands for its pods."""

    plane: ControlPlane
    folder: Path
    tenant: str

    def __post_init__(self) -> None:
        self.name = f"webapp-operator-{self.tenant}"
        self.namespace = f"{self.name}-system"
        self.metrics, self.probes, self.webhooks = free_port(), free_port(), free_port()

    def write(self) -> None:
        command = ["manifests", "konverge_operators.webapp", "--watch", self.tenant, "-o", str(self.folder)]
        written = CliRunner().invoke(main, command)
        assert written.exit_code == 0, written.output

    def apply(self, part: str) -> list[str]:
        """Apply a folder; return what happened to each object."""
        applied = self.plane.kubectl("apply", "--warnings-as-errors", "-k", str(self.folder / part))
        return [line.rpartition(" ")[2] for line in applied.splitlines()]

    def connect_services(self) -> None:
        """Make the Service lead to this machine: its pods are simulated, and the process runs here."""
        spec = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}}
        arguments = ("-n", self.namespace, "--type=merge", "-p", json.dumps(spec))
        self.plane.kubectl("patch", "service", f"{self.name}-webhooks", *arguments)
        step = [{"op": "add", "path": "/webhooks/0/clientConfig/service/port", "value": self.webhooks}]
        for kind in CONFIGURATIONS:
            self.plane.kubectl("patch", kind, self.name, "--type=json", "-p", json.dumps(step))

    def connect_conversion(self) -> None:
        at = "/spec/conversion/webhook/clientConfig/service/port"
        step = [{"op": "replace", "path": at, "value": self.webhooks}]
        self.plane.kubectl("patch", "crd", "webapps.example.com", "--type=json", "-p", json.dumps(step))

    def token(self, account: str) -> str:
        return self.plane.kubectl("create", "token", account, "-n", self.namespace).strip()

    def reader(self, role: str) -> str:
        """Return the token of a new account that is bound to a generated role."""
        account = f"{self.namespace}:{role}"
        self.plane.kubectl("create", "serviceaccount", role, "-n", self.namespace)
        self.plane.kubectl(
            "create", "clusterrolebinding", f"{self.name}-{role}", f"--clusterrole={self.name}-{role}",
            f"--serviceaccount={account}",
        )  # fmt: skip
        return self.token(role)

    def arguments(self, kubeconfig: Path) -> list[str]:
        """Return the arguments of the container, with the ports of this process."""
        found = yaml.safe_load_all((self.folder / "base" / "operator.yaml").read_text())
        (deployment,) = [one for one in found if one["kind"] == "Deployment"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        ports = {"--metrics-port": self.metrics, "--probe-port": self.probes, "--webhook-port": self.webhooks}
        own = [f"{flag}={port}" for flag, port in ports.items()]
        return [*container["args"], *own, f"--kubeconfig={kubeconfig}"]

    def kubeconfig(self) -> Path:
        """Write a kubeconfig with the token of the operator's account."""
        config = yaml.safe_load(self.plane.kubeconfig.read_text())
        config["users"] = [{"name": "operator", "user": {"token": self.token(self.name)}}]
        cluster = config["clusters"][0]["name"]
        config["contexts"] = [
            {"name": "own", "context": {"cluster": cluster, "user": "operator", "namespace": self.namespace}}
        ]
        config["current-context"] = "own"
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


@pytest.fixture(scope="module")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Installation, Installation]]:
    with ControlPlane(controller_manager=True) as plane:
        for tenant in (*TENANTS, "tenant-c"):
            plane.kubectl("create", "namespace", tenant)
        folder = tmp_path_factory.mktemp("installations")
        a, b = (Installation(plane, folder / tenant, tenant) for tenant in TENANTS)
        for each in (a, b):
            each.write()
        a.apply("crds")
        # Nothing is "configured": the second installation changes no object of the first one.
        assert set(a.apply("base")) == {"created"}
        assert set(b.apply("base")) == {"created"}
        yield a, b


def app_in(namespace: str, name: str = "web", **spec: Any) -> WebApp:
    app = webapp(name, **spec)
    app.metadata.namespace = namespace
    return app


def anything() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def until(claim: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LIMIT):
        while True:
            if await claim():
                return
            await asyncio.sleep(0.2)


async def created(client: Client, obj: AnyObject) -> Any:
    """Create an object as soon as the server reaches the webhooks."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                return await client.create(obj)
            except (ServerError, TransportError):
                await asyncio.sleep(0.2)


def start(each: Installation, stack: ExitStack) -> Program:
    # A pod has this variable; by it the process finds that others can reach its metrics.
    variables = {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    folder = each.folder
    arguments = each.arguments(each.kubeconfig())
    return stack.enter_context(program(*arguments, folder=folder, temporary=folder / "scratch", variables=variables))


async def is_ready(each: Installation) -> bool:
    try:
        return (await get(each.probes, "/readyz")).status == 200
    except OSError:
        return False


async def check_metrics(each: Installation) -> None:
    prometheus = await asyncio.to_thread(each.reader, "metrics-reader")
    developer = await asyncio.to_thread(each.reader, "debug-reader")

    async def status(path: str, token: str = "") -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return (await get(each.metrics, path, tls=anything(), **headers)).status

    async def may_read() -> bool:  # a binding takes a moment to be known
        return await status("/metrics", prometheus) == 200 and await status("/debug/why", developer) == 200

    await until(may_read)
    assert await status("/metrics") == 401
    assert await status("/debug/why") == 401
    assert await status("/metrics", developer) == 403
    assert await status("/debug/why", prometheus) == 403
    assert (await get(each.probes, "/metrics")).status == 404
    with pytest.raises(OSError):
        await get(each.metrics, "/metrics")
    (each.folder / "token").write_text(developer)
    place = ["--address", f"127.0.0.1:{each.metrics}", "--token-file", str(each.folder / "token")]
    result = await asyncio.to_thread(CliRunner().invoke, main, ["why", "webapp", *place])
    assert result.output == f"webapp  {each.tenant}/web\n"


@pytest.mark.real_time(limit=300)
async def test_two_installations_work_side_by_side(installations: tuple[Installation, Installation]) -> None:
    a, b = installations
    plane = a.plane
    async with (
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as admin,
        SimulatedNodes(admin, nodes=2).running(),
    ):
        with ExitStack() as stack:
            running = {}
            await asyncio.to_thread(a.connect_conversion)
            for each in (a, b):
                await asyncio.to_thread(each.connect_services)
                running[each.tenant] = await asyncio.to_thread(start, each, stack)
            for each in (a, b):
                await until(partial(is_ready, each))
            for each in (a, b):
                client = admin.using(namespace=each.tenant)
                app = await created(client, app_in(each.tenant))
                assert app.spec.resources is not None, "the mutating webhook has set them"
                with pytest.raises(KonvergeError, match="minReplicas 5 is greater than maxReplicas 2"):
                    await client.create(
                        app_in(each.tenant, "refused", autoscaling={"minReplicas": 5, "maxReplicas": 2})
                    )
                await client.wait_for(WebApp, "web", is_phase_ready, timeout=LIMIT)
                assert await client.get(Deployment, "web")
                # The first installation converts the objects of both: its CRDs were applied.
                assert (await client.get(WebAppV1Beta1, "web")).spec.size == 2
                await check_metrics(each)
            # Nobody watches this namespace, so nobody's webhook is called and nobody reconciles.
            other = await admin.create(app_in("tenant-c"))
            assert other.spec.resources is None
            # One installation that is down does not keep the other from its work.
            await asyncio.to_thread(running[b.tenant].end, signal.SIGTERM)
            assert running[b.tenant].process.returncode == 0
            await admin.create(app_in(a.tenant, "second"))
            with pytest.raises(KonvergeError, match="failed calling webhook"):
                await admin.create(app_in(b.tenant, "second"))
            found = await admin.get(WebApp, "web", namespace="tenant-c")
            assert found.status.phase is Phase.CREATED


def is_phase_ready(app: Any) -> bool:
    return app is not None and app.status.phase is Phase.READY


@pytest.mark.real_time(limit=120)
async def test_the_restricted_level_admits_the_pods_of_both(installations: tuple[Installation, Installation]) -> None:
    async with Client.connect(load_config(kubeconfig=installations[0].plane.kubeconfig)) as admin:
        for each in installations:

            def has_pods(found: Any) -> bool:
                return found is not None and found.status.replicas == 2

            await admin.wait_for(Deployment, each.name, has_pods, namespace=each.namespace, timeout=LIMIT)
