"""The test operator of the reliability plan: it creates ConfigMaps `<name>-<i>` for a Widget, and has a ledger.

The ledger is outside of the cluster: a widget is opened in it before anything is created, and closed by the finalizer.
A payload of two words makes it misbehave: "raise now", "hang now", "sleep 2", "block 8".
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import Annotated, Protocol

from konverge import Context, CustomResource, Manager, Meta, ObjectMeta, Reconciler, Spec, Status, controller_for
from konverge.cli.child import exit_with_parent
from konverge.client import load_config
from konverge.controller import Builder
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection
from konverge.telemetry import configure_logging


class WidgetSpec(Spec):
    replicas: Annotated[int, Meta(ge=0)] = 1
    payload: str = ""


class WidgetStatus(Status):
    observed_generation: int = 0
    ready: int = 0


class Widget(CustomResource[WidgetSpec, WidgetStatus], group="contract.konverge.dev", version="v1"):
    """A number of ConfigMaps with a payload."""


class Ledger(Protocol):
    async def note(self, line: str) -> None: ...


class FileLedger:
    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def note(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{line} {time.time()}\n")


class Widgets(Reconciler[Widget]):
    finalizer = "contract.konverge.dev/ledger"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        await self._ledger.note(f"open {obj.key} {obj.uid}")
        match obj.spec.payload.split():
            case ["raise", _]:
                raise RuntimeError("the payload asks for it")
            case ["hang", _]:
                await asyncio.Event().wait()
            case ["sleep", seconds]:
                await asyncio.sleep(float(seconds))
            case ["block", seconds]:
                time.sleep(float(seconds))  # noqa: ASYNC251 - blocks on purpose
        for number in range(obj.spec.replicas):
            name = ObjectMeta(name=f"{obj.name}-{number}")
            await ctx.apply(ConfigMap(metadata=name, data={"payload": obj.spec.payload}))
        await ctx.prune(ConfigMap)
        obj.status.ready = len(ctx.owned(ConfigMap))
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)

    async def finalize(self, obj: Widget, ctx: Context) -> None:
        await self._ledger.note(f"close {obj.key} {obj.uid}")


def widgets() -> Builder[Widget]:
    return controller_for(Widget).owns(ConfigMap).max_concurrent_reconciles(32)


def main() -> None:
    exit_with_parent()
    parser = argparse.ArgumentParser()
    for option in ("--kubeconfig", "--namespace", "--ledger", "--leader-elect", "--probes"):
        parser.add_argument(option)
    parser.add_argument("--lease", type=int, default=6)
    arguments = parser.parse_args()
    configure_logging("json")
    config = load_config(kubeconfig=Path(arguments.kubeconfig))
    name, lease = arguments.leader_elect, arguments.lease
    timing = {"lease_duration": lease, "renew_deadline": 0.75 * lease, "retry_period": 0.5}
    election = LeaderElection("widgets", arguments.namespace, identity=name, **timing) if name else None
    manager = Manager(
        config, name="widgets", namespaces=(arguments.namespace,), leader_election=election, probes=arguments.probes
    )
    manager.add(widgets().build(Widgets(FileLedger(arguments.ledger or "/dev/null"))))
    manager.run()


if __name__ == "__main__":
    main()
