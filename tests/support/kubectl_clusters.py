"""Two clusters for kubectl: the embedded one on a port, and real programs whose nodes are played.

Both live in a thread with a loop of their own, so that tests can wait for programs.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from konverge.client import Client, load_config
from konverge.testing import ControlPlane
from konverge.testing.leak_check import LeakCheckLoop, assert_no_leaks
from konverge_cluster import EmbeddedCluster
from konverge_cluster.nodes import Behavior, SimulatedNodes
from kubectl import Kubectl, Run

__all__ = ["Ground", "Line", "embedded_ground", "in_thread", "k", "look", "real_ground"]

T = TypeVar("T")
LIMIT = 120
NODES = 2
PROGRAM = (
    Behavior(image="bad:*", never_ready=True),
    Behavior(image="slow:*", stops_after=2),
    Behavior(image="slower:*", stops_after=12),
)

_MASKS = (
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-<hash>-<end>"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b"), "-<hash>"),
    (re.compile(r"pod-template-hash=\w+"), "pod-template-hash=<hash>"),
    (re.compile(r"(?<=once-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "<end>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+"), "<address>"),
    (re.compile(r"\bnode-\d\b"), "<node>"),
)
_PASSING = re.compile(r"^Waiting for (deployment|daemon set|\d+ pods).*\n?", re.MULTILINE)
"""What `rollout status` says on its way; how often depends on how fast a cluster is."""


@dataclass(frozen=True)
class Line:
    """A command line; `text` is what kubectl reads. With `words` it is given again until all of them are shown."""

    line: str
    text: str = ""
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.line


def k(line: str, text: str = "") -> Line:
    return Line(line, text)


def look(line: str, *words: str) -> Line:
    return Line(line, "", words)


@dataclass
class Ground:
    """A cluster, and kubectl pointed at it."""

    name: str
    kubectl: Kubectl

    def play(self, namespace: str, lines: list[Line]) -> list[Run]:
        """Give a script its namespace, and play it in there."""
        made = self.kubectl.run(["create", "namespace", namespace], limit=LIMIT)
        assert made.code == 0, made.err
        return [self._play(line, namespace) for line in lines]

    def _play(self, line: Line, namespace: str) -> Run:
        end = time.monotonic() + LIMIT
        while True:
            arguments = ["-n", namespace, *line.line.replace("<namespace>", namespace).split(" ")]
            run = _masked(self.kubectl.run(arguments, text=line.text, limit=LIMIT), namespace)
            if all(word in run.out + run.err for word in line.words) or time.monotonic() > end:
                return run
            time.sleep(0.3)  # it is another process that is waited for


def _masked(run: Run, namespace: str) -> Run:
    out, err = run.out, run.err
    for pattern, name in _MASKS:
        out, err = pattern.sub(name, out), pattern.sub(name, err)
    out = _PASSING.sub("", out).replace(namespace, "<namespace>")
    lines = [re.sub(r"(?<=\S) +", " ", line) for line in out.splitlines()]
    if lines and lines[0].startswith("NAME "):
        lines = [lines[0], *sorted(lines[1:])]
    return Run(run.code, "\n".join(lines), err.replace(namespace, "<namespace>"))


@contextmanager
def in_thread(entered: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Hold a context open on a loop in a thread."""
    held: Future[tuple[T, Callable[[], object]]] = Future()

    async def hold() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        async with entered() as value:
            held.set_result((value, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()
        await assert_no_leaks()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=LeakCheckLoop) as runner:
                runner.run(hold())
        except BaseException as error:
            if held.done():
                raise
            held.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        value, leave = held.result(timeout=LIMIT)
    except BaseException:
        thread.join()
        raise
    try:
        yield value
    finally:
        leave()
        thread.join()


@contextmanager
def embedded_ground(directory: Path) -> Iterator[Ground]:
    """The embedded cluster on a port."""
    kubeconfig = directory / "kubeconfig"

    @asynccontextmanager
    async def living() -> AsyncGenerator[None]:
        async with EmbeddedCluster(nodes=NODES, behaviors=PROGRAM) as cluster:
            await cluster.listen()
            cluster.write_kubeconfig(kubeconfig)
            yield

    with in_thread(living):
        yield Ground("embedded", Kubectl(kubeconfig, directory))


@contextmanager
def real_ground(directory: Path) -> Iterator[Ground]:
    """A real API server and controller manager, with nodes that are played."""

    @asynccontextmanager
    async def living(plane: ControlPlane) -> AsyncGenerator[None]:
        async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
            simulated = SimulatedNodes(client, nodes=NODES)
            simulated.program(*PROGRAM)
            async with simulated.running():
                yield

    with ControlPlane(controller_manager=True) as plane, in_thread(lambda: living(plane)):
        yield Ground("real", Kubectl(plane.kubeconfig, directory))
