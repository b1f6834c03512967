"""After a refused write: is the cache stale, and does the owner of the child still exist?"""

from __future__ import annotations

import pytest

from konverge import Client, Conflict, ObjectMeta
from konverge.cache import Cache
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import AlreadyExists, ApiError, ApplyConflict, Cause, Invalid, NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Unstructured
from konverge.reconcile.stale import CREATE_ONLY, Precondition, check_owner, is_stale
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import any_request, forbidden
from konverge_cluster import EmbeddedServer

STALE = "apply Pod default/child: the cache is stale, nothing was written: ConfigMap default/owner"
REFUSED = Conflict("the object has been modified", status=409, verb="apply", kind="Pod", key="default/child")


@pytest.mark.parametrize(
    ("error", "stale"),
    [
        (REFUSED, True),
        (AlreadyExists("exists", status=409), True),
        (Invalid("uid", status=422, causes=(Cause("metadata.uid", "FieldValueInvalid", ""),)), True),
        (Invalid("name", status=422, causes=(Cause("metadata.name", "FieldValueInvalid", ""),)), False),
        (ApplyConflict("another manager", status=409), False),
        (NotFound("gone", status=404), False),
    ],
)
def test_some_errors_mean_that_the_cache_is_stale(error: ApiError, stale: bool) -> None:
    assert is_stale(error) is stale


async def test_a_write_for_an_owner_that_is_gone_or_replaced_is_a_conflict() -> None:
    transport = FaultTransport(InProcessTransport(EmbeddedServer(seed=1).handle))
    client = Client(transport, options=ClientOptions(namespace="default"))
    cache = Cache(client.collection)

    async def create() -> ConfigMap:
        return await client.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace="default")))

    async def check(owner: ConfigMap) -> str:
        with pytest.raises(Conflict) as caught:
            await check_owner(client, cache, owner, REFUSED)
        error = caught.value
        assert (error.status, error.reason, error.__cause__) == (409, "Conflict", REFUSED)
        assert (error.verb, error.kind, error.key) == ("apply", "Pod", "default/child")
        return str(error)

    owner = await create()
    await check_owner(client, cache, owner, REFUSED)  # it is alive
    with transport.script.active(any_request, forbidden("get configmaps")):
        assert (await check(owner)).startswith(f"{STALE} cannot be read: get ConfigMap default/owner: ")
    await client.delete(owner)
    assert (await check(owner)).startswith(f"{STALE} cannot be read: get ConfigMap default/owner: ")
    await create()
    assert await check(owner) == f"{STALE} was deleted and created again"


def test_a_precondition_is_added_to_a_copy_of_the_object() -> None:
    obj = ConfigMap(metadata=ObjectMeta(name="a", namespace="default", labels={"x": "y"}))
    document = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    both = Precondition("u", "7")
    assert (both.added_to(obj).uid, both.added_to(obj).resource_version) == ("u", "7")
    assert both.added_to(obj).metadata.labels == {"x": "y"}
    assert both.added_to(document)["metadata"] == {"name": "a", "uid": "u", "resourceVersion": "7"}
    assert CREATE_ONLY.added_to(document)["metadata"] == {"name": "a", "resourceVersion": "1"}
    assert Precondition("u").added_to(document)["metadata"] == {"name": "a", "uid": "u"}
    assert Precondition.of(None) == CREATE_ONLY
    assert (obj.uid, document["metadata"]) == ("", {"name": "a"})
