"""Steps that a user of WebApps takes, one for each promise about a running application; for any control plane.

The nodes must run pods of images with "bad" in the name without making them ready, the webhooks of the operator must be
installed, and the namespace of the client may admit restricted pods only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from konverge import Client, ObjectMeta, Unstructured
from konverge.client import exists, has_condition, is_deleted
from konverge.errors import Invalid, NotFound
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Pod, Secret, Service, ServiceAccount
from konverge.k8s.networking.v1 import Ingress
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import AnyObject, Kind, find_condition, to_wire
from konverge.workflow import CONFIGURATION_HASH
from konverge_operators.manifests import HTTP_ROUTE, POD_MONITOR
from konverge_operators.webapp.api import MAX_REPLICAS, Phase, WebApp
from webapps import optional_crd, webapp

__all__ = ["check_points"]

LIMIT = 150.0
SIDECAR = {
    "name": "sidecar",
    "image": "nginx:1",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
REFUSED_BY_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"replicas": "three"}, 'must be of type integer: "string"'),
    ({"image": 7}, 'must be of type string: "integer"'),
    ({"port": 0}, "should be greater than or equal to 1"),
    ({"replicas": MAX_REPLICAS + 1}, "should be less than or equal to 100"),
    ({"autoscaling": {"maxReplicas": MAX_REPLICAS + 1}}, "should be less than or equal to 100"),
]


async def check_points(client: Client) -> None:
    """Take every step, with one application after the other."""
    await _becomes_ready(client)
    await _refuses_what_is_invalid(client)
    await _survives_hands(client)
    await _changes_nothing_while_suspended(client)
    await _runs_pods_as_the_spec_says(client)
    await _reads_configuration(client)
    await _is_exposed(client)
    await client.delete(WebApp, "web")
    await client.wait_for(WebApp, "web", is_deleted(), timeout=LIMIT)
    await _reports_what_is_ready(client)


async def _wait(client: Client, holds: Callable[[WebApp], bool], name: str = "web") -> WebApp:
    def check(app: AnyObject | None) -> bool:
        return isinstance(app, WebApp) and app.status.observed_generation == app.metadata.generation and holds(app)

    found = await client.wait_for(WebApp, name, check, timeout=LIMIT)
    assert isinstance(found, WebApp)
    return found


async def _ready(client: Client) -> WebApp:
    found = await client.wait_for(WebApp, "web", has_condition("Ready"), timeout=LIMIT)
    assert isinstance(found, WebApp)
    assert found.status.phase is Phase.READY
    return found


def _condition(app: WebApp, type_: str) -> tuple[str, str]:
    found = find_condition(app.status.conditions, type_)
    return ("", "") if found is None else (found.status, found.message)


async def _becomes_ready(client: Client) -> None:
    """The first phase is written, pods are admitted as restricted, the counts are observed, a budget protects them."""
    app = webapp(replicas=2)
    app.metadata.namespace = client.options.namespace
    created = await client.create(app)
    phases: list[str] = []
    events = client.watch("webapps.example.com", resource_version=created.metadata.resource_version or "")
    async for event in events:
        phase = event.object.get("status", {}).get("phase")
        if phase is not None and phases[-1:] != [phase]:
            phases.append(phase)
        if phase == "Ready":
            break
    assert phases[0] == "Created", phases
    app = await _ready(client)
    assert (app.status.replicas, app.status.ready_replicas, app.status.available_replicas) == (2, 2, 2)
    assert [_condition(app, one)[0] for one in ("Reconciling", "Stalled", "ForeignFields")] == ["False"] * 3
    assert (await client.get(PodDisruptionBudget, "web")).spec.max_unavailable == 1


async def _refuses_what_is_invalid(client: Client) -> None:
    """What the schema refuses the webhooks let pass: the message is the server's. The rules are those of a webhook."""
    for spec, message in REFUSED_BY_SCHEMA:
        with pytest.raises(Invalid) as refused:
            await _create_raw(client, **spec)
        assert message in str(refused.value)
    with pytest.raises(Invalid, match="the image needs a tag"):
        await _create_raw(client, image="nginx")
    with pytest.raises(Invalid, match="should be less than or equal to 100"):
        await client.scale(WebApp, "web", MAX_REPLICAS + 1)  # the scale subresource calls no webhook


async def _create_raw(client: Client, **spec: Any) -> None:
    """Create an object as YAML would, whatever its types are."""
    document = to_wire(webapp("raw"))
    document["metadata"]["namespace"] = client.options.namespace
    document["spec"] |= spec
    await client.create(Unstructured(document))


async def _survives_hands(client: Client) -> None:
    """A pause is undone, and fields that somebody adds are reported until they are removed."""
    await client.patch(Deployment, "web", {"spec": {"paused": True}})
    await client.patch(WebApp, "web", {"spec": {"image": "nginx:1.26"}})
    app = await _ready(client)
    assert app.status.last_good_image == "nginx:1.26"
    assert not (await client.get(Deployment, "web")).spec.paused

    containers = {"spec": {"template": {"spec": {"containers": [SIDECAR]}}}}
    await client.using(field_manager="somebody").patch(Deployment, "web", containers, patch_type="strategic")
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}}}
    await client.using(field_manager="somebody").patch(Deployment, "web", selector)
    ports = {"spec": {"ports": [{"name": "extra", "port": 81}]}}
    await client.using(field_manager="somebody").patch(Service, "web", ports, patch_type="strategic")
    # A reconcile may see the port before it sees the selector: it reads the Deployment first.
    expected = (
        "True",
        'Deployment .spec.template.spec.containers[name="sidecar"] by somebody, '
        "Deployment .spec.template.spec.nodeSelector by somebody, "
        'Service .spec.ports[port=81,protocol="TCP"] by somebody',
    )
    await _wait(client, lambda one: _condition(one, "ForeignFields") == expected)

    pods = {"nodeSelector": None, "containers": [{"name": "sidecar", "$patch": "delete"}]}
    removed = {"spec": {"template": {"spec": pods}}}
    await client.patch(Deployment, "web", removed, patch_type="strategic")
    await client.patch(Service, "web", {"spec": {"ports": [{"port": 81, "$patch": "delete"}]}}, patch_type="strategic")
    await _wait(client, lambda one: _condition(one, "ForeignFields")[0] == "False")
    await _ready(client)


async def _changes_nothing_while_suspended(client: Client) -> None:
    """A suspended application keeps its children as they are; its status goes on."""
    await client.patch(WebApp, "web", {"spec": {"suspend": True, "replicas": 3}})
    app = await _wait(client, lambda one: one.status.message.startswith("spec.suspend is set: nothing is changed"))
    assert (app.status.phase, app.status.ready_replicas) == (Phase.READY, 2)
    assert (await client.get(Deployment, "web")).spec.replicas == 2
    await client.patch(WebApp, "web", {"spec": {"suspend": False}})
    await _wait(client, lambda one: one.status.ready_replicas == 3)
    await client.patch(WebApp, "web", {"spec": {"replicas": 2}})
    await _wait(client, lambda one: one.status.ready_replicas == 2)
    await _ready(client)


async def _runs_pods_as_the_spec_says(client: Client) -> None:
    """Pods have probes, a security context, spreading and no token by default, and what the fields of the spec say."""
    (container,) = (pod := to_wire((await _pod(client)).spec))["containers"]
    assert (container["readinessProbe"]["tcpSocket"], "livenessProbe" in container) == ({"port": "http"}, False)
    assert (pod["securityContext"]["runAsNonRoot"], container["securityContext"]["readOnlyRootFilesystem"]) == (
        True,
        True,
    )
    assert [one["topologyKey"] for one in pod["topologySpreadConstraints"]] == ["kubernetes.io/hostname"]
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("default", False)
    assert [one["name"] for one in pod["volumes"]] == ["tmp"]  # and none with a token

    await client.create(ServiceAccount(metadata=ObjectMeta(name="shop", namespace=client.options.namespace)))
    spec = {
        "probes": {"readiness": {"path": "/ready"}, "liveness": {"failureThreshold": 9}, "startup": {}},
        "security": {"runAsUser": 1234, "readOnlyRootFilesystem": False},
        "scheduling": {
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "spreadBy": "topology.kubernetes.io/zone",
        },
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "shop",
        "automountServiceAccountToken": True,
        "strategy": {"maxUnavailable": 0, "maxSurge": 1},
    }
    await client.patch(WebApp, "web", {"spec": spec})
    await _ready(client)
    (container,) = (pod := to_wire((await _pod(client)).spec))["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert (container["livenessProbe"]["failureThreshold"], "startupProbe" in container) == (9, True)
    assert pod["securityContext"]["runAsUser"] == 1234
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert "spot" in [one.get("key") for one in pod["tolerations"]]
    assert [one["topologyKey"] for one in pod["topologySpreadConstraints"]] == ["topology.kubernetes.io/zone"]
    assert (pod["serviceAccountName"], pod["imagePullSecrets"]) == ("shop", [{"name": "registry"}])
    assert any(one["name"].startswith("kube-api-access-") for one in pod["volumes"])
    deployment = to_wire((await client.get(Deployment, "web")).spec)
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


async def _pod(client: Client) -> Pod:
    """Return a pod of the current template: the newest one."""
    pods = await client.list(Pod, namespace=client.options.namespace, labels="app.kubernetes.io/instance=web")
    return max(pods, key=lambda pod: int(pod.metadata.resource_version or 0) if _lives(pod) else 0)


def _lives(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


async def _reads_configuration(client: Client) -> None:
    """A change of the content of a ConfigMap or a Secret rolls the pods."""
    namespace = client.options.namespace
    await client.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace), data={"A": "1"}))
    await client.create(Secret(metadata=ObjectMeta(name="keys", namespace=namespace), string_data={"B": "1"}))
    references = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}]
    await client.patch(WebApp, "web", {"spec": {"envFrom": references}})
    await _ready(client)
    for kind, change in ((ConfigMap, {"data": {"A": "2"}}), (Secret, {"stringData": {"B": "2"}})):
        before = _hash(await client.get(Deployment, "web"))
        await client.patch(kind, "settings" if kind is ConfigMap else "keys", change)
        await client.wait_for(Deployment, "web", _has_other_hash(before), timeout=LIMIT)
        await _ready(client)


def _has_other_hash(before: str | None) -> Callable[[AnyObject | None], bool]:
    return lambda deployment: _hash(deployment) != before


def _hash(deployment: Any) -> str | None:
    annotations = deployment.spec.template.metadata.annotations or {}
    found: str | None = annotations.get(CONFIGURATION_HASH)
    return found


async def _is_exposed(client: Client) -> None:
    """An Ingress has TLS; an HTTPRoute and a PodMonitor are created when their kinds are installed."""
    ingress: dict[str, Any] = {"host": "a.example.com", "tls": {}}
    await client.patch(WebApp, "web", {"spec": {"ingress": ingress, "monitoring": {}}})
    found = await client.wait_for(Ingress, "web", exists(), timeout=LIMIT)
    assert isinstance(found, Ingress)
    assert found.spec.tls is not None
    assert [one.secret_name for one in found.spec.tls] == ["web-tls"]

    await client.patch(WebApp, "web", {"spec": {"ingress": {"gateway": {"name": "public"}, "tls": None}}})
    app = await _wait(client, lambda one: one.status.phase is Phase.DEGRADED)
    assert "needs the Gateway API" in app.status.message
    for kind in (HTTP_ROUTE, POD_MONITOR):
        await client.create(optional_crd(kind))
    for kind in (HTTP_ROUTE, POD_MONITOR):
        await _until_served(client, kind)
        child = await client.wait_for(kind, "web", exists(), timeout=LIMIT)
        assert isinstance(child, Unstructured)
    await client.wait_for(Ingress, "web", is_deleted(), timeout=LIMIT)
    await _ready(client)


async def _until_served(client: Client, kind: Kind) -> None:
    """Wait until the server knows a kind whose definition was just created."""
    async with asyncio.timeout(LIMIT):
        while True:
            with suppress(NotFound):
                await client.list(kind, namespace=client.options.namespace)
                return
            await asyncio.sleep(0.1)


async def _reports_what_is_ready(client: Client) -> None:
    """An application whose pods are not ready is reconciling, and stalled once its deadline has passed."""
    app = webapp("bad", image="nginx:bad", replicas=2, progressDeadlineSeconds=8)
    app.metadata.namespace = client.options.namespace
    await client.create(app)
    app = await _wait(client, lambda one: one.status.replicas == 2, "bad")
    assert (app.status.ready_replicas, _condition(app, "Ready")[0]) == (0, "False")
    app = await _wait(client, lambda one: _condition(one, "Stalled")[0] == "True", "bad")
    assert (app.status.ready_replicas, app.status.phase) == (0, Phase.DEGRADED)
    assert len(await client.list(Pod, namespace=client.options.namespace)) >= 2
    await client.delete(WebApp, "bad")
    await client.wait_for(WebApp, "bad", is_deleted(), timeout=LIMIT)
