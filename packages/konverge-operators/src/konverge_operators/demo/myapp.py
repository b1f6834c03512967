"""The demo of the MyApp operator: a real program with a real PostgreSQL and a real redis-server.

The cluster and all operators, in one manager, run in this process; the servers and the program are processes of their
own. Each step is checked: by the status of the MyApp, and by requests to the program through its Service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

import konverge_operators.myapp
from konverge.client import is_deleted
from konverge.errors import WaitTimeout
from konverge.k8s.apps.v1 import ReplicaSet
from konverge.k8s.core.v1 import Service
from konverge.objects import from_wire
from konverge_operators.demo.database import NAMESPACE, running_cluster, running_operator
from konverge_operators.demo.steps import StepPrinter
from konverge_operators.myapp.api import MyApp, Phase
from konverge_operators.myapp.dependents import DATABASE
from konverge_operators.operator import operator

if TYPE_CHECKING:
    from konverge_cluster.embedded_cluster import EmbeddedCluster

__all__ = ["run_myapp_demo"]

_SAMPLE: Final = Path(konverge_operators.myapp.__file__).parent / "samples" / "process_nodes" / "notes.yaml"
_NAME: Final = "notes"
_TIMEOUT: Final = 180.0
_RETRY: Final = 0.2


async def run_myapp_demo(printer: StepPrinter) -> None:
    """Run all steps; the first that fails ends the demo with an error that names it."""
    # Imported here because the package of the embedded cluster is optional.
    from konverge_cluster.processes import LocalImages

    async with running_cluster(LocalImages.of(operator).images) as cluster:
        printer.print_step("cluster: API server, controllers and a node that runs processes, in this process")
        async with running_operator(cluster.client(NAMESPACE), operator):
            printer.print_step("operators: MyApp, Database, Cache and the others, in one manager")
            await _Steps(cluster, printer).run()
    printer.print_step("ended: every process is gone")


class _Steps:
    """The life of a MyApp, and of a second one that gets its database."""

    def __init__(self, cluster: EmbeddedCluster, printer: StepPrinter) -> None:
        self._client = cluster.client(NAMESPACE)
        self._printer = printer

    async def run(self) -> None:
        await self._create(_NAME)
        self._printer.print_step("ready: a program, bound to a PostgreSQL and a redis-server by Secret references")
        await self._request(_NAME, "PUT", "stored")
        self._printer.print_step("wrote: a note, into the database")
        await self._request(_NAME, "GET", "good morning (database)")
        await self._request(_NAME, "GET", "good morning (cache)")
        self._printer.print_step("read: first from the database, then from the cache")
        await self._rotate()
        await self._hand_over()

    async def _rotate(self) -> None:
        database = f"{_NAME}-database"
        request = {"metadata": {"annotations": {"example.com/rotate-password": "demo"}}}
        await self._client.patch(DATABASE, database, request)
        try:
            async with asyncio.timeout(_TIMEOUT):
                while await self._templates() < 2:  # noqa: ASYNC110 - ReplicaSets are listed, not watched
                    await asyncio.sleep(_RETRY)
        except TimeoutError:
            raise self._printer.failure(f"not within {_TIMEOUT:g} s: new credentials roll the pods") from None
        await self._wait(_NAME, "the new pods run", _is_running)
        await self._request(_NAME, "GET", "good morning (cache)")
        if await self._templates() != 2:
            raise self._printer.failure("the pods were rolled more than once")
        self._printer.print_step("rotated: the database has a new password, and the program was rolled once")

    async def _hand_over(self) -> None:
        await self._client.delete(MyApp, _NAME)
        await self._client.wait_for(MyApp, _NAME, is_deleted(), timeout=_TIMEOUT)
        kept = await self._client.get(DATABASE, f"{_NAME}-database")
        self._printer.print_step(f"deleted: the application and its cache are gone, Database {kept.name} is kept")
        await self._create("second", database={"existing": kept.name})
        await self._request("second", "GET", "good morning (database)")
        self._printer.print_step("taken over: a second application has the note")

    async def _create(self, name: str, **spec: Any) -> None:
        document = yaml.safe_load(_SAMPLE.read_text())
        document["metadata"]["name"] = name
        document["spec"] |= spec
        await self._client.create(from_wire(MyApp, document))
        await self._wait(name, f"{name} runs", _is_running)

    async def _templates(self) -> int:
        """Return how many pod templates the application has had."""
        label = f"app.kubernetes.io/instance={_NAME},app.kubernetes.io/component=application"
        return len(await self._client.list(ReplicaSet, namespace=NAMESPACE, labels=label))

    async def _wait(self, name: str, what: str, fact: Callable[[MyApp], bool]) -> None:
        def holds(obj: Any) -> bool:
            return obj is not None and fact(obj)

        try:
            await self._client.wait_for(MyApp, name, holds, timeout=_TIMEOUT)
        except WaitTimeout as error:
            last = await self._client.get(MyApp, name)
            text = f"{what}: not within {_TIMEOUT:g} s ({last.status.phase}: {last.status.message})"
            raise self._printer.failure(text) from error

    async def _request(self, app: str, method: str, expected: str) -> None:
        """Send a request until the program accepts it; check the answer."""
        service = await self._client.get(Service, app)
        answer = ""
        try:
            async with asyncio.timeout(_TIMEOUT):
                while not answer:
                    answer = await _send(str(service.spec.cluster_ip), method)
                    await asyncio.sleep(0 if answer else _RETRY)
        except TimeoutError:
            raise self._printer.failure(f"{app} does not answer within {_TIMEOUT:g} s") from None
        if answer != expected:
            raise self._printer.failure(f"{app} answered {answer!r}, not {expected!r}")


async def _send(host: str, method: str) -> str:
    """Send a request about one note; return the answer, "" if there was none."""
    body = "good morning" if method == "PUT" else ""
    try:
        reader, writer = await asyncio.open_connection(host, 8080)
    except OSError:
        return ""
    try:
        writer.write(f"{method} /hello HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        return (await reader.read()).partition(b"\r\n\r\n")[2].decode()
    except OSError:
        return ""
    finally:
        writer.close()


def _is_running(app: MyApp) -> bool:
    return app.status.phase is Phase.RUNNING
