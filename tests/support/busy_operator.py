"""An operator process whose reconciles write all the time while it leads; tests freeze it.

    python busy_operator.py KUBECONFIG NAMESPACE IDENTITY

On stdout: "leading" when the first reconcile begins, "writing" after its first write. Some writes are too large for the
buffer of a socket, and connections are closed soon, so that many writes need a new one.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from random import Random
from typing import Any, Final

from konverge import Client, Context, Manager, ObjectMeta, Reconciler, controller_for
from konverge.cli.child import exit_with_parent
from konverge.client import ClientConfig, load_config
from konverge.client.connection.limits import Limits
from konverge.client.engines import new_transport
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection
from konverge.telemetry import configure_logging
from widget_operator import Widget

PAUSE: Final = 0.1
LARGE: Final = 700_000


class BusyReconciler(Reconciler[Widget]):
    """Writes until it is cancelled."""

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._random = Random(identity)
        self._written: set[str] = set()

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        self._write_line("leading")
        number = 0
        while True:
            number += 1
            padding = "x" * (LARGE if self._random.random() < 0.1 else 100)
            data = {"writer": f"{self._identity} {number}", "padding": padding}
            await ctx.apply(ConfigMap(metadata=ObjectMeta(name=obj.name), data=data))
            self._write_line("writing")
            await asyncio.sleep(self._random.uniform(0, PAUSE))

    def _write_line(self, text: str) -> None:
        if text not in self._written:
            self._written.add(text)
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


def connect(config: ClientConfig) -> Client:
    """Return a client of the selected engine that keeps no connection for long."""
    engine: Any = type(new_transport(config))
    return Client(engine(config, limits=Limits(idle=0.05)))


def main(kubeconfig: str, namespace: str, identity: str) -> None:
    exit_with_parent()
    configure_logging("json")
    client = connect(load_config(kubeconfig=Path(kubeconfig)))
    election = LeaderElection(
        "busy", namespace, identity=identity, lease_duration=4, renew_deadline=3, retry_period=0.4
    )
    manager = Manager(client, name="busy", namespaces=(namespace,), leader_election=election)
    controller = controller_for(Widget).owns(ConfigMap).max_concurrent_reconciles(8)
    manager.add(controller.build(BusyReconciler(identity)))
    manager.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
