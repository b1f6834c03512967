"""TLS of a Database: the certificate of its members, its renewal, what PostgreSQL is configured to."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from databases import NAME, World, database, running
from konverge.certificates import Authority
from konverge.errors import Invalid, NotFound
from konverge.k8s.core.v1 import ConfigMap, Pod, Secret
from konverge_cluster.testing import TestCluster
from konverge_operators.database.certificates import hosts_of
from konverge_operators.database.engine import Login
from konverge_operators.database.names import secrets_of
from konverge_operators.database.postgresql.configuration import Configuration
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.local_images import system_installations

pytestmark = pytest.mark.plain_loop

TLS = {"tls": {"enabled": True}}


async def certificate(world: World) -> bytes:
    return (await world.client.get(Secret, f"{NAME}-tls", namespace="default")).data["tls.crt"]


async def authorities(world: World) -> str:
    return (await world.client.get(ConfigMap, f"{NAME}-ca", namespace="default")).data["ca.crt"]


async def check_served(world: World, count: int) -> None:
    """Check that all members serve the certificate of the Secret, and that the status says so."""
    digest = sha256(await certificate(world)).hexdigest()
    assert set(world.engine.certificates_of(await world.get()).values()) == {digest}
    assert len(world.engine.certificates_of(await world.get())) == count
    assert (await world.status()).certificate == digest


async def test_a_renewed_certificate_is_served_without_a_restart(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2, **TLS)
        await check_served(world, 2)
        before, trusted = await certificate(world), await authorities(world)
        pods = {pod.uid for pod in await world.client.list(Pod, namespace="default")}
        change = {"stringData": {"tls.crt": "none"}}  # as if it had expired
        await world.client.patch(Secret, f"{NAME}-tls", change, namespace="default")
        await asyncio.sleep(60)
        await world.settle()
        assert await certificate(world) != before
        assert await authorities(world) == trusted
        await check_served(world, 2)
        assert {pod.uid for pod in await world.client.list(Pod, namespace="default")} == pods
        assert "CertificateRenewed: all members serve the new certificate" in await world.events()


async def test_a_deleted_certificate_is_created_again(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(**TLS)
        before = await certificate(world)
        await world.delete(await world.client.get(Secret, f"{NAME}-tls", namespace="default"))
        await asyncio.sleep(60)
        await world.settle()
        assert await certificate(world) != before
        await check_served(world, 1)


async def test_the_certificate_is_deleted_with_the_data_and_tls_cannot_be_changed(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        created = await world.create(deletionPolicy="Delete", **TLS)
        with pytest.raises(Invalid, match="the value cannot be changed"):
            await world.edit(tls={"enabled": False})
        await world.delete(created)
        await world.settle()
        with pytest.raises(NotFound):
            await certificate(world)


async def test_without_tls_there_is_no_certificate(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        with pytest.raises(NotFound):
            await certificate(world)
        assert (await world.status()).certificate == ""


def test_clients_and_members_must_use_tls_and_members_verify_each_other() -> None:
    configuration = Configuration("db", "shop", "keeper", tls=True)
    others = [rule for rule in configuration.access_rules() if "samehost" not in rule]
    assert [rule.split()[0] for rule in others] == ["hostssl"] * 3
    assert configuration.settings()["postgresql"]["parameters"]["ssl"] == "on"
    logins = yaml.safe_load(configuration.file())["postgresql"]["authentication"]
    assert {logins[name]["sslmode"] for name in ("replication", "rewind")} == {"verify-ca"}


def test_only_the_certificate_is_mounted_and_not_the_key_of_its_authority() -> None:
    wanted = database(**TLS)
    (volume,) = PostgreSQL().render(wanted, "18.6", secrets_of(wanted)).volumes
    assert {item["key"] for item in volume["secret"]["items"]} == {"ca.crt", "tls.crt", "tls.key"}
    assert PostgreSQL().connection(wanted, "db", Login("app", "secret"))["uri"].endswith("/app?sslmode=require")


def test_the_certificate_has_the_names_that_clients_use() -> None:
    hosts = hosts_of(database())
    assert {f"{NAME}-rw", f"{NAME}-rw.default.svc", f"{NAME}-ro", f"*.{NAME}.default.svc.cluster.local"} <= set(hosts)
    assert Authority("test").sign("test", hosts=hosts)


def test_servers_of_debian_are_found_by_their_version(tmp_path: Path) -> None:
    program = tmp_path / "15" / "bin" / "postgres"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)'\n")
    program.chmod(0o755)
    assert system_installations(tmp_path) == {"15.18": tmp_path / "15"}
    assert system_installations(tmp_path / "none") == {}
