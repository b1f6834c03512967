"""kr8s: create, get, list, watch, patch, delete of a custom resource."""

import asyncio
import logging
import sys
from contextlib import aclosing

import kr8s.asyncio
from kr8s.asyncio.objects import new_class


async def main() -> None:
    api = await kr8s.asyncio.api(kubeconfig=sys.argv[1])
    Widget = new_class("Widget", "peers.test/v1", namespaced=True, plural="widgets")  # noqa: N806
    spec = {"metadata": {"name": "kr8s", "namespace": sys.argv[2]}, "spec": {"size": 1}}
    widget = await Widget(spec, api=api)
    await widget.create()
    assert widget.spec["mode"] == "a", widget.spec
    assert (await Widget.get("kr8s", namespace=sys.argv[2], api=api)).metadata.uid == widget.metadata.uid
    names = [each.name async for each in api.get("widgets.peers.test", namespace=sys.argv[2])]
    assert names == ["kr8s"], names

    async def watch() -> list[str]:
        seen = []
        async with aclosing(api.watch("widgets.peers.test", namespace=sys.argv[2])) as events:
            async for kind, _ in events:
                seen.append(kind)
                watching.set()
                if kind == "DELETED":
                    break
        return seen

    watching = asyncio.Event()
    watcher = asyncio.create_task(watch())
    await watching.wait()
    await widget.patch({"spec": {"size": 2}})
    assert widget.spec["size"] == 2
    await widget.label({"tier": "front"})
    await widget.delete()
    kinds = await asyncio.wait_for(watcher, 20)
    assert kinds == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"], kinds
    print("done")


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
