"""Clusters with process nodes, and the facts that tests wait for."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest

from konverge import Client
from konverge.client import exists, is_deleted
from konverge.errors import ControlPlaneError
from konverge.objects import Key, Unstructured
from konverge.testing import find_binaries
from konverge_cluster import EmbeddedCluster
from konverge_cluster.processes import LocalImage, Processes
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.readable_copies import is_public
from konverge_cluster.processes.supervisors import Mount

T = TypeVar("T")

Start = Callable[..., AbstractAsyncContextManager["ProcessCluster"]]
"""Starts a cluster in one of the two modes: the fixture `start`."""

LIMIT = 60.0
"""How long to wait for a fact: far longer than it takes, for a busy machine."""

SLEEP = "trap 'exit 0' TERM; sleep 3600 & wait"
"""A script that runs until SIGTERM."""

SHELL = LocalImage("sh:*", command=["/bin/sh", "-c"])
PYTHON = LocalImage("python:*", command=[sys.executable, "-u", "-c"])


class ProcessCluster:
    """One namespace of an embedded cluster with one process node."""

    def __init__(self, cluster: EmbeddedCluster, runtime: Processes, namespace: str) -> None:
        self.client: Client = cluster.client(namespace)
        self.cluster = cluster
        self.runtime = runtime
        self.namespace = namespace

    async def open(self) -> None:
        """Create the namespace, and wait until pods can be created in it."""
        await self.client.create(_object("Namespace", self.namespace))
        await self.client.wait_for("serviceaccounts", "default", exists(), timeout=LIMIT)

    async def close(self) -> None:
        """Delete all workloads and pods at once, and wait until their processes are gone."""
        for kind in ("deployments", "statefulsets"):
            for one in await self.client.list(kind, namespace=self.namespace):
                await self.client.delete(one)
                await self.client.wait_for(kind, one.name, is_deleted(), namespace=self.namespace, timeout=LIMIT)
        for one in await self.client.list("pods", namespace=self.namespace):
            await self.client.delete(one, grace_period=0, missing_ok=True)
        await self.until(lambda: all(one.key.namespace != self.namespace for one in self.runtime.pods()))

    async def create(self, name: str, container: dict[str, Any], **spec: Any) -> None:
        """Create a pod of one container."""
        await self.client.create(pod(name, container, **spec))

    async def wait(self, name: str, fact: Callable[[Unstructured], bool]) -> Unstructured:
        """Wait until a fact holds for a pod; return the pod."""

        def holds(obj: Any) -> bool:
            return obj is not None and fact(obj)

        found = await self.client.wait_for("pods", name, holds, timeout=LIMIT)
        assert found is not None
        return found

    async def wait_until_gone(self, name: str) -> None:
        """Wait until a pod no longer exists."""
        await self.client.wait_for("pods", name, is_deleted(), timeout=LIMIT)

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something holds outside of the cluster."""
        async with asyncio.timeout(LIMIT):
            while not fact():  # noqa: ASYNC110 - processes and files have no event to wait for
                await asyncio.sleep(0.02)

    async def until_log(self, name: str, text: str) -> None:
        """Wait until a container has printed something."""
        await self.wait(name, has_phase("Running"))
        await self.until(lambda: text in self.log(name))

    async def until_async(self, value: Callable[[], Coroutine[Any, Any, str]], expected: str) -> None:
        """Wait until a value that takes time to read is the expected one."""
        async with asyncio.timeout(LIMIT):
            while await value() != expected:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def until_event(self, name: str, text: str) -> None:
        """Wait for an event of a pod with a text."""
        async with asyncio.timeout(LIMIT):
            while not any(text in one for one in await self.events(name)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def create_object(self, obj: dict[str, Any]) -> None:
        await self.client.create(Unstructured(obj))

    def mounts(self, name: str) -> list[Mount]:
        """Return the mounts of a container's volumes."""
        found = self.process_pod(name)
        return found.sandbox.volume_mounts(found.spec["containers"][0], {}, 0)

    def touch(self, name: str, file: str) -> None:
        """Create a file in the first volume of a pod from outside: a command in it may be killed with its container."""
        Path(self.mounts(name)[0].source, file).touch()

    async def delete(self, name: str) -> None:
        await self.client.delete(await self.client.get("pods", name))

    def process_pod(self, name: str) -> ProcessPod:
        found = self.runtime.pod(Key(self.namespace, name))
        assert found is not None, f"pod {name} does not run here"
        return found

    def log(self, name: str, container: str = "c", run: int = 0) -> str:
        """Return the output of a container, without times."""
        path = self.process_pod(name).sandbox.log_path(container, run)
        lines = path.read_text().splitlines() if path.exists() else []
        return "\n".join(line.split(" ", 3)[3] for line in lines)

    async def execute(self, name: str, *command: str, container: str = "c") -> str:
        code, output = await self.process_pod(name).containers[container].execute(list(command))
        assert code == 0, output
        return output

    async def events(self, name: str) -> list[str]:
        every = await self.client.list("events", namespace=self.namespace)
        return [f"{one['reason']}: {one['message']}" for one in every if one["involvedObject"]["name"] == name]


@asynccontextmanager
async def process_cluster(*images: LocalImage, **options: Any) -> AsyncGenerator[ProcessCluster]:
    """Run a cluster whose pods with these images are processes; sh and python are always there."""
    runtime = Processes([SHELL, PYTHON, *images], **{"crash_backoff": 0.5, **options})
    async with EmbeddedCluster(nodes=1, runtime=runtime) as cluster:
        await cluster.listen()
        running = ProcessCluster(cluster, runtime, "test")
        await running.open()
        yield running


SharedTest = Callable[[ProcessCluster], Coroutine[Any, Any, None]]
"""A test that gets a namespace of a shared cluster."""


# Prints its user and a file beside it. Both are below a directory that other users cannot enter.
_HIDDEN = """#!/bin/sh
id -u
cat "$(dirname "$0")/data/words"
"""


@contextmanager
def hidden_images() -> Iterator[list[LocalImage]]:
    """Write local images to a directory of mode 0700: `hidden`, and `etcd` if it is built."""
    with TemporaryDirectory() as directory:
        home = Path(directory)
        assert home.stat().st_mode & 0o777 == 0o700
        program, words = home / "app" / "run", home / "app" / "data" / "words"
        words.parent.mkdir(parents=True)
        words.write_text("hello")
        program.write_text(_HIDDEN)
        program.chmod(0o755)
        images = [LocalImage("hidden:*", command=[str(program)], paths=[str(home / "app")])]
        with suppress(ControlPlaneError):
            images.append(_etcd(Path(shutil.copy(find_binaries() / "etcd", home))))
        yield images


def _etcd(program: Path) -> LocalImage:
    urls = ["--listen-client-urls", "http://$(POD_IP):2379", "--advertise-client-urls", "http://$(POD_IP):2379"]
    peers = ["--listen-peer-urls", "http://$(POD_IP):2380", "--data-dir", "/data/etcd"]
    return LocalImage("etcd:*", command=[str(program)], args=[*urls, *peers], paths=[str(program)])


class SharedCluster:
    """A cluster in a thread of its own, so that many tests share it, each with a namespace.

    `tests` are those that will be run, in that order. Tests mostly wait, so the next ones are started early.
    """

    def __init__(self, *images: LocalImage, tests: Sequence[SharedTest] = (), **options: Any) -> None:
        self._next = deque(tests)
        self._started: dict[SharedTest, Future[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._cluster = process_cluster(*images, **options)
        self._running = self.call(self._cluster.__aenter__())
        self._tests = 0

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop of the cluster, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * LIMIT)

    def stop(self) -> None:
        """Stop the cluster and the thread."""
        try:
            self.call(self._cluster.__aexit__(None, None, None))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def run(self, test: SharedTest) -> None:
        """Run a test in a namespace of its own; start some of the next ones."""
        if test not in self._started:
            self._start(test)
        while self._next and len(self._started) < EARLY and not _ALONE & {test, self._next[0]}:
            self._start(self._next[0])
        self._started.pop(test).result(2 * LIMIT)

    def _start(self, test: SharedTest) -> None:
        if test in self._next:
            self._next.remove(test)
        if test in _ALONE:
            wait(_RUNNING, 2 * LIMIT)
        started = self._started[test] = asyncio.run_coroutine_threadsafe(self._run(test), self._loop)
        _RUNNING.add(started)
        started.add_done_callback(_RUNNING.discard)

    async def _run(self, test: SharedTest) -> None:
        self._tests += 1
        cluster = ProcessCluster(self._running.cluster, self._running.runtime, f"test-{self._tests}")
        await cluster.open()
        try:
            await test(cluster)
        finally:
            await cluster.close()


EARLY = 4
"""How many tests of one cluster run at the same time."""

_RUNNING = set[Future[None]]()
_ALONE = set[SharedTest]()


def alone(test: SharedTest) -> SharedTest:
    """Mark a test that others would notice: it runs when none of them does."""
    _ALONE.add(test)
    return test


ONE_MODE = pytest.mark.parametrize("shared_cluster", ["namespaces"], indirect=True)
"""Marks tests of what is the same with and without namespaces: they run on one of the two clusters."""


def shared(test: SharedTest) -> Callable[[SharedCluster], None]:
    """Run a test in a namespace of each of the two shared clusters, on its loop."""

    @wraps(test)
    def run(shared_cluster: SharedCluster) -> None:
        shared_cluster.run(test)

    return _remember(run, test)


def limited(test: SharedTest) -> Callable[[SharedCluster], None]:
    """Run a test in a namespace of the cluster in which restarts wait long and logs are short."""

    @wraps(test)
    def run(limited_cluster: SharedCluster) -> None:
        limited_cluster.run(test)

    return _remember(run, test)


def _remember(run: Callable[[SharedCluster], None], test: SharedTest) -> Callable[[SharedCluster], None]:
    del run.__wrapped__  # type: ignore[attr-defined] # pytest would read the arguments of the test itself
    _TESTS[run] = test
    return run


_TESTS: dict[Callable[[SharedCluster], None], SharedTest] = {}


def select_tests(items: Sequence[pytest.Item], fixture: str, *modes: str) -> list[SharedTest]:
    """Return the tests that will share a cluster: the fixture, in one of the modes if it has some."""
    found = [one for one in items if isinstance(one, pytest.Function) and fixture in one.fixturenames]
    chosen = [one for one in found if not modes or one.callspec.params[fixture] in modes]
    return [_TESTS[one.function] for one in chosen]


def _object(kind: str, name: str) -> Unstructured:
    return Unstructured({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})


def pod(name: str, container: dict[str, Any], **spec: Any) -> Unstructured:
    """Return a pod of one container `c`, and of others in `spec`; it has no token, and two seconds to stop."""
    first = {"name": "c", "image": "sh:1", **container}
    containers = [first, *spec.pop("containers", ())]
    full = {"terminationGracePeriodSeconds": 2, "automountServiceAccountToken": False, "containers": containers, **spec}
    metadata: dict[str, Any] = {"name": name}
    for part in ("labels", "annotations"):
        if part in full:
            metadata[part] = full.pop(part)
    return Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": full})


def readable_python() -> str:
    """Return an interpreter that every user can execute; this one may be below a closed home directory."""
    found = [one for one in (sys.executable, "/usr/bin/python3") if is_public(os.path.realpath(one))]
    assert found, "no interpreter of this machine can be executed by other users"
    return found[0]


def python_container(program: str, **env: str) -> dict[str, Any]:
    """Return a container that runs a program of Python; it has the variable POD_IP."""
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    values = [{"name": name, "value": value} for name, value in {"PROGRAM": program, **env}.items()]
    return {"args": [f'exec {readable_python()} -u -c "$PROGRAM"'], "env": [address, *values]}


def config_map(name: str, **data: str) -> Unstructured:
    metadata = {"name": name}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def secret(name: str, **data: str) -> Unstructured:
    metadata = {"name": name}
    return Unstructured({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})


def status_of(obj: Unstructured, container: str = "c") -> dict[str, Any]:
    """Return the status of a container, empty if it has none yet."""
    status = obj.get("status") or {}
    every = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return next((one for one in every if one["name"] == container), {})


def is_ready(obj: Unstructured) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def has_phase(*phases: str) -> Callable[[Unstructured], bool]:
    return lambda obj: (obj.get("status") or {}).get("phase") in phases


def waits_for(reason: str, container: str = "c") -> Callable[[Unstructured], bool]:
    return lambda obj: ((status_of(obj, container).get("state") or {}).get("waiting") or {}).get("reason") == reason


def terminated(obj: Unstructured, container: str = "c") -> dict[str, Any]:
    found: dict[str, Any] = (status_of(obj, container).get("state") or {}).get("terminated") or {}
    return found
