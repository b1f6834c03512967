"""What a Database warns of, what its children say of others, and what makes its operator look again."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from databases import NAME, database, running
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Pod, Service
from konverge.k8s.networking.v1 import NetworkPolicy
from konverge.objects import find_condition, from_wire
from konverge_cluster.testing import TestCluster
from konverge_operators.database.admission import find_warnings
from konverge_operators.database.api import Database
from konverge_operators.database.children import POD_MONITOR, base_objects
from konverge_operators.database.names import secrets_of
from konverge_operators.database.postgresql.engine import PostgreSQL
from webapps import optional_crd

pytestmark = pytest.mark.plain_loop

TODAY = date(2026, 11, 16)
NO_FAILOVER = "1 replica: without a second one there is no failover; set .spec.replicas"
NO_BACKUPS = "there are no backups"
NO_DISASTER_RECOVERY = "backups go to the claim orders-backup: it does not survive the loss of the cluster; use s3"


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        ({}, [NO_FAILOVER, NO_BACKUPS]),
        ({"replicas": 2}, [NO_BACKUPS]),
        ({"replicas": 2, "backup": {"enabled": True}}, [NO_DISASTER_RECOVERY]),
        ({"replicas": 2, "backup": {"enabled": True, "destination": {"claim": "safe"}}}, []),
        (
            {"replicas": 2, "version": "13.4"},
            [NO_BACKUPS, "version 13 gets no fixes any more since 2025-11-13"],
        ),
        ({"replicas": 2, "version": "99"}, [NO_BACKUPS]),
    ],
)
def test_a_risk_is_warned_of(spec: dict[str, Any], warnings: list[str]) -> None:
    assert list(find_warnings(database(**spec), PostgreSQL(), TODAY)) == warnings


async def test_the_server_warns_of_a_new_spec_only(cluster: TestCluster, caplog: pytest.LogCaptureFixture) -> None:
    def warnings() -> list[str]:
        return [one.__dict__["warning"] for one in caplog.records if hasattr(one, "warning")]

    async with running(cluster) as world:
        await world.create(replicas=2)
        assert warnings() == [NO_BACKUPS]
        await world.edit({"note": "1"})
        assert warnings() == [NO_BACKUPS]
        await world.edit(replicas=1)
        assert warnings() == [NO_BACKUPS, NO_FAILOVER]  # a client logs each one once


async def test_fields_that_others_have_set_are_reported_until_they_are_gone(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        assert foreign(await world.status()) == ""
        other = cluster.client().using(field_manager="hand")
        sidecar = {"name": "sidecar", "image": "other:1"}
        change: Any = {"spec": {"template": {"spec": {"containers": [sidecar]}}}}
        await other.patch(StatefulSet, NAME, change, namespace="default", patch_type="strategic")
        change = {"spec": {"ports": [{"name": "more", "port": 9999}]}}
        await other.patch(Service, f"{NAME}-rw", change, namespace="default", patch_type="strategic")
        await world.settle()
        assert foreign(await world.status()) == (
            f'StatefulSet {NAME} .spec.template.spec.containers[name="sidecar"] by hand, '
            f'Service {NAME}-rw .spec.ports[port=9999,protocol="TCP"] by hand'
        )
        change = {"spec": {"ports": [{"port": 9999, "$patch": "delete"}]}}
        await other.patch(Service, f"{NAME}-rw", change, namespace="default", patch_type="strategic")
        change = {"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "$patch": "delete"}]}}}}
        await other.patch(StatefulSet, NAME, change, namespace="default", patch_type="strategic")
        await world.settle()
        assert foreign(await world.status()) == ""


async def test_the_report_of_foreign_fields_is_written_again_when_it_is_lost(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        await world.client.patch(
            Database, NAME, {"status": {"conditions": []}}, namespace="default", subresource="status"
        )
        await world.settle()
        assert foreign(await world.status()) == ""


def foreign(status: Any) -> str:
    condition = find_condition(status.conditions, "ForeignFields")
    assert condition is not None
    assert (condition.status == "True") == bool(condition.message)
    return str(condition.message)


def test_metrics_are_scraped_by_annotations_or_by_a_pod_monitor() -> None:
    engine, sample = PostgreSQL(), database()
    template = engine.render(sample, "18.6", secrets_of(sample))
    plain = base_objects(sample, template)
    headless = next(one for one in plain if isinstance(one, Service) and one.name == NAME)
    assert headless.metadata.annotations == {"prometheus.io/scrape": "true", "prometheus.io/port": "8008"}
    assert not [one for one in plain if one.kind == POD_MONITOR.kind]

    monitored = base_objects(sample, template, pod_monitors=True)
    headless = next(one for one in monitored if isinstance(one, Service) and one.name == NAME)
    assert not headless.metadata.annotations
    monitor: Any = next(one for one in monitored if one.kind == POD_MONITOR.kind)
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "patroni", "path": "/metrics"}]
    policy = next(one for one in plain if isinstance(one, NetworkPolicy))
    assert policy.spec.ingress is not None
    assert [port.port for rule in policy.spec.ingress[-1:] for port in rule.ports or ()] == [8008]


async def test_a_pod_monitor_is_created_where_its_kind_is_served(cluster: TestCluster) -> None:
    await cluster.install(optional_crd(POD_MONITOR))
    async with running(cluster) as world:
        await world.create()
        monitor = await world.client.get(POD_MONITOR, NAME, namespace="default")
        assert monitor["metadata"]["ownerReferences"][0]["kind"] == "Database"


def member_pod(**status: Any) -> Pod:
    annotations = {"status": json.dumps(status)} if status else {}
    content = {"metadata": {"name": "a", "annotations": annotations}, "spec": {"containers": []}}
    return from_wire(Pod, {"apiVersion": "v1", "kind": "Pod", **content})


def test_a_position_says_nothing_new_about_a_member() -> None:
    changed = PostgreSQL().member_changed
    running_member = {"state": "running", "role": "replica", "xlog_location": 1, "replay_lsn": 1, "receive_lsn": 1}
    before = member_pod(**running_member)
    assert not changed(before, member_pod(**{**running_member, "xlog_location": 2, "replay_lsn": 2, "receive_lsn": 2}))
    assert changed(before, member_pod(**running_member, replication_state="streaming"))
    assert changed(before, member_pod(**running_member, pending_restart=True))
    assert changed(member_pod(), before)
