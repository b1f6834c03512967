"""kubernetes_asyncio: create, get, list, watch, patch, delete of a custom resource."""

import asyncio
import logging
import sys

from kubernetes_asyncio import client, config, watch

PLACE = {"group": "peers.test", "version": "v1", "namespace": sys.argv[2], "plural": "widgets"}


async def main() -> None:
    await config.load_kube_config(config_file=sys.argv[1])
    async with client.ApiClient() as api:
        objects = client.CustomObjectsApi(api)
        body = {"apiVersion": "peers.test/v1", "kind": "Widget", "metadata": {"name": "asyncio"}, "spec": {"size": 1}}
        made = await objects.create_namespaced_custom_object(body=body, **PLACE)
        assert made["spec"] == {"size": 1, "mode": "a"}, made
        found = await objects.get_namespaced_custom_object(name="asyncio", **PLACE)
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        listed = await objects.list_namespaced_custom_object(**PLACE)
        assert [each["metadata"]["name"] for each in listed["items"]] == ["asyncio"]

        patched = await objects.patch_namespaced_custom_object(
            name="asyncio", body={"spec": {"size": 2}}, _content_type="application/merge-patch+json", **PLACE
        )
        assert patched["spec"]["size"] == 2
        await objects.delete_namespaced_custom_object(name="asyncio", **PLACE)

        kinds = []
        version = made["metadata"]["resourceVersion"]
        async with watch.Watch() as watcher:
            stream = watcher.stream(
                objects.list_namespaced_custom_object, resource_version=version, timeout_seconds=20, **PLACE
            )
            async for event in stream:
                kinds.append(event["type"])
                if event["type"] == "DELETED":
                    break
        assert kinds == ["MODIFIED", "DELETED"], kinds
    print("done")


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
