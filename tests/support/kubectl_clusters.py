"""Two clusters for kubectl: the embedded one on a port, and real programs with simulated nodes.

Both run in a thread with its own loop, so that tests can wait for programs.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from konverge.client import Client, load_config
from konverge.testing import ControlPlane
from konverge.testing.leak_check import LeakCheckLoop, assert_all_closed
from konverge_cluster import EmbeddedCluster
from konverge_cluster.nodes import Behavior, SimulatedNodes
from konverge_cluster.volumes import create_default_class
from kubectl import Kubectl, Run
from volume_clusters import provisioner

__all__ = [
    "KubectlCluster",
    "Line",
    "Pages",
    "differences",
    "embedded_kubectl_cluster",
    "in_thread",
    "k",
    "real_kubectl_cluster",
    "run_on_both",
    "wait_for",
]

T = TypeVar("T")
Pages = tuple[list[Run], list[Run]]
"""What the lines of a script printed on the real cluster, and on the embedded one."""
LIMIT = 120
SETTLES_WITHIN = 30
READS = ("get ", "describe ", "rollout history ")
NODES = 2
PROGRAM = (
    Behavior(image="bad:*", never_ready=True),
    Behavior(image="slow:*", stops_after=2),
    Behavior(image="slower:*", stops_after=12),
)

_END = r"[bcdfghjklmnpqrstvwxz2456789]{5}\b"
_MASKS = (
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-<hash>-<end>"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b"), "-<hash>"),
    (re.compile(r"pod-template-hash=\w+"), "pod-template-hash=<hash>"),
    (
        re.compile(r"\b((?:once|jobs|manual|unpullable|parts-\d|shop-load-\d)-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"),
        r"\1<end>",
    ),
    (re.compile(r"(?<=kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "<end>"),
    (re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d 20\d\d"), "<time>"),
    (re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+ \S+"), "<time>"),
    (re.compile(r"\b172\.30\.0\.\d+"), "<host>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+"), "<address>"),
    (re.compile(r"\bnode-\d\b"), "<node>"),
)
_PASSING = re.compile(
    r"^(Waiting for (deployment|daemon set|partitioned|statefulset spec update|\d+ pods)|waiting for statefulset).*\n?",
    re.MULTILINE,
)
"""Intermediate output of `rollout status`; how often it appears depends on the speed of a cluster."""
_EVICTING = re.compile(r"^(evicting pod |pod/\S+ evicted|pod/drained-|error when evicting pods/).*\n?", re.MULTILINE)
_WAITING_EVENTS = re.compile(r" (WaitForFirstConsumer|WaitForPodScheduled|ExternalProvisioning) ")
"""Events of a claim that waits: which of them are written depends on the speed of the others."""
_DRAIN_ERRORS = re.compile(r"(?<=due to error: ).*(?=, continuing command)|(?<=when an error occurred: ).*")
"""Output of `drain` for each pod and attempt; which pods are on a node depends on the other scripts."""


@dataclass(frozen=True)
class Line:
    """A command line; `text` is its standard input. With `words` it is repeated until all of them are in the output.

    One that only reads is also repeated while the clusters differ: how soon each settles is not compared.

    Arguments are separated by single spaces, or `quoted` as in a shell. `program` is "helm" or "kubectl".
    """

    line: str
    text: str = ""
    words: tuple[str, ...] = ()
    quoted: bool = False
    program: str = "kubectl"

    def __str__(self) -> str:
        return self.line

    def arguments(self, namespace: str) -> list[str]:
        """Return the arguments for a namespace."""
        line = self.line.replace("<namespace>", namespace)
        return ["-n", namespace, *(shlex.split(line) if self.quoted else line.split(" "))]


def k(line: str, text: str = "") -> Line:
    return Line(line, text)


def wait_for(line: str, *words: str) -> Line:
    return Line(line, "", words)


@dataclass
class KubectlCluster:
    """A cluster, and kubectl configured for it."""

    name: str
    kubectl: Kubectl
    helm: Kubectl | None = None

    def create_namespace(self, namespace: str) -> None:
        """Create the namespace of a script."""
        made = self.kubectl.run(["create", "namespace", namespace], limit=LIMIT)
        assert made.code == 0, made.err

    def run_until_seen(self, line: Line, namespace: str) -> Run:
        """Run a line, again until its words are in the output."""
        end = time.monotonic() + LIMIT
        while True:
            run = self.run(line, namespace)
            if all(word in run.out + run.err for word in line.words) or time.monotonic() > end:
                return run
            time.sleep(0.3)  # waits for another process

    def run(self, line: Line, namespace: str) -> Run:
        """Run a line once."""
        program = self.helm if line.program == "helm" else self.kubectl
        assert program is not None
        return _masked(program.run(line.arguments(namespace), text=line.text, limit=LIMIT), namespace)


def run_on_both(real: KubectlCluster, embedded: KubectlCluster, namespace: str, lines: list[Line]) -> Pages:
    """Run a script on both clusters, line by line."""
    with ThreadPoolExecutor(2) as pool:
        clusters = (real, embedded)
        list(pool.map(lambda cluster: cluster.create_namespace(namespace), clusters))
        runs = [_run_on_both(pool, clusters, namespace, line) for line in lines]
    return [theirs for theirs, _ in runs], [ours for _, ours in runs]


def _run_on_both(
    pool: ThreadPoolExecutor, clusters: tuple[KubectlCluster, KubectlCluster], namespace: str, line: Line
) -> tuple[Run, Run]:
    end = time.monotonic() + SETTLES_WITHIN
    while True:
        theirs, ours = pool.map(lambda cluster: cluster.run_until_seen(line, namespace), clusters)
        if theirs == ours or not line.line.startswith(READS) or time.monotonic() > end:
            return theirs, ours
        time.sleep(0.3)  # waits for other processes


def differences(lines: list[Line], pages: Pages) -> list[str]:
    """Describe the lines whose output differs, and those that never printed their words."""
    found = []
    for line, theirs, ours in zip(lines, *pages, strict=True):
        if ours != theirs:
            found.append(f"{line.program} {line}\n--- real\n{_shown(theirs)}\n--- embedded\n{_shown(ours)}")
        unseen = [word for word in line.words if word not in theirs.out + theirs.err]
        if unseen:
            found.append(f"{line.program} {line}\nnever showed {unseen}\n{_shown(theirs)}")
    return found


def _shown(run: Run) -> str:
    return f"exit {run.code}\n{run.out}\n{run.err}".rstrip()


def _masked(run: Run, namespace: str) -> Run:
    out, err = run.out, run.err
    for pattern, name in _MASKS:
        out, err = pattern.sub(name, out), pattern.sub(name, err)
    out = _EVICTING.sub("", _PASSING.sub("", out)).replace(namespace, "<namespace>")
    err = _DRAIN_ERRORS.sub("<evictions>", _EVICTING.sub("", err))
    lines = [re.sub(r"(?<=\S) +", " ", line) for line in out.splitlines()]
    lines = _with_sorted_events(lines)
    if lines and lines[0].startswith("NAME "):
        lines = [lines[0], *sorted(lines[1:])]
    return Run(run.code, "\n".join(lines), err.replace(namespace, "<namespace>"))


def _with_sorted_events(lines: list[str]) -> list[str]:
    """Sort the events of `describe`, which have times in whole seconds, and mask how often they were repeated."""
    if "Events:" not in lines:
        return lines
    start = lines.index("Events:") + 3
    events = [re.sub(r"<age> \(x\d+ over <age>\)", "<age>", line) for line in lines[start:]]
    return [*lines[:start], *sorted({line for line in events if not _WAITING_EVENTS.search(line)})]


@contextmanager
def in_thread(entered: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Keep a context open on a loop in a thread."""
    held: Future[tuple[T, Callable[[], object]]] = Future()

    async def hold() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        async with entered() as value:
            held.set_result((value, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()
        await assert_all_closed()

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
def embedded_kubectl_cluster(directory: Path, helm: Path | None = None) -> Iterator[KubectlCluster]:
    """The embedded cluster on a port."""
    kubeconfig = directory / "kubeconfig"

    @asynccontextmanager
    async def living() -> AsyncGenerator[None]:
        async with EmbeddedCluster(nodes=NODES, behaviors=PROGRAM) as cluster:
            await cluster.listen()
            cluster.write_kubeconfig(kubeconfig)
            yield

    with in_thread(living):
        yield _kubectl_cluster("embedded", kubeconfig, directory, helm)


@contextmanager
def real_kubectl_cluster(directory: Path, helm: Path | None = None) -> Iterator[KubectlCluster]:
    """A real API server and controller manager, with simulated nodes and the simulated provisioner."""

    @asynccontextmanager
    async def living(plane: ControlPlane) -> AsyncGenerator[None]:
        async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
            simulated = SimulatedNodes(client, nodes=NODES)
            simulated.program(*PROGRAM)
            await create_default_class(client)
            async with provisioner(client), simulated.running():
                yield

    with ControlPlane(controller_manager=True) as plane, in_thread(lambda: living(plane)):
        yield _kubectl_cluster("real", plane.kubeconfig, directory, helm)


def _kubectl_cluster(name: str, kubeconfig: Path, directory: Path, helm: Path | None) -> KubectlCluster:
    other = Kubectl(kubeconfig, directory, helm) if helm is not None else None
    return KubectlCluster(name, Kubectl(kubeconfig, directory), other)
