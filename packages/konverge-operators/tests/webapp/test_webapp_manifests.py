"""G12, S3: the operator as deployed, with a token of its generated account, and the verbs that it uses."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import yaml

from konverge import Client, KonvergeError, ObjectMeta, Unstructured, load_config
from konverge.cli.manifests import Release, files_of
from konverge.client import ClientConfig, StaticCredentials, is_deleted
from konverge.errors import AlreadyExists, ServerError, TooManyRequests, TransportError
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Namespace, Secret
from konverge.manager import Endpoints, LeaderElection
from konverge.testing import ControlPlane
from konverge.testing.fault_proxy import FaultProxy
from konverge.testing.faults import Fault, RecordedRequest, status_response
from konverge.testing.servers import free_port
from konverge_cluster.nodes import SimulatedNodes
from konverge_operators.manifests import HTTP_ROUTE, POD_MONITOR
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1
from konverge_operators.webapp.operator import operator
from probe_requests import get
from webapps import optional_crd, webapp

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0
HOME = "webapp-operator-system"
ACCOUNT = f"system:serviceaccount:{HOME}:{operator.name}"
RELEASE = Release(operator=operator, target="konverge_operators.webapp", namespace=HOME, image="webapp-operator:1")

METRICS = Endpoints(f"127.0.0.1:{free_port()}", protected=True)


class Use(NamedTuple):
    """A verb on a resource, as in RBAC rules: the group, the resource with its subresource, the verb."""

    group: str
    resource: str
    verb: str


UNSEEN = {
    # Checked by the admission of owner references: see `owning_needs_a_permission`.
    Use("example.com", "webapps/finalizers", "update"),
    # For a stale cache: see packages/konverge/tests/unit/reconcile/test_preconditions.py.
    Use("autoscaling", "horizontalpodautoscalers", "get"),
    Use("gateway.networking.k8s.io", "httproutes", "get"),
    Use("monitoring.coreos.com", "podmonitors", "get"),
    Use("networking.k8s.io", "ingresses", "get"),
    Use("policy", "poddisruptionbudgets", "get"),
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A server with an audit log that enforces permissions for owner references."""
    enforced = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    with ControlPlane(controller_manager=True, audit=True, extra_flags=[enforced]) as plane:
        yield plane


# Generated permissions


def documents() -> list[Unstructured]:
    files = {name: text for name, text in files_of(RELEASE).items() if name.startswith("base/")}
    del files["base/kustomization.yaml"]
    return [Unstructured(one) for text in files.values() for one in yaml.safe_load_all(text)]


def rules() -> list[dict[str, Any]]:
    return [rule for one in documents() if one.kind in ("Role", "ClusterRole") for rule in one["rules"]]


def granted() -> set[Use]:
    return {
        Use(group, resource, verb)
        for rule in rules()
        if "apiGroups" in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


# Used permissions


def audit_lines(plane: ControlPlane) -> list[dict[str, Any]]:
    """Return the requests of the operator in the audit log, without those that every account may send."""
    whole, _, _ = plane.audit_log.read_text().rpartition("\n")  # the last line may be incomplete
    lines = [json.loads(line) for line in whole.splitlines()]
    mine = [one for one in lines if one["user"]["username"] == ACCOUNT and "objectRef" in one]
    return [one for one in mine if not one["objectRef"]["resource"].startswith("selfsubject")]


def uses_of(line: dict[str, Any]) -> set[Use]:
    """Return the permissions that a request needed; an apply that creates also needs create."""
    about = line["objectRef"]
    part = about.get("subresource")
    resource = about["resource"] + (f"/{part}" if part else "")
    verbs = {line["verb"]} | (
        {"create"} if line["verb"] == "patch" and line["responseStatus"]["code"] == 201 else set()
    )
    return {Use(about.get("apiGroup", ""), resource, verb) for verb in verbs}


def refusals(plane: ControlPlane) -> list[str]:
    return [f"{one['verb']} {one['requestURI']}" for one in audit_lines(plane) if one["responseStatus"]["code"] == 403]


# The operator


async def account_of(admin: Client, config: ClientConfig) -> ClientConfig:
    """Install the generated manifests; return the config of the operator's service account."""
    for one in documents():
        await admin.apply(one, force=True)
    token = await admin.create_token(operator.name, namespace=HOME)
    return replace(config, credentials=StaticCredentials.of_token(token.token), namespace=HOME)


@asynccontextmanager
async def running(config: ClientConfig, port: int, *hosts: str) -> AsyncGenerator[None]:
    """Run the operator as in its pod, except for the address of its webhooks.

    The lease is longer than any pause of this process: who loses it ends, which is right, and not the matter here.
    """
    election = LeaderElection(operator.name, HOME, lease_duration=120, renew_deadline=90)
    manager = operator.manager(config, leader_election=election, probes=METRICS)
    manager.serve_webhooks(replace(operator.serving(HOME, port=port), host="127.0.0.1", hosts=hosts))
    async with manager.running():
        yield


async def redirect(admin: Client, port: int) -> None:
    """Make the server call this process, because no pod runs behind the Service. The CA bundle stays."""
    for target in operator.serving(HOME).targets:
        found = await admin.get(target.kind, target.name)
        places = [one["clientConfig"] for one in found.get("webhooks", ())]
        if "conversion" in found.get("spec", {}):
            places.append(found["spec"]["conversion"]["webhook"]["clientConfig"])
        for place in places:
            assert place["caBundle"], "the operator has set the CA bundle"
            place["url"] = f"https://127.0.0.1:{port}{place.pop('service')['path']}"
        await admin.update(found)


# The scenario


async def until(claim: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LIMIT):
        while True:
            if await claim():
                return
            await asyncio.sleep(0.2)


async def create(client: Client, app: WebApp) -> None:
    """Create an application as soon as the server finds the webhooks.

    Until then it calls where nobody is; and a definition that was changed is served anew, which may cut requests.
    """
    app.metadata.namespace = client.options.namespace
    last: KonvergeError | None = None

    async def created() -> bool:
        nonlocal last
        try:
            await client.create(app)
        except AlreadyExists:
            if not isinstance(last, TransportError):
                raise
            # The response to the previous attempt was lost, but the object was created.
        except (ServerError, TooManyRequests, TransportError) as error:
            last = error
            return False
        return True

    try:
        await until(created)
    except TimeoutError:
        raise AssertionError(f"no application within {LIMIT:g} s: {last}") from last


async def ready(client: Client, size: int) -> None:
    def is_ready(app: Any) -> bool:
        return app is not None and app.status.phase is Phase.READY and app.status.available_replicas == size

    await client.wait_for(WebApp, "web", is_ready, timeout=LIMIT)


def sets_finalizer(asked: RecordedRequest) -> bool:
    return asked.method == "PATCH" and asked.path.endswith("/webapps/web")


def streams_a_list(asked: RecordedRequest) -> bool:
    return "sendInitialEvents" in asked.query


async def run_scenario(client: Client, proxy: FaultProxy) -> None:
    """Create, with a concurrent write while the finalizer is set; scale, prune, heal twice; delete."""
    proxy.script.add(sets_finalizer, Fault(delay=3), times=1)
    await create(client, webapp(ingress={"host": "a.example.com"}, autoscaling={"minReplicas": 2, "maxReplicas": 6}))

    async def on_its_way() -> bool:
        return bool(proxy.script.requests(sets_finalizer))

    await until(on_its_way)
    await client.patch(WebApp, "web", {"metadata": {"annotations": {"example.com/note": "another writer"}}})
    await ready(client, 2)
    assert (await client.get(WebAppV1Beta1, "web")).spec.size == 2

    await client.patch(WebApp, "web", {"spec": {"autoscaling": None, "ingress": None, "replicas": 3}})
    for plural in ("horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io"):
        await client.wait_for(plural, "web", is_deleted(), timeout=LIMIT)
    await ready(client, 3)
    for _ in range(2):  # the second time the event is repeated, and its count is written after some seconds
        await heals(client)

    async def is_repeated() -> bool:
        return any(event.get("series") for event in await client.list("events", namespace="shop"))

    await until(is_repeated)
    await client.delete(WebApp, "web")
    await client.wait_for(WebApp, "web", is_deleted(), timeout=LIMIT)


async def run_options(client: Client) -> None:
    """Use and remove what an application can have besides."""
    await client.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop"), data={"A": "b"}))
    await client.create(Secret(metadata=ObjectMeta(name="keys", namespace="shop"), string_data={"C": "d"}))
    references = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}]
    gateway = {"host": "a.example.com", "gateway": {"name": "public"}}
    await create(client, webapp(envFrom=references, monitoring={}, ingress=gateway))
    await ready(client, 2)
    await client.patch(WebApp, "web", {"spec": {"monitoring": None, "ingress": None}})
    for kind in (HTTP_ROUTE, POD_MONITOR):
        await client.wait_for(kind, "web", is_deleted(), timeout=LIMIT)
    await client.delete(WebApp, "web")
    await client.wait_for(WebApp, "web", is_deleted(), timeout=LIMIT)


async def read_metrics(token: str) -> None:
    """Read metrics as somebody who may; the operator asks the server who it is."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    port = int(METRICS.address.rpartition(":")[2])
    response = await get(port, "/metrics", tls=trusting, Authorization=f"Bearer {token}")
    assert response.status == 200, response.text
    assert "konverge_leader" in response.text


async def heals(client: Client) -> None:
    gone = await client.get(Deployment, "web")
    await client.delete(gone)
    await client.wait_for(Deployment, "web", lambda one: one is not None and one.uid != gone.uid, timeout=LIMIT)
    await ready(client, 3)


async def owning_needs_a_permission(admin: Client, client: Client) -> None:
    """Remove the one permission that no request shows; nothing can be owned until it is granted again."""
    role = next(one for one in documents() if one.kind == "ClusterRole" and one.name == operator.name)
    less = Unstructured({**role, "rules": [one for one in role["rules"] if one["resources"] != ["webapps/finalizers"]]})
    await admin.apply(less, force=True)
    await create(client, webapp(replicas=1))

    async def is_refused() -> bool:
        return "cannot set blockOwnerDeletion" in (await client.get(WebApp, "web")).status.last_error

    await until(is_refused)
    await admin.apply(role, force=True)
    await ready(client, 1)


@pytest.mark.real_time(limit=600)
async def test_every_generated_permission_is_used_and_no_other_is_needed(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    config, port = load_config(kubeconfig=plane.kubeconfig), free_port()
    async with Client.connect(config) as admin, SimulatedNodes(admin, nodes=2).running():
        await admin.create(Namespace(metadata=ObjectMeta(name="shop")))
        for kind in (HTTP_ROUTE, POD_MONITOR):
            await admin.create(optional_crd(kind))
        client = admin.using(namespace="shop")
        async with FaultProxy(await account_of(admin, config)) as proxy:
            async with running(proxy.config, port, "127.0.0.1"):
                await redirect(admin, port)
                await run_scenario(client, proxy)
                await run_options(client)
                await read_metrics(plane.admin_token)
            assert refusals(plane) == []
            assert [one for one in caplog.messages if "permissions missing" in one] == []
            # A server that does not stream lists, and a certificate that must be issued again.
            proxy.script.add(streams_a_list, status_response(400, reason="BadRequest"))
            async with running(proxy.config, port, "127.0.0.1", "localhost"):
                await owning_needs_a_permission(admin, client)
    used = {use for line in audit_lines(plane) for use in uses_of(line)}
    assert used - granted() == set(), "used without a permission"
    assert granted() - used == UNSEEN, "granted and never used"
