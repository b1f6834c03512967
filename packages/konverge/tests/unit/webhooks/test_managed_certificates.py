"""Certificates in a Secret: concurrent replicas, a leader that rotates, the injection of bundles."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge import Client, NotFound, crd_for
from konverge.client import InProcessTransport
from konverge.errors import ConfigError, KonvergeError, TransportError
from konverge.k8s.admissionregistration.v1 import ValidatingWebhookConfiguration
from konverge.k8s.core.v1 import Secret
from konverge.objects import Key, ObjectMeta, Unstructured
from konverge.webhooks import (
    Address,
    BundleTarget,
    CertificateFiles,
    CertificatePair,
    ManagedCertificates,
    RotationPolicy,
    configurations_for,
    conversion_for,
    inject_bundle,
    reload_certificates,
    service_hosts,
)
from konverge.webhooks.authorities import split_bundle
from konverge.webhooks.bundles import bundle_patch
from konverge.wire import Request, Response
from konverge_cluster import EmbeddedServer
from webhook_examples import OldWebApp, WebApp, check, conversion, fill_in

START = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = Key("default", "webapp-webhooks")
ADDRESS = Address(service="webapp", namespace="default")
HOSTS = service_hosts("webapp", "default")
CONFIGURATIONS = configurations_for([check, fill_in], ADDRESS, name="webapp")
CRD = crd_for(WebApp, OldWebApp, conversion=conversion_for(conversion, ADDRESS))
TARGETS = [BundleTarget.of(each) for each in (*CONFIGURATIONS, CRD)]


class World:
    """A cluster, a clock that the test sets, and a list of all writes."""

    def __init__(self) -> None:
        self.server = EmbeddedServer()
        self.now = START
        self.writes: list[str] = []
        self.client = Client(InProcessTransport(self._handle))

    async def _handle(self, request: Request) -> Response:
        await asyncio.sleep(0)  # lets another replica run at each request
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path.rpartition('/')[2]}")
        return await self.server.handle(request)

    def replica(self, **options: Any) -> ManagedCertificates:
        options = {"hosts": HOSTS, "targets": TARGETS, "clock": lambda: self.now, **options}
        return ManagedCertificates(self.client, SECRET, **options)

    async def configure(self) -> None:
        for each in (*CONFIGURATIONS, CRD):
            await self.client.create(each)
        self.writes.clear()

    async def secret(self) -> Secret:
        return await self.client.get(Secret, SECRET)

    async def bundles(self) -> list[bytes]:
        """Return the bundle of every webhook."""
        found = [await self.client.get(target.kind, target.name) for target in TARGETS]
        configs = [webhook["clientConfig"] for each in found[:2] for webhook in each["webhooks"]]
        configs.append(found[2]["spec"]["conversion"]["webhook"]["clientConfig"])
        return [base64.b64decode(config.get("caBundle", "")) for config in configs]


async def test_the_first_replica_creates_everything_and_injects_the_bundle() -> None:
    world = World()
    await world.configure()

    pair = await world.replica().ensure()

    secret = await world.secret()
    assert secret.type == "kubernetes.io/tls"
    assert (secret.data["tls.crt"], secret.data["tls.key"]) == (pair.certificate, pair.key)
    assert await world.bundles() == [secret.data["ca.crt"]] * 3
    assert len(world.writes) == 4


async def test_no_request_exceeds_the_permissions() -> None:
    world = World()
    await world.configure()
    used: set[tuple[str, str]] = set()

    async def note(request: Request) -> Response:
        verb = {"GET": "get", "POST": "create", "PATCH": "patch"}[request.method]
        steps = request.path.strip("/").split("/")
        used.add((verb, steps[-1] if verb == "create" else steps[-2]))
        return await world.server.handle(request)

    world.client = Client(InProcessTransport(note))
    replica = world.replica()
    await replica.ensure()
    world.now += timedelta(days=500)
    await replica.rotate()

    assert used == {(one.verb, one.resource) for one in replica.permissions()}


async def test_replicas_that_start_at_once_end_with_the_same_certificate() -> None:
    world = World()
    await world.configure()

    pairs = await asyncio.gather(*(world.replica().ensure() for _ in range(8)))

    assert len({pair.certificate for pair in pairs}) == 1
    assert pairs[0].certificate == (await world.secret()).data["tls.crt"]
    assert set(await world.bundles()) == {(await world.secret()).data["ca.crt"]}


async def test_replicas_that_repair_at_once_end_with_the_same_certificate() -> None:
    world = World()
    await world.replica().ensure()
    world.now += timedelta(days=1000)

    pairs = await asyncio.gather(*(world.replica().ensure() for _ in range(8)))

    assert {pair.certificate for pair in pairs} == {(await world.secret()).data["tls.crt"]}


async def test_a_valid_certificate_is_not_changed() -> None:
    world = World()
    await world.configure()
    first = await world.replica().ensure()
    world.writes.clear()
    world.now += timedelta(days=70)  # due for renewal, and yet good: that is the leader's part

    assert await world.replica().ensure() == first
    assert world.writes == []


async def test_a_leader_keeps_the_certificate_valid_while_authorities_rotate() -> None:
    world = World()
    await world.configure()
    policy = RotationPolicy(authority=timedelta(days=90), serving=timedelta(days=30), overlap=timedelta(days=2))
    leader = world.replica(policy=policy)
    await leader.ensure()
    served: set[bytes] = set()

    for _ in range(60):
        world.now += timedelta(days=5)
        await leader.rotate()
        secret = await world.secret()
        served.add(secret.data["tls.crt"])
        assert await world.bundles() == [secret.data["ca.crt"]] * 3
        assert all(expires > world.now for _, expires in split_bundle(secret.data["ca.crt"]))

    assert 10 < len(served) < 25
    assert len(split_bundle((await world.secret()).data["ca.crt"])) <= 3


async def test_a_rotation_without_actions_writes_nothing_and_checks_again_within_a_minute() -> None:
    world = World()
    await world.configure()
    leader = world.replica()
    await leader.ensure()
    world.writes.clear()

    assert await leader.rotate() == 60
    assert world.writes == []


async def test_a_configuration_that_was_applied_again_gets_the_bundle() -> None:
    world = World()
    await world.configure()
    leader = world.replica()
    await leader.ensure()
    await world.client.delete(ValidatingWebhookConfiguration, "webapp")
    await leader.rotate()
    await world.client.create(CONFIGURATIONS[1])

    await leader.rotate()

    assert set(await world.bundles()) == {(await world.secret()).data["ca.crt"]}


async def test_the_next_authority_is_trusted_before_anything_is_signed_with_it() -> None:
    world = World()
    await world.configure()
    leader = world.replica()
    await leader.ensure()
    world.now += timedelta(days=500)
    await leader.rotate()
    assert "next.crt" in (await world.secret()).data
    world.now += timedelta(hours=2)
    # Somebody took the bundle away: the promotion puts it back before the Secret says the new certificate.
    found = await world.client.get(TARGETS[1].kind, "webapp")
    del found["webhooks"][0]["clientConfig"]["caBundle"]
    await world.client.update(found)
    world.writes.clear()

    await leader.rotate()

    assert world.writes == ["PATCH webapp", f"PATCH {SECRET.name}"]
    assert "next.crt" not in (await world.secret()).data


async def test_a_promotion_waits_while_the_bundle_cannot_be_injected() -> None:
    world = World()
    await world.configure()
    leader = world.replica()
    await leader.ensure()
    world.now += timedelta(days=500)
    await leader.rotate()
    before = (await world.secret()).data
    world.now += timedelta(hours=2)

    async def reject(request: Request) -> Response:
        if "webhookconfigurations" in request.path:
            raise TransportError("cut")
        return await world.server.handle(request)

    broken = Client(InProcessTransport(reject))
    with pytest.raises(TransportError):
        await ManagedCertificates(broken, SECRET, hosts=HOSTS, targets=TARGETS, clock=lambda: world.now).rotate()

    assert (await world.secret()).data == before


HARMS: dict[str, Callable[[Secret], None]] = {
    "everything": lambda secret: secret.data.update(
        {"tls.crt": b"x", "tls.key": b"x", "signer.key": b"", "ca.crt": b""}
    ),
    "the key": lambda secret: secret.data.update({"tls.key": b"garbage"}),
    "the signer": lambda secret: secret.data.update({"signer.key": b"garbage"}),
    "the bundle": lambda secret: secret.data.update({"ca.crt": b"garbage"}),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_a_corrupt_secret_is_repaired(harm: str) -> None:
    world = World()
    await world.configure()
    await world.replica().ensure()
    secret = await world.secret()
    HARMS[harm](secret)
    secret.data["own"] = b"kept"
    await world.client.update(secret)

    pair = await world.replica().ensure()
    await world.replica().rotate()

    after = (await world.secret()).data
    assert (after["own"], after["tls.crt"]) == (b"kept", pair.certificate)
    bundles = await world.bundles()
    assert len(set(bundles)) == 1
    assert await world.replica().load() == pair


async def test_endless_conflicts_on_the_secret_are_an_error() -> None:
    world = World()
    await world.replica().ensure()
    world.now += timedelta(days=1000)

    async def interfere(request: Request) -> Response:
        if request.method == "PATCH":
            secret = await world.secret()
            secret.metadata.labels["n"] = str(len(world.writes))
            await world.client.update(secret)
        return await world.server.handle(request)

    meddled = Client(InProcessTransport(interfere))
    with pytest.raises(ConfigError, match="every write was a conflict"):
        await ManagedCertificates(meddled, SECRET, hosts=HOSTS, clock=lambda: world.now).ensure()


async def test_the_leader_goes_on_after_a_failure() -> None:
    world = World()
    failures = iter([TransportError("cut"), TransportError("cut")])

    async def lose_response(request: Request) -> Response:
        error = next(failures, None)
        if error is not None:
            raise error
        return await world.server.handle(request)

    leader = ManagedCertificates(
        Client(InProcessTransport(lose_response)), SECRET, hosts=HOSTS, clock=lambda: world.now
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(100):
            await leader.run()

    assert (await world.secret()).data["tls.crt"]


class ScriptedSource:
    """A source that returns or raises one value after the other."""

    def __init__(self, *values: CertificatePair | KonvergeError) -> None:
        self._values = list(values)

    async def load(self) -> CertificatePair:
        found = self._values.pop(0) if len(self._values) > 1 else self._values[0]
        if isinstance(found, KonvergeError):
            raise found
        return found


async def test_a_reload_uses_new_certificates_and_keeps_the_last_valid_one(caplog: pytest.LogCaptureFixture) -> None:
    one, other = CertificatePair(b"1", b"1"), CertificatePair(b"2", b"2")
    swapped: list[CertificatePair] = []
    source = ScriptedSource(one, ConfigError("half written"), ConfigError("half written"), other)

    def swap(pair: CertificatePair) -> None:
        if pair == one and swapped:
            raise ValueError("no pair")
        swapped.append(pair)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(45):
            await reload_certificates(source, swap)

    assert swapped == [one, other]
    assert len([record for record in caplog.records if record.name == "konverge.webhooks"]) == 1


async def test_a_patch_changes_only_bundles() -> None:
    found = Unstructured(
        webhooks=[
            {"name": "a", "clientConfig": {"caBundle": "b2xk"}},
            {"name": "b", "clientConfig": {"caBundle": base64.b64encode(b"new").decode()}},
        ]
    )

    assert bundle_patch(found, b"new") == [
        {"op": "test", "path": "/webhooks/0/name", "value": "a"},
        {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "bmV3"},
    ]
    assert bundle_patch(Unstructured(spec={"conversion": {"strategy": "None"}}), b"new") == []


async def test_a_list_that_changed_in_between_is_read_again() -> None:
    world = World()
    await world.configure()
    meddled = False

    async def interfere(request: Request) -> Response:
        nonlocal meddled
        if request.method == "PATCH" and not meddled:
            meddled = True
            found = await world.client.get(TARGETS[1].kind, "webapp")
            found["webhooks"].insert(0, {**found["webhooks"][0], "name": "first.of.all"})
            await world.client.update(found)
        return await world.server.handle(request)

    pair = await world.replica(targets=()).ensure()
    await inject_bundle(Client(InProcessTransport(interfere)), pair.certificate, [TARGETS[1]])

    found = await world.client.get(TARGETS[1].kind, "webapp")
    bundles = {base64.b64decode(each["clientConfig"]["caBundle"]) for each in found["webhooks"]}
    assert [each["name"] for each in found["webhooks"]] == ["first.of.all", check.full_name]
    assert bundles == {pair.certificate}


async def test_missing_targets_are_returned() -> None:
    world = World()

    assert await inject_bundle(world.client, b"x", TARGETS) == TARGETS
    with pytest.raises(NotFound):
        await world.secret()


def test_only_what_has_a_bundle_can_be_a_target() -> None:
    with pytest.raises(ValueError, match="a Secret has no caBundle"):
        BundleTarget.of(Secret(metadata=ObjectMeta(name="x")))


async def test_files_are_read_again_and_half_written_ones_are_rejected(tmp_path: Any) -> None:
    world = World()
    one = await world.replica().ensure()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    files = CertificateFiles(certificate, key)
    with pytest.raises(ConfigError, match="cannot read"):
        await files.load()
    certificate.write_bytes(one.certificate)
    key.write_bytes(one.key)
    assert await files.load() == one

    other = await world.replica(hosts=("other.svc",)).ensure()
    certificate.write_bytes(other.certificate)
    with pytest.raises(ConfigError, match="do not form a pair"):
        await files.load()
    key.write_bytes(other.key)
    assert await files.load() == other


def test_a_certificate_without_hosts_is_rejected() -> None:
    with pytest.raises(ValueError, match="needs hosts"):
        ManagedCertificates(World().client, SECRET, hosts=())
