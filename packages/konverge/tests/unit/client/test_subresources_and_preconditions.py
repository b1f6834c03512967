"""Writes to subresources, and deletes with preconditions."""

from __future__ import annotations

import pytest

from konverge.client import Client, InProcessTransport
from konverge.errors import Conflict
from konverge.k8s.core.v1 import ConfigMap, Container, Pod, PodSpec
from konverge.objects import ObjectMeta
from konverge_cluster.embedded_server import EmbeddedServer


def a_client() -> Client:
    return Client(InProcessTransport(EmbeddedServer(seed=1).handle))


async def test_a_body_is_sent_to_the_subresource_of_an_object() -> None:
    client = a_client()
    spec = PodSpec(containers=[Container(name="c", image="i")])
    pod = await client.create(Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}

    await client.write_subresource(pod, "binding", binding)

    assert (await client.get(Pod, "p")).spec.node_name == "n1"
    with pytest.raises(Conflict, match=r"binding of Pod default/p: .*already assigned to node"):
        await client.write_subresource(pod, "binding", binding)


async def test_unchanged_deletes_an_object_only_at_the_version_that_was_read() -> None:
    client = a_client()
    read = await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
    await client.patch(ConfigMap, "c", {"data": {"a": "b"}})

    with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
        await client.delete(read, unchanged=True)

    await client.delete(await client.get(ConfigMap, "c"), unchanged=True)
    assert await client.list(ConfigMap, namespace="default") == []
