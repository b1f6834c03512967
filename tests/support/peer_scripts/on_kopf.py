"""kopf: an operator that sees a custom resource created, changed and deleted, and writes its status."""

import asyncio
import base64
import json
import logging
import os
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

import kopf
import yaml

seen: list[str] = []
stopped = asyncio.Event()


@kopf.on.login()
def login(**known: Any) -> Any:
    return kopf.login_with_kubeconfig(**known)


@kopf.on.create("peers.test", "v1", "widgets")
async def created(spec: Any, patch: Any, **_: Any) -> None:
    seen.append(f"created {spec['size']}")
    patch.status["phase"] = "Created"


@kopf.on.update("peers.test", "v1", "widgets")
async def updated(spec: Any, **_: Any) -> None:
    seen.append(f"updated {spec['size']}")


@kopf.on.delete("peers.test", "v1", "widgets")
async def deleted(**_: Any) -> None:
    seen.append("deleted")


class Api:
    """The few requests that somebody else makes while the operator runs."""

    def __init__(self, kubeconfig: str) -> None:
        content = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self._server, self._token = cluster["server"], user["token"]

    async def ask(self, method: str, name: str = "", body: Any = None) -> Any:
        path = f"/apis/peers.test/v1/namespaces/{sys.argv[2]}/widgets/{name}".rstrip("/")
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data, headers, method=method)
        return await asyncio.to_thread(self._send, request)

    def _send(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, context=self._tls) as answer:
            return json.loads(answer.read())

    async def until(self, what: str) -> None:
        while what not in seen:
            await asyncio.sleep(0.05)


async def main() -> None:
    api = Api(sys.argv[1])
    os.environ["KUBECONFIG"] = sys.argv[1]
    ready = asyncio.Event()
    operator = asyncio.create_task(
        kopf.operator(namespaces=[sys.argv[2]], standalone=True, ready_flag=ready, stop_flag=stopped)
    )
    async with asyncio.timeout(60):
        await ready.wait()
        body = {"apiVersion": "peers.test/v1", "kind": "Widget", "metadata": {"name": "kopf"}, "spec": {"size": 1}}
        await api.ask("POST", body=body)
        await api.until("created 1")
        while (await api.ask("GET", "kopf")).get("status", {}).get("phase") != "Created":
            await asyncio.sleep(0.05)
        await api.ask("PATCH", "kopf", {"spec": {"size": 2}})
        await api.until("updated 2")
        await api.ask("DELETE", "kopf")
        await api.until("deleted")
        while (await api.ask("GET"))["items"]:
            await asyncio.sleep(0.05)
    stopped.set()
    await operator
    assert seen == ["created 1", "updated 2", "deleted"], seen
    print("done")


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
