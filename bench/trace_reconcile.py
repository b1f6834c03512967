"""What one reconcile costs in code: the functions and files of konverge that one change of an object runs through.

Run by `make bench-trace`. An operator with one controller is converged on an embedded server. Then a user changes the
spec of its object. The trace begins with the event of that change and ends when everything is quiet again: the cache,
the triggers, the queue, the reconcile with an apply of a child and a patch of the status, the echoes of both writes.
Counted are functions under `packages/konverge/src`; the server and the request of the user are not.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import konverge
from konverge import Client, Context, CustomResource, Manager, ObjectMeta, Spec, Status, controller_for, crd_for
from konverge.client import ClientOptions, InProcessTransport
from konverge.k8s.core.v1 import ConfigMap
from konverge.testing import run_in_virtual_time, settle
from konverge_cluster.embedded_server import EmbeddedServer

ROOT = str(Path(konverge.__file__).parent) + "/"
RESULT = Path(__file__).parent / "results" / "trace.md"
IGNORED = ("testing/", "client/in_process.py")


class LampSpec(Spec):
    text: str = ""


class LampStatus(Status):
    observed_generation: int = 0


class Lamp(CustomResource[LampSpec, LampStatus], group="bench.konverge.dev", version="v1"):
    """A kind with one child."""


async def reconcile(lamp: Lamp, ctx: Context) -> None:
    """Write the child and the status."""
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=lamp.name), data={"text": lamp.spec.text}))
    lamp.status.observed_generation = lamp.metadata.generation or 0
    await ctx.update_status(lamp)


class Trace:
    """Counts the calls of each function, except those of the server and of one task."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.user: asyncio.Task[Any] | None = None

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record while the block runs."""
        sys.setprofile(self._record)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = code.co_filename.removeprefix(ROOT)
        if event != "call" or path == code.co_filename or path.startswith(IGNORED) or self._is_foreign(frame):
            return
        self.calls[path, code.co_qualname] += 1

    def _is_foreign(self, frame: FrameType) -> bool:
        """Report whether the server or the user called a function."""
        caller: FrameType | None = frame
        while caller is not None:
            if "/konverge_cluster/" in caller.f_code.co_filename or caller.f_code is _change.__code__:
                return True
            caller = caller.f_back
        return False

    def summary(self) -> str:
        """Return the numbers as lines of a table."""
        files = {path for path, _ in self.calls}
        return f"| {len(self.calls)} | {len(files)} | {sum(self.calls.values())} |"

    def parts(self) -> str:
        """Return the functions and calls of each part."""
        functions: Counter[str] = Counter(path.split("/")[0] for path, _ in self.calls)
        calls: Counter[str] = Counter()
        for (path, _), number in self.calls.items():
            calls[path.split("/")[0]] += number
        return "\n".join(f"| {part} | {functions[part]} | {calls[part]} |" for part in sorted(functions))


async def _change(client: Client) -> None:
    await client.patch(Lamp, "one", {"spec": {"text": "changed"}})


async def trace_one_change() -> Trace:
    """Return the trace of one change."""
    server = EmbeddedServer(seed=1)
    user = Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default"))
    await user.create(crd_for(Lamp))
    manager = Manager(Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default")))
    manager.skip_permission_check()
    manager.add(controller_for(Lamp).owns(ConfigMap).build(reconcile))
    async with manager.running():
        await user.create(Lamp(metadata=ObjectMeta(name="one", namespace="default"), spec=LampSpec(text="first")))
        await settle()
        trace = Trace()
        with trace.recording():
            await _change(user)
            await settle()
    assert (await user.get(Lamp, "one")).status.observed_generation == 2
    return trace


def main() -> None:
    """Print the trace, and with --save add a line to the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--save", metavar="NAME", help="add a line with this name to bench/results/trace.md")
    parser.add_argument("--functions", action="store_true", help="print each function and its calls")
    arguments = parser.parse_args()
    trace = run_in_virtual_time(trace_one_change())
    if arguments.functions:
        for (path, name), number in sorted(trace.calls.items()):
            print(f"{number:5} {path} {name}")
    print(f"| functions | files | calls |\n|---|---|---|\n{trace.summary()}\n")
    print(f"| part | functions | calls |\n|---|---|---|\n{trace.parts()}")
    if arguments.save:
        with RESULT.open("a") as file:
            file.write(f"| {arguments.save} {trace.summary()}\n")


if __name__ == "__main__":
    main()
