"""Every verb and every error of the client on a real API server; kubectl agrees on the result."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.client import (
    Client,
    ClientConfig,
    Impersonation,
    RetryPolicy,
    StaticCredentials,
    exists,
    field_equals,
    has_condition,
    is_deleted,
    load_config,
)
from konverge.errors import (
    AlreadyExists,
    ApplyConflict,
    ConfigError,
    Conflict,
    Expired,
    FieldConflict,
    Forbidden,
    Invalid,
    KonvergeError,
    NotFound,
    TooManyRequests,
    TransportError,
    Unauthorized,
    UnknownKind,
    WaitTimeout,
    WriteRefused,
)
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Namespace, Pod, Secret, ServiceAccount
from konverge.objects import Kind, Model, ObjectMeta, Resource, Unstructured, field, from_wire
from konverge.testing import ControlPlane
from konverge.testing.certificates import Authority

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


@asynccontextmanager
async def connected(plane: ControlPlane, namespace: str = "default", **options: Any) -> AsyncIterator[Client]:
    config = load_config(kubeconfig=plane.kubeconfig, namespace=namespace)
    async with Client.connect(config, **options) as client:
        yield client


def config_map(name: str = "a", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"app": "web"}), data=data)


def deployment(name: str = "web", replicas: int = 2, image: str = "web:1") -> Deployment:
    labels = {"app": name}
    return from_wire(
        Deployment,
        {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": image}]},
                },
            },
        },
    )


def pod(name: str = "p", **spec: Any) -> Unstructured:
    containers = [{"name": "c", "image": "web:1"}]
    return Unstructured(
        apiVersion="v1",
        kind="Pod",
        metadata={"name": name, "labels": {"app": name}},
        spec={"containers": containers, **spec},
    )


def _another(_: ControlPlane) -> ControlPlane:
    """A control plane that a test may stop; asking for the shared one first says that the programs are there."""
    return ControlPlane()


async def seen_by_kubectl(plane: ControlPlane, namespace: str, *what: str) -> dict[str, Any]:
    text = await asyncio.to_thread(plane.kubectl, "get", *what, "-n", namespace, "-o", "json")
    document: dict[str, Any] = json.loads(text)
    return document


async def test_create_get_update_delete_and_kubectl_agrees(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        made = await client.create(config_map(x="1"))
        assert made.resource_version
        with pytest.raises(AlreadyExists, match=f'create ConfigMap {namespace}/a: configmaps "a" already exists'):
            await client.create(config_map())
        made.data["y"] = "2"
        del made.data["x"]
        edited = await client.update(made)
        assert (await seen_by_kubectl(control_plane, namespace, "cm", "a"))["data"] == edited.data == {"y": "2"}
        unchanged = await client.update(edited)
        assert unchanged.resource_version == edited.resource_version
        assert await client.get(ConfigMap, "a") == edited
        await client.delete(edited)
        with pytest.raises(NotFound, match=f'get ConfigMap {namespace}/a: configmaps "a" not found') as caught:
            await client.get(ConfigMap, "a")
        assert (caught.value.status, caught.value.reason) == (404, "NotFound")


async def test_a_name_that_the_server_makes_up(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        made = await client.create(ConfigMap(metadata=ObjectMeta(generate_name="web-")))
        assert made.name.startswith("web-")


async def test_untyped_objects_go_wherever_typed_ones_do(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        made = await client.create(
            Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "u"}, data={"a": "1"})
        )
        made["data"]["a"] = "2"
        updated = await client.update(made)
        applied = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "u"}, data={"b": "3"})
        await client.using(field_manager="other").apply(applied)
        for kind in ("cm", "configmaps", "ConfigMap", CONFIG_MAP):
            assert (await client.get(kind, "u"))["data"] == {"a": "2", "b": "3"}
        with pytest.raises(Conflict, match="the UID in the precondition"):
            await client.delete(Unstructured({**updated, "metadata": {**updated.metadata, "uid": "another"}}))
        await client.delete(updated)


class Part(Model):
    name: str
    size: int | None = None


class GadgetSpec(Model):
    parts: list[Part] = field(default_factory=list)


class Gadget(Resource, identity=Kind("unknown.example.com", "v1", "Gadget", "gadgets")):
    spec: GadgetSpec = field(default_factory=GadgetSpec)


async def test_fields_that_a_class_does_not_know_survive_an_update(control_plane: ControlPlane, namespace: str) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.unknown.example.com"},
        "spec": {
            "group": "unknown.example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    async with connected(control_plane, namespace) as client:
        await client.apply(Unstructured(crd))
        await client.wait_for("crd", "gadgets.unknown.example.com", has_condition("Established"), timeout=20)
        parts: list[dict[str, Any]] = [{"name": "a", "secret": 1}, {"name": "b", "secret": {"deep": [1, 2]}}]
        wire = {"metadata": {"name": "g"}, "spec": {"parts": parts, "mode": "x"}, "extra": True}
        await client.create(Unstructured(apiVersion="unknown.example.com/v1", kind="Gadget", **wire))
        gadget = await client.get(Gadget, "g")
        gadget.spec.parts.reverse()
        gadget.spec.parts[0].size = 3
        await client.update(gadget)
        stored = await client.get(gadget.__kind__, "g")
        assert stored["spec"] == {"parts": [{**parts[1], "size": 3}, parts[0]], "mode": "x"}
        assert stored["extra"] is True
        await client.delete("crd", "gadgets.unknown.example.com")


async def test_a_stale_update_is_a_conflict(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        first = await client.create(config_map(x="1"))
        second = await client.get(ConfigMap, "a")
        second.data["x"] = "2"
        await client.update(second)
        first.data["x"] = "3"
        with pytest.raises(Conflict, match=f"update ConfigMap {namespace}/a: .*the object has been modified"):
            await client.update(first)


async def test_status_is_written_by_its_own_verb(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        made = await client.create(deployment())
        made.status.available_replicas = 1
        made.status.replicas = 1
        made.status.ready_replicas = 1
        made.spec.replicas = 9
        written = await client.update_status(made)
        assert (written.status.available_replicas, written.spec.replicas) == (1, 2)
        shown = await seen_by_kubectl(control_plane, namespace, "deployment", "web")
        assert shown["status"]["availableReplicas"] == 1


async def test_the_three_patches(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        await client.create(deployment())
        merged = await client.patch(Deployment, "web", {"spec": {"replicas": 3}})
        assert merged.spec.replicas == 3
        operations = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
        assert (await client.patch(Deployment, "web", operations, patch_type="json")).spec.replicas == 4
        side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
        strategic = await client.patch(Deployment, "web", side, patch_type="strategic")
        assert sorted(c.name for c in strategic.spec.template.spec.containers) == ["side", "web"]
        test_fails = [{"op": "test", "path": "/spec/replicas", "value": 99}]
        with pytest.raises(Invalid, match=f"patch Deployment {namespace}/web"):
            await client.patch(Deployment, "web", test_fails, patch_type="json")


@pytest.mark.parametrize(
    ("patch_type", "patch"),
    [
        ("merge", {"data": {"other": 5}}),
        ("strategic", {"stringData": {"password": "hunter2", "other": 5}}),
        ("json", [{"op": "replace", "path": "/data/other", "value": ["hunter2"]}]),
    ],
)
async def test_a_refused_patch_does_not_show_the_secret_it_was_for(
    control_plane: ControlPlane, namespace: str, patch_type: Any, patch: Any
) -> None:
    async with connected(control_plane, namespace) as client:
        data = {"password": b"hunter2", "other": b"x"}
        await client.create(Secret(metadata=ObjectMeta(name="login"), data=data))
        with pytest.raises(Invalid, match=f"patch Secret {namespace}/login: Invalid value: ") as caught:
            await client.patch(Secret, "login", patch, patch_type=patch_type)
        shown = f"{caught.value} {caught.value.causes}"
        assert "hunter2" not in shown
        assert "aHVudGVyMg" not in shown


async def test_an_apply_conflict_names_owner_and_path(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        await client.using(field_manager="first").apply(deployment())
        theirs = client.using(field_manager="second")
        with pytest.raises(ApplyConflict) as caught:
            await theirs.apply(deployment(replicas=5))
        assert caught.value.conflicts == (FieldConflict("first", ".spec.replicas"),)
        text = f"apply Deployment {namespace}/web: .spec.replicas is owned by 'first' (force=True takes it)"
        assert str(caught.value) == text
        taken = await theirs.apply(deployment(replicas=5), force=True)
        assert taken.spec.replicas == 5
        same = await theirs.apply(deployment(replicas=5))
        assert same.resource_version == taken.resource_version


async def test_delete_with_propagation_grace_and_preconditions(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        made = await client.create(deployment())
        await client.delete(made, propagation="Foreground")
        waiting = await client.get(Deployment, "web")
        assert waiting.metadata.finalizers == ["foregroundDeletion"]
        old = await client.create(config_map())
        await client.delete(old)
        await client.create(config_map())
        with pytest.raises(Conflict, match="UID in the precondition"):
            await client.delete(old)
        await client.delete(ConfigMap, "nothing", missing_ok=True)
        await client.create(pod())
        await client.delete("pods", "p", grace_period=0)
        assert await client.wait_for(Pod, "p", is_deleted(), timeout=10) is None


async def test_lists_pages_selectors_and_versions(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        for number in range(7):
            await client.create(config_map(f"c{number}", n=str(number)))
        everything = await client.list(ConfigMap, namespace=namespace, labels="app in (web)")
        assert [c.name for c in everything] == [f"c{n}" for n in range(7)]
        assert everything[0].source is not None
        pages = [page async for page in client.pages(ConfigMap, namespace=namespace, labels="app=web", size=3)]
        assert [len(page) for page in pages] == [3, 3, 1]
        assert {page.resource_version for page in pages} == {pages[0].resource_version}
        one = await client.list(CONFIG_MAP, namespace=namespace, fields="metadata.name=c3")
        assert [(c.name, c.kind, c.api_version) for c in one] == [("c3", "ConfigMap", "v1")]
        await client.delete(ConfigMap, "c3")
        before = await client.list(
            ConfigMap,
            namespace=namespace,
            labels="app=web",
            resource_version=everything.resource_version,
            match="Exact",
        )
        assert len(before) == 7
        await client.delete_collection(ConfigMap, namespace=namespace, labels="app=web")
        assert await client.list(ConfigMap, namespace=namespace, labels="app=web") == []
        with pytest.raises(Invalid, match=r"list ConfigMap .*unable to parse"):
            await client.list(ConfigMap, namespace=namespace, labels="a=(=")


async def test_a_watch_tells_every_change_in_order(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        start = await client.list(ConfigMap, namespace=namespace)
        made = await client.create(config_map(x="1"))
        made.data["x"] = "2"
        await client.delete(await client.update(made))
        events = client.watch(
            ConfigMap, namespace=namespace, fields="metadata.name=a", resource_version=start.resource_version, timeout=2
        )
        assert [(event.type, event.object.data) async for event in events] == [
            ("ADDED", {"x": "1"}),
            ("MODIFIED", {"x": "2"}),
            ("DELETED", {"x": "2"}),
        ]


async def test_a_version_that_is_compacted_is_expired(control_plane: ControlPlane) -> None:
    def run(plane: ControlPlane) -> None:
        plane.stop_apiserver()
        plane.start_apiserver()

    with _another(control_plane) as plane:
        async with connected(plane) as client:
            await client.create(config_map())
            await asyncio.to_thread(plane.compact)
            await asyncio.to_thread(run, plane)
            with pytest.raises(Expired, match="watch ConfigMap default: too old resource version"):
                async for _ in client.watch(ConfigMap, namespace="default", resource_version="1", timeout=5):
                    pass


async def test_a_client_rides_out_a_restart_of_the_server(control_plane: ControlPlane) -> None:
    with _another(control_plane) as plane:
        async with connected(plane) as client:
            await client.create(config_map())
            plane.stop_apiserver()
            reading = asyncio.create_task(client.get(ConfigMap, "a"))
            creating = asyncio.create_task(client.create(config_map("b")))
            await asyncio.to_thread(plane.start_apiserver)
            assert (await reading).name == "a"
            # Refused connections never left, so this create was safe to repeat.
            assert (await creating).name == "b"
            plane.stop_apiserver()
            impatient = Client.connect(load_config(kubeconfig=plane.kubeconfig), retry=RetryPolicy(attempts=1))
            async with impatient:
                with pytest.raises(TransportError, match="refused") as caught:
                    await impatient.get(ConfigMap, "a")
            assert not caught.value.sent
            plane.start_apiserver()


async def test_waiting(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:

        async def later() -> None:
            made = await client.create(config_map(x="1"))
            made.data["x"] = "2"
            await client.delete(await client.update(made))

        async with asyncio.TaskGroup() as group:
            appeared = group.create_task(client.wait_for(ConfigMap, "a", exists(), timeout=10))
            changed = group.create_task(client.wait_for(ConfigMap, "a", field_equals(".data.x", "2"), timeout=10))
            await client.wait_for(ConfigMap, "kube-root-ca.crt", is_deleted(), timeout=10)
            group.create_task(later())
        assert appeared.result() is not None
        assert changed.result() is not None
        await client.wait_for(ConfigMap, "a", is_deleted(), timeout=10)
        with pytest.raises(WaitTimeout, match=rf"wait until ConfigMap {namespace}/a exists: not within 0.2 s"):
            await client.wait_for(ConfigMap, "a", exists(), timeout=0.2)


async def test_scale_eviction_and_tokens(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        await client.create(deployment())
        assert await client.get_scale(Deployment, "web") == 2
        assert await client.scale(Deployment, "web", 6) == 6
        assert (await seen_by_kubectl(control_plane, namespace, "deployment", "web"))["spec"]["replicas"] == 6
        await client.create(pod())
        await client.create(
            Unstructured(
                apiVersion="policy/v1",
                kind="PodDisruptionBudget",
                metadata={"name": "b"},
                spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
            )
        )
        await client.create(pod("free"))
        await client.evict("free")
        await client.wait_for(Pod, "free", is_deleted(), timeout=10)
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
        issued = await client.create_token("robot", lifetime=600)
        robot = ClientConfig(
            server=control_plane.url,
            namespace=namespace,
            tls=load_config(kubeconfig=control_plane.kubeconfig).tls,
            credentials=StaticCredentials.of_token(issued.token),
        )
        async with Client.connect(robot) as as_robot:
            user = f"system:serviceaccount:{namespace}:robot"
            with pytest.raises(Forbidden, match=user):
                await as_robot.get(ConfigMap, "a")


async def test_an_eviction_that_a_budget_forbids(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        made = await client.create(pod())
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await client.update_status(made)
        await client.create(
            Unstructured(
                apiVersion="policy/v1",
                kind="PodDisruptionBudget",
                metadata={"name": "b"},
                spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
            )
        )
        with pytest.raises(TooManyRequests, match=f"evict Pod {namespace}/p"):
            await client.evict("p")


async def test_dry_run_strict_validation_and_impersonation(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(control_plane, namespace) as client:
        await client.using(dry_run=True).create(config_map())
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "a")
        odd = Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": "odd"}, bogus=1)
        with pytest.raises(Invalid, match='unknown field "bogus"'):
            await client.using(field_validation="Strict").create(odd)
        await client.create(odd)
        assert 'unknown field "bogus"' in [record.__dict__.get("warning") for record in caplog.records]
        alice = client.using(impersonate=Impersonation("alice", groups=("dev", "ops")))
        with pytest.raises(Forbidden, match=r'User "alice" may not \(needs list on configmaps') as caught:
            await alice.list(ConfigMap, namespace=namespace)
        assert caught.value.status == 403
        who = await alice.create(
            Unstructured(apiVersion="authentication.k8s.io/v1", kind="SelfSubjectReview", metadata={})
        )
        assert who["status"]["userInfo"]["groups"][:2] == ["dev", "ops"]


async def test_what_the_server_refuses(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        with pytest.raises(Invalid, match=r"at \.metadata\.labels") as labels:
            await client.create(ConfigMap(metadata=ObjectMeta(name="l", labels={"größe": "ü"})))
        assert labels.value.causes[0].field == "metadata.labels"
        with pytest.raises(Invalid, match=r"at \.metadata\.name"):
            await client.create(config_map("Größe"))
        with pytest.raises(NotFound, match=r"the server does not serve this resource \(is its CRD installed"):
            await client.get(Kind("nope.example.com", "v1", "Nope", "nopes"), "x")
        with pytest.raises(UnknownKind, match="discover nopes: the server does not serve this kind"):
            await client.get("nopes", "x")
        with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
            await client.using(namespace="nowhere").create(config_map())
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            await client.delete(Namespace, "default")
        with pytest.raises(Invalid, match="field is immutable"):
            await client.create(Secret(metadata=ObjectMeta(name="s"), immutable=True, data={"a": b"1"}))
            await client.patch(Secret, "s", {"data": {"a": "Mg=="}})


async def test_objects_near_the_size_limit_and_past_it(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace) as client:
        large = await client.create(config_map("large", x="ü" * 500_000))
        assert (await client.get(ConfigMap, "large")).data == large.data
        with pytest.raises(Invalid, match="may not be more than 1048576 bytes"):
            await client.create(config_map("larger", x="x" * 1_100_000))
        with pytest.raises(KonvergeError, match=r"limit is 3145728"):
            await client.create(config_map("largest", x="x" * 4_000_000))
        assert len(await client.list(ConfigMap, namespace=namespace, labels="app=web")) == 1


async def test_no_write_leaves_when_the_guard_says_no(control_plane: ControlPlane, namespace: str) -> None:
    async with connected(control_plane, namespace, guard=lambda: 0.0) as client:
        with pytest.raises(WriteRefused):
            await client.create(config_map())
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "a")


async def test_a_wrong_ca_a_wrong_name_and_wrong_credentials_are_refused(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    with _another(control_plane) as other:
        stranger = load_config(kubeconfig=other.kubeconfig).tls
    once = RetryPolicy(attempts=1)
    mixed = ClientConfig(server=control_plane.url, tls=stranger, credentials=config.credentials)
    async with Client.connect(mixed, retry=once) as client:
        with pytest.raises(TransportError, match="the certificate is not accepted"):
            await client.get(Namespace, "default")
    nobody = ClientConfig(server=control_plane.url, tls=config.tls, credentials=StaticCredentials.of_token("nonsense"))
    async with Client.connect(nobody, retry=once) as client:
        with pytest.raises(Unauthorized, match="the server does not accept the credentials"):
            await client.get(Namespace, "default")
    with pytest.raises(ConfigError):
        load_config(kubeconfig=tmp_path / "missing")


async def test_the_log_of_a_pod_is_a_stream(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    async def kubelet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nfirst\nsec")
        await writer.drain()
        writer.write("ond ü\nlast".encode())
        await writer.drain()
        writer.close()

    asked: list[str] = []
    pair = Authority(tmp_path, "kubelet").sign("node", file="node", hosts=["127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.cert, pair.key)
    node = f"node-{namespace}"
    async with (
        connected(control_plane, namespace) as client,
        await asyncio.start_server(kubelet, "127.0.0.1", 0, ssl=tls) as server,
    ):
        made = await client.create(Unstructured(apiVersion="v1", kind="Node", metadata={"name": node}))
        made["status"] = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.sockets[0].getsockname()[1]}},
        }
        await client.update_status(made)
        await client.create(pod(nodeName=node))
        lines = [line async for line in client.logs("p", container="c", tail_lines=3)]
        assert lines == [b"first", "second ü".encode(), b"last"]
        assert asked == [f"/containerLogs/{namespace}/p/c?tailLines=3"]
        with pytest.raises(Invalid, match=f"read the log of Pod {namespace}/p: .*container other is not valid"):
            async for _ in client.logs("p", container="other"):
                pass
        await client.delete("nodes", node)
