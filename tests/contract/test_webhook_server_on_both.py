"""konverge's webhook server with the real API server and the embedded one: denials, patches, conversion, rotation."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from konverge import Client
from konverge.errors import Conflict, ControlPlaneError, Forbidden, Invalid, NotFound, ServerError
from konverge.k8s.core.v1 import Namespace, Secret
from konverge.objects import Key, LabelSelector, ObjectMeta
from konverge.schema import to_yaml
from konverge.testing import ControlPlane
from konverge.webhooks import (
    AdmissionRequest,
    BundleTarget,
    Deny,
    ManagedCertificates,
    MutatingWebhook,
    RotationPolicy,
    ValidatingWebhook,
    inject_bundle,
    reload_certificates,
)
from konverge.webhooks.authorities import split_bundle
from webhook_certificates import LOOPBACK, authority, pair_of, trusting
from webhook_examples import GROUP, OldSpec, OldWebApp, Scaling, WebApp, check, fill_in
from webhook_setup import WebhookSetup, api_client, webhook_setup

pytestmark = pytest.mark.real_time(limit=300)

Opened = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
def real_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The run's real server; the kind whose webhooks are gone goes too, with its objects."""
    yield control_plane
    control_plane.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/webapps.{GROUP}")


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def opened(request: pytest.FixtureRequest) -> Opened:
    """A way to a client of either server."""
    plane: ControlPlane | None = None
    if request.param == "real":
        plane = request.getfixturevalue("real_plane")
    return lambda: api_client(plane)


async def test_a_denial_is_returned_and_nothing_is_stored(opened: Opened) -> None:
    async with opened() as client, webhook_setup(client, check) as scene:
        with pytest.raises(Invalid) as refused:
            await scene.create(image="nginx", replicas=101)
        with pytest.raises(NotFound):
            await client.get(WebApp, "web", namespace=scene.namespace)

    assert str(refused.value).endswith("an image needs a tag, at .spec.image; that is too many, at .spec.replicas")
    assert refused.value.status == 422
    assert [cause.field for cause in refused.value.causes] == ["spec.image", "spec.replicas"]


async def test_warnings_are_returned(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as client, webhook_setup(client, check) as scene:
        with caplog.at_level(logging.WARNING, "konverge.client"):
            await scene.create(replicas=60)

    assert "that many replicas are expensive" in [record.__dict__.get("warning") for record in caplog.records]


async def test_only_the_change_of_the_webhook_is_stored(opened: Opened) -> None:
    def annotate(app: WebApp, *_: Any) -> None:
        app.metadata.annotations["example.com/seen"] = "a/b~c"

    more = MutatingWebhook(WebApp, annotate, name="more")
    async with opened() as client, webhook_setup(client, fill_in, more, check) as scene:
        made = await scene.create(replicas=0, ports=[{"name": "http", "number": 80}])
        stored = await client.get(WebApp, "web", namespace=scene.namespace)

    assert made.metadata.labels == {"app": "web"}
    assert made.metadata.annotations == {"example.com/seen": "a/b~c"}
    assert stored.spec == made.spec
    assert (stored.spec.replicas, stored.spec.image) == (1, "nginx:1.25")


async def test_updates_have_the_old_object_and_deletes_the_last_one(opened: Opened) -> None:
    async with opened() as client, webhook_setup(client, check) as scene:
        made = await scene.create()
        made.spec.image = "caddy:2"
        with pytest.raises(Invalid, match="the repository cannot be changed"):
            await client.update(made)
        made.spec.image = "nginx:1.26"
        made.metadata.annotations["keep"] = "true"
        made = await client.update(made)
        with pytest.raises(Conflict, match="it is protected"):
            await client.delete(made)
        del made.metadata.annotations["keep"]
        await client.delete(await client.update(made))
        with pytest.raises(NotFound):
            await client.get(WebApp, "web", namespace=scene.namespace)


async def test_the_status_subresource_is_reviewed_on_request(opened: Opened) -> None:
    def review_status(app: WebApp, _old: WebApp | None, request: AdmissionRequest) -> Deny | None:
        if request.subresource == "status" and app.status.available_replicas > 1:
            return Deny("that cannot be", path=".status.availableReplicas")
        return None

    hook = ValidatingWebhook(WebApp, review_status, operations=("UPDATE",), subresources=("status",))
    async with opened() as client, webhook_setup(client, hook) as scene:
        made = await scene.create()
        made.status.available_replicas = 2
        with pytest.raises(Invalid, match=r"that cannot be, at \.status\.availableReplicas"):
            await client.update_status(made)
        made.status.available_replicas = 1
        assert (await client.update_status(made)).status.available_replicas == 1


async def test_a_dry_run_is_reviewed_and_has_no_effects(opened: Opened) -> None:
    effects: list[str] = []
    rehearsals: list[bool] = []

    def act(app: WebApp, _old: WebApp | None, _request: AdmissionRequest) -> None:
        effects.append(app.name)

    async def note(app: WebApp, _old: WebApp | None, request: AdmissionRequest) -> None:
        if app.name == "web":
            rehearsals.append(request.dry_run)

    acting = MutatingWebhook(WebApp, act, side_effects=True)
    noting = ValidatingWebhook(WebApp, note, name="note")
    async with opened() as client, webhook_setup(client, acting, noting, check) as scene:
        rehearsal = client.using(dry_run=True)
        with pytest.raises(Invalid, match="an image needs a tag"):
            await rehearsal.create(scene.webapp(image="nginx"))
        await rehearsal.create(scene.webapp())
        assert effects == []
        await scene.create()

    assert effects == ["web"]
    assert rehearsals[-1] is False
    assert set(rehearsals[:-1]) == {True}


async def test_an_exception_is_a_denial_without_internal_details(opened: Opened) -> None:
    def fail(app: WebApp, *_: Any) -> None:
        if app.name == "web":
            raise RuntimeError("password=hunter2")

    hook = ValidatingWebhook(WebApp, fail, name="broken", failure_policy="Ignore")
    async with opened() as client, webhook_setup(client, hook, check) as scene:
        with pytest.raises(ServerError) as refused:
            await client.create(scene.webapp())
        assert (await scene.create("other")).name == "other"

    assert "denied the request: the webhook failed; see the log of the operator" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_the_failure_policy_decides_about_a_slow_function(opened: Opened, policy: Any) -> None:
    async def hang(app: WebApp, *_: Any) -> None:
        if app.name == "web":
            await asyncio.Event().wait()

    hook = ValidatingWebhook(WebApp, hang, timeout=2, failure_policy=policy)
    async with opened() as client, webhook_setup(client, hook) as scene:
        if policy == "Ignore":
            await scene.create()
        else:
            with pytest.raises(ServerError, match=f'failed calling webhook "{hook.full_name}": failed to call webhook'):
                await scene.create()
            with pytest.raises(NotFound):
                await client.get(WebApp, "web", namespace=scene.namespace)


async def test_conditions_selectors_and_excluded_namespaces_are_respected(opened: Opened) -> None:
    refuse = ValidatingWebhook(
        WebApp,
        lambda *_: Deny("no"),
        match_conditions={"large": "object.spec.replicas > 5", "not-ours": "object.metadata.name != 'ours'"},
        objects=LabelSelector.parse("tier in (front, back)"),
    )
    async with opened() as client:
        other = await client.create(Namespace(metadata=ObjectMeta(generate_name="excluded-")))
        async with webhook_setup(client, refuse, exclude=[other.name]) as scene:

            async def create(name: str, tier: str = "front", namespace: str = "", **spec: Any) -> WebApp:
                app = scene.webapp(name, namespace=namespace, **spec)
                app.metadata.labels["tier"] = tier
                return await client.create(app)

            await create("small", replicas=5)
            await create("ours", replicas=6)
            await create("odd", tier="middle", replicas=6)
            await create("excluded", namespace=other.name, replicas=6)
            with pytest.raises(Forbidden, match="denied the request: no"):
                await create("refused", replicas=6)
        await client.delete(Namespace, other.name)


async def test_kubectl_shows_denials_and_warnings(real_plane: ControlPlane, tmp_path: Path) -> None:
    async with api_client(real_plane) as client, webhook_setup(client, check) as scene:
        bad, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
        bad.write_text(to_yaml(scene.webapp(image="nginx")))
        good.write_text(to_yaml(scene.webapp(replicas=60)))

        with pytest.raises(ControlPlaneError) as refused:
            await asyncio.to_thread(real_plane.kubectl, "create", "-f", str(bad))
        made = await asyncio.to_thread(real_plane.kubectl, "create", "-f", str(good))

    assert "spec.image: an image needs a tag" in str(refused.value)
    assert "created" in made


async def test_a_webhook_of_one_version_receives_writes_of_the_other(opened: Opened) -> None:
    async with opened() as client, webhook_setup(client, check, fill_in) as scene:
        metadata = ObjectMeta(name="old", namespace=scene.namespace)
        with pytest.raises(Invalid, match="an image needs a tag"):
            await client.create(OldWebApp(metadata=metadata, spec=OldSpec(repository="nginx")))
        made = await client.create(OldWebApp(metadata=metadata, spec=OldSpec(repository="nginx", tag="1")))

    assert made.metadata.labels == {"app": "old"}


async def test_objects_are_converted_both_ways_without_loss(opened: Opened) -> None:
    async with opened() as client, webhook_setup(client) as scene:
        at = scene.namespace
        made = await scene.create(replicas=3, ports=[{"name": "http", "number": 80}], scaling=Scaling(least=2, most=9))
        old = await client.get(OldWebApp, "web", namespace=at)
        assert (old.spec.repository, old.spec.tag, old.spec.size) == ("nginx", "1.25", 3)
        assert (old.uid, old.metadata.generation) == (made.uid, 1)
        old.spec.size = 4
        old.metadata.labels["seen"] = "yes"
        await client.update(old)
        new = await client.get(WebApp, "web", namespace=at)
        await client.create(
            OldWebApp(metadata=ObjectMeta(name="older", namespace=at), spec=OldSpec(repository="caddy", tag="2"))
        )
        listed = await client.list(OldWebApp, namespace=at)
        news = await client.list(WebApp, namespace=at)

    assert (new.spec.replicas, new.spec.scaling) == (4, Scaling(least=2, most=9))
    assert new.metadata.labels == {"seen": "yes"}
    assert not new.metadata.annotations
    assert sorted(each.spec.repository for each in listed) == ["caddy", "nginx"]
    assert sorted(each.spec.image for each in news) == ["caddy:2", "nginx:1.25"]


async def test_hundreds_of_writes_survive_swaps_of_the_certificate_and_slow_sockets(opened: Opened) -> None:
    """Scenario T34 in short: a new certificate every half second, by two authorities, slow sockets, some failures."""
    failed: list[str] = []

    async def now_and_then(app: WebApp, *_: Any) -> None:
        if app.name.endswith("99"):
            failed.append(app.name)
            raise RuntimeError("one in a hundred")

    hook = ValidatingWebhook(WebApp, now_and_then, name="odd")
    async with opened() as client, webhook_setup(client, check, fill_in, hook) as scene:
        signers = authority(), authority()
        targets = [BundleTarget.of(each) for each in (*scene.configurations, scene.crd)]
        bundle = scene.address.ca_bundle + b"".join(signer.certificate for signer in signers)
        await inject_bundle(client, bundle, targets)
        await scene.restart(pair_of(signers[0]))
        slow = [
            await asyncio.open_connection("127.0.0.1", scene.server.port, ssl=_any_certificate()) for _ in range(50)
        ]
        for place, (_, writer) in enumerate(slow):
            writer.write(b"POST " if place % 2 else f"POST {check.path} HTTP/1.1\r\nHost: x\r\n".encode())
        done = asyncio.Event()

        async def swap() -> None:
            while not done.is_set():
                for signer in signers:
                    scene.server.set_certificate(pair_of(signer))
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.5):
                            await done.wait()

        outcomes: list[str] = []

        async def write(worker: int) -> None:
            for number in range(worker, 120, 10):
                if number % 100 == 99:
                    with pytest.raises(ServerError, match="the webhook failed"):
                        await scene.create(f"web-{number}")
                else:
                    made = await scene.create(f"web-{number}", replicas=number % 50 + 1)
                    outcomes.append(made.metadata.labels["app"])

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(swap())
            await asyncio.gather(*(write(worker) for worker in range(10)))
            done.set()
        stored = await client.list(WebApp, namespace=scene.namespace)
        for _, writer in slow:
            writer.close()

    expected = {f"web-{number}" for number in range(120) if number % 100 != 99}
    assert set(outcomes) == expected
    assert {each.name for each in stored} == expected
    assert failed == ["web-99"]


async def test_a_certificate_authority_is_rotated_during_writes(opened: Opened) -> None:
    """Bootstrap, then a rotation with overlap as a leader does it, on a clock that stands at the right days."""
    moment = datetime.now(UTC) - timedelta(days=500)
    async with opened() as client, webhook_setup(client, check, fill_in) as scene:
        targets = [BundleTarget.of(each) for each in (*scene.configurations, scene.crd)]
        key = Key(scene.namespace, "webhooks")
        managed = ManagedCertificates(
            client,
            key,
            hosts=LOOPBACK,
            targets=targets,
            policy=RotationPolicy(overlap=timedelta(seconds=2)),
            clock=lambda: moment,
        )
        first, second = await asyncio.gather(managed.ensure(), managed.ensure())
        assert first == second
        moment = datetime.now(UTC)
        await scene.restart(await managed.ensure())
        before = (await client.get(Secret, key)).data
        assert len(split_bundle(before["ca.crt"])) == 2
        assert "next.crt" in before

        outcomes: list[str] = []
        done = asyncio.Event()

        async def write(worker: int) -> None:
            number = worker
            while not done.is_set():
                outcomes.append((await scene.create(f"web-{number}")).name)
                number += 4

        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(reload_certificates(managed, scene.server.set_certificate, interval=0.2))
            writers = [tasks.create_task(write(worker)) for worker in range(4)]
            while "next.crt" in (await client.get(Secret, key)).data:
                moment = datetime.now(UTC)
                await managed.rotate()
                await asyncio.sleep(0.2)
            after = (await client.get(Secret, key)).data
            await scene.until(lambda: _shows(scene, after["tls.crt"]))
            more = len(outcomes)
            await scene.until(lambda: _more(outcomes, more + 20))
            done.set()
            await asyncio.gather(*writers)
            following.cancel()

    assert after["signer.crt"] == before["next.crt"]
    assert after["tls.crt"] != before["tls.crt"]
    assert split_bundle(after["ca.crt"]) == split_bundle(before["ca.crt"])


async def _shows(scene: WebhookSetup, certificate: bytes) -> bool:
    return scene.server.pair is not None and scene.server.pair.certificate == certificate


async def _more(outcomes: list[str], count: int) -> bool:
    return len(outcomes) >= count


def _any_certificate() -> ssl.SSLContext:
    context = trusting()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
