"""The lifecycle of a namespace on the embedded server, on virtual time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from konverge.k8s.core.v1 import ConfigMap, Namespace, ServiceAccount
from konverge.objects import ObjectMeta
from konverge.testing import settle
from konverge_cluster.namespaces.conditions import DeletionResult, conditions_after
from namespace_scenarios import CERTIFICATE, conditions_of, delete_namespace, namespace_server, read, restore_defaults

NOW = datetime(2027, 1, 15, tzinfo=UTC)


async def test_every_namespace_has_a_service_account_and_the_root_ca() -> None:
    async with namespace_server() as (_, client):
        await settle()
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            assert await read(client, ServiceAccount, "default", name) is not None
            found = await client.get(ConfigMap, "kube-root-ca.crt", namespace=name)
            assert found.data == {"ca.crt": CERTIFICATE}


async def test_namespace_defaults_are_restored() -> None:
    async with namespace_server() as (_, client):
        result = await restore_defaults(client, "shop")

        assert result["authority"]["data"] == {"ca.crt": CERTIFICATE.split("\n")[0]}


async def test_namespace_content_is_deleted_pods_first_and_conditions_say_what_blocks_it() -> None:
    async with namespace_server() as (_, client):
        stages = await delete_namespace(client, "shop")

        # While the pod exists, no other kind is deleted.
        assert stages[0][2] == ["free", "held", "kube-root-ca.crt"]
        assert stages[2][2] == ["held"]
        assert stages[2][1]["NamespaceFinalizersRemaining"] == (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: test.konverge.dev/hold in 1 resource instances",
        )


async def test_a_namespace_with_another_finalizer_loses_its_content_and_stays() -> None:
    async with namespace_server() as (_, client):
        await client.create(Namespace(metadata=ObjectMeta(name="shop", finalizers=["test.konverge.dev/hold"])))
        await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="shop")))
        await client.delete(Namespace, "shop")
        await asyncio.sleep(60)

        found = await client.get(Namespace, "shop")
        assert found.spec.finalizers == []
        assert await client.list(ConfigMap, namespace="shop") == []
        assert {one[0] for one in (await conditions_of(client, "shop")).values()} == {"False"}


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = conditions_after(DeletionResult(errors=["one"]), [], NOW)
    second = conditions_after(DeletionResult(errors=["one", "two"]), first, NOW + timedelta(seconds=5))
    third = conditions_after(DeletionResult(), second, NOW + timedelta(seconds=9))

    times = [
        next(one.last_transition_time for one in found if one.type == "NamespaceDeletionContentFailure")
        for found in (first, second, third)
    ]
    assert times == [NOW, NOW, NOW + timedelta(seconds=9)]


def test_errors_are_counted_and_sorted() -> None:
    found = {one.type: one for one in conditions_after(DeletionResult("no answer", ["b", "a"]), [], NOW)}

    assert found["NamespaceDeletionDiscoveryFailure"].message == "no answer"
    words = "Failed to delete all resource types, 2 remaining: a, b"
    assert found["NamespaceDeletionContentFailure"].message == words
    assert found["NamespaceContentRemaining"].status == "False"
