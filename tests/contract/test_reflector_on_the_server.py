"""Promises C1, C4, C5 and C6 on a real API server: what is followed ends equal to it, whatever happens on the way."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cache.events import EventType
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState
from konverge.cache.store import Store
from konverge.client import Client, is_deleted, load_config
from konverge.errors import Forbidden, NotFound, Unauthorized, UnknownKind
from konverge.objects import Kind, Unstructured
from konverge.testing import ControlPlane
from konverge.testing.faults import Fault
from konverge.testing.raw_proxy import RawProxy
from konverge.wire.list_watch import Selection
from rigs import CONFIG_MAP, EventRecorder, Rig, WatchedCollection, real_rig, reflector_options, running

TENTH = 0.1
WIDGET = Kind("reflector.example.com", "v1", "Widget", "widgets")


@pytest.fixture(scope="module")
def own_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A server that may be killed, and that keeps no history of config maps beside etcd's."""
    assert control_plane is not None
    with ControlPlane(extra_flags=["--watch-cache-sizes=configmaps#0"]) as plane:
        yield plane


@pytest.fixture
def own_namespace(own_plane: ControlPlane) -> str:
    made = own_plane.request("POST", "/api/v1/namespaces", body={"metadata": {"generateName": "test-"}})
    return str(made.json()["metadata"]["name"])


def restart(plane: ControlPlane) -> None:
    plane.stop_apiserver()
    plane.start_apiserver()


async def test_a_collection_is_followed(own_plane: ControlPlane, own_namespace: str) -> None:
    async with real_rig(own_plane, own_namespace, TENTH) as rig:
        await rig.create("a", "b")
        async with rig.watching() as it:
            await rig.create("c")
            await rig.change("a")
            await rig.delete("b")

            await rig.becomes_equal(it, within=20)
            assert it.recorder.types("a") == [EventType.ADDED, EventType.UPDATED]
            assert it.recorder.types("b") == [EventType.ADDED, EventType.DELETED]
            assert len(rig.script.log) == 1, "one streaming list for all of it"


async def test_a_version_compacted_while_the_watch_stood_still_loses_no_delete(
    own_plane: ControlPlane, own_namespace: str
) -> None:
    async with real_rig(own_plane, own_namespace, TENTH) as rig:
        await rig.create("a", "b", "c")
        async with rig.watching() as it:
            resume = await rig.pause()
            await rig.delete("a")
            await rig.delete("b")
            await rig.create("b")
            await asyncio.to_thread(own_plane.compact)
            resume()

            await rig.becomes_equal(it, within=100)
            assert it.recorder.types("a") == [EventType.ADDED, EventType.DELETED]
            assert it.recorder.types("b") == [EventType.ADDED, EventType.DELETED, EventType.ADDED]
            assert len(rig.lists()) == 2


async def test_a_server_killed_in_the_middle_of_a_watch_loses_nothing(
    own_plane: ControlPlane, own_namespace: str
) -> None:
    async with real_rig(own_plane, own_namespace, TENTH) as rig:
        await rig.create("a", "b")
        async with rig.watching() as it:
            await asyncio.to_thread(own_plane.stop_apiserver)
            await rig.until(lambda: it.stats.error is not None, within=20)
            assert it.names() == {"a", "b"}, "what is known is kept"
            await asyncio.to_thread(own_plane.start_apiserver)
            await rig.delete("a")
            await rig.create("c")

            await rig.becomes_equal(it, within=100)
            assert len(rig.lists()) == 1
            await rig.until(lambda: it.stats.error is None, within=60)


async def test_a_server_killed_in_the_middle_of_a_list_is_asked_for_the_rest_of_it(
    own_plane: ControlPlane, own_namespace: str
) -> None:
    names = [f"c{number:02}" for number in range(30)]
    async with real_rig(own_plane, own_namespace, TENTH) as rig:
        await rig.create(*names)
        it = rig.watched_collection(selection=Selection(page_size=5, streaming=False))
        rig.script.add(lambda asked: "continue" in asked.query, Fault(delay=0.1))
        async with running(it.reflector):
            await rig.until(lambda: it.stats.pages == 3, within=100)
            await asyncio.to_thread(restart, own_plane)
            await rig.delete(names[0], names[-1])

            await rig.becomes_equal(it, within=100)
            assert len(rig.lists()) == 1, "the token outlives the server"


async def test_a_list_whose_token_is_compacted_starts_again(own_plane: ControlPlane, own_namespace: str) -> None:
    names = [f"c{number:02}" for number in range(30)]
    async with real_rig(own_plane, own_namespace, TENTH) as rig:
        await rig.create(*names)
        it = rig.watched_collection(selection=Selection(page_size=5, streaming=False))
        rig.script.add(lambda asked: "continue" in asked.query, Fault(delay=0.1), times=4)
        async with running(it.reflector):
            await rig.until(lambda: it.stats.pages == 3, within=100)
            await rig.delete(names[0], names[-1])
            await asyncio.to_thread(own_plane.compact)

            await rig.becomes_equal(it, within=100)
            assert len(rig.lists()) == 2
            assert not it.recorder.types(names[0])


async def test_a_half_open_connection_is_replaced(control_plane: ControlPlane, namespace: str) -> None:
    async with (
        RawProxy(control_plane) as proxy,
        Client.connect(proxy.config) as through,
        Client.connect(load_config(kubeconfig=control_plane.kubeconfig)) as server,
    ):
        rig = Rig(server, through, None, namespace, 0.05)
        async with rig.watching() as it:
            assert proxy.pause() >= 1
            await rig.create("a", "b")

            await rig.becomes_equal(it, within=50)
            assert it.stats.lists == 1
            assert it.stats.failures == 0, "silence alone is no trouble"


# Who we are


@asynccontextmanager
async def reflecting(config: Path, namespace: str) -> AsyncIterator[tuple[WatchedCollection, RawProxy]]:
    """Follow the config maps of a namespace as the user of a kubeconfig."""
    async with RawProxy(load_config(kubeconfig=config)) as proxy, Client.connect(proxy.config) as client:
        store, recorder = Store(CONFIG_MAP, namespace=namespace), EventRecorder()
        store.subscribe(recorder)
        source = client.collection(CONFIG_MAP, namespace=namespace)
        reflector = Reflector(source, store, kind="ConfigMap", options=reflector_options(TENTH))
        async with running(reflector):
            yield WatchedCollection(store, recorder, reflector), proxy


def grant(plane: ControlPlane, namespace: str, subject: dict[str, str], *verbs: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}
    made = [
        ("roles", {"metadata": {"name": "follow"}, "rules": [rule]}),
        (
            "rolebindings",
            {
                "metadata": {"name": "follow"},
                "subjects": [subject],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "follow"},
            },
        ),
    ]
    for plural, body in made:
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"
        assert plane.request("POST", path, body=body).status == 201


async def test_a_watch_that_is_forbidden_says_what_is_missing_and_recovers_when_it_is_granted(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = {"kind": "User", "name": "reflecting", "apiGroup": "rbac.authorization.k8s.io"}
    kubeconfig = control_plane.kubeconfig_for("reflecting")
    admin = Client.connect(load_config(kubeconfig=control_plane.kubeconfig))
    async with admin, reflecting(kubeconfig, namespace) as (it, _):
        rig = Rig(admin, admin, None, namespace, TENTH)
        await rig.create("a")
        await rig.until(lambda: it.stats.error is not None, within=20)
        assert isinstance(it.stats.error, Forbidden)
        assert it.stats.error.needs == "watch on configmaps"
        assert not it.stats.synced

        await asyncio.to_thread(grant, control_plane, namespace, user, "list", "watch")

        await rig.becomes_equal(it, within=100)
        await rig.until(lambda: it.stats.error is None, within=60)


async def test_a_token_that_is_revoked_is_said_and_its_successor_is_used(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    subject = {"kind": "ServiceAccount", "name": "reflecting", "namespace": namespace}
    token = tmp_path / "token"

    def make_account() -> None:
        assert control_plane.request("POST", account, body={"metadata": {"name": "reflecting"}}).status == 201

    def issue_token() -> None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        made = control_plane.request("POST", f"{account}/reflecting/token", body=body)
        token.write_text(made.json()["status"]["token"])

    await asyncio.to_thread(make_account)
    await asyncio.to_thread(issue_token)
    await asyncio.to_thread(grant, control_plane, namespace, subject, "list", "watch")
    admin = Client.connect(load_config(kubeconfig=control_plane.kubeconfig))
    async with admin, reflecting(_with_token(control_plane, token, tmp_path), namespace) as (it, proxy):
        rig = Rig(admin, admin, None, namespace, TENTH)
        await rig.create("a")
        await rig.becomes_equal(it, within=100)

        await asyncio.to_thread(control_plane.request, "DELETE", f"{account}/reflecting")
        await asyncio.to_thread(make_account)
        proxy.reset()  # a stream that is open lives on without its token
        await rig.until(lambda: isinstance(it.stats.error, Unauthorized), within=300)
        await rig.create("b")
        await asyncio.to_thread(issue_token)

        await rig.becomes_equal(it, within=300)
        assert it.stats.lists == 1


def _with_token(plane: ControlPlane, token: Path, tmp_path: Path) -> Path:
    ca = base64.b64encode(plane.ca_file.read_bytes()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": plane.url, "certificate-authority-data": ca}}],
        "users": [{"name": "test", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


# A kind that comes and goes


def crd() -> Unstructured:
    schema: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": WIDGET.plural, "singular": "widget", "kind": WIDGET.kind, "listKind": "WidgetList"}
    return Unstructured(
        apiVersion="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata={"name": WIDGET.resource},
        spec={"group": WIDGET.group, "scope": "Namespaced", "names": names, "versions": [version]},
    )


async def test_a_kind_that_comes_later_goes_away_and_comes_again_is_followed(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with Client.connect(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        rig = Rig(client, client, None, namespace, TENTH)
        it = rig.watched_collection(kind=WIDGET)
        async with running(it.reflector):
            await rig.until(lambda: isinstance(it.stats.error, NotFound), within=20)
            assert "is its CRD installed" in str(it.stats.error)

            await client.create(crd())
            await _create(client, namespace, "a", "b")
            await rig.until(lambda: it.names() == {"a", "b"}, within=300)
            await rig.until(lambda: it.stats.error is None, within=60)

            await client.delete("customresourcedefinitions.apiextensions.k8s.io", WIDGET.resource)
            await rig.until(lambda: it.names() == set(), within=300)
            await rig.until(lambda: isinstance(it.stats.error, NotFound), within=300)

            await _create_again(client)
            await _create(client, namespace, "b", "c")
            await rig.until(lambda: it.names() == {"b", "c"}, within=300)
            await rig.until(lambda: it.stats.state is ReflectorState.WATCHING, within=60)
        assert it.recorder.types("b") == [EventType.ADDED, EventType.DELETED, EventType.ADDED]
        await client.delete("customresourcedefinitions.apiextensions.k8s.io", WIDGET.resource)


async def _create_again(client: Client) -> None:
    """Create the definition as soon as the one that is being deleted is gone."""
    await client.wait_for("customresourcedefinitions.apiextensions.k8s.io", WIDGET.resource, is_deleted(), timeout=30)
    await client.create(crd())


async def _create(client: Client, namespace: str, *names: str) -> None:
    """Create widgets as soon as the server takes them."""
    for name in names:
        metadata = {"name": name, "namespace": namespace}
        widget = Unstructured(apiVersion=WIDGET.api_version, kind="Widget", metadata=metadata)
        async with asyncio.timeout(30):
            while not await _is_created(client, widget):  # noqa: ASYNC110 - nothing tells when a kind is served
                await asyncio.sleep(0.1)


async def _is_created(client: Client, widget: Unstructured) -> bool:
    try:
        await client.create(widget)
    except (NotFound, UnknownKind):
        return False
    return True
