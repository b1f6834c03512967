"""A process that competes for a lease and writes on request; tests freeze and kill it.

    python leader_program.py KUBECONFIG NAMESPACE IDENTITY

Each line on stdin is the name of a config map to create, through the write fence. On stdout: "leading", "stopped
REASON", and for each name "created NAME" or "refused NAME".
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from konverge.client import Client, load_config
from konverge.errors import WriteRefused
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager.election_runner import ElectionRunner
from konverge.manager.elector import LeaderElection
from konverge.manager.lease_thread import LeaseThread
from konverge.objects import ObjectMeta


def write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    config = load_config(kubeconfig=Path(kubeconfig))
    election = LeaderElection(
        "operator", namespace, identity=identity, lease_duration=10, renew_deadline=8.5, retry_period=0.5, margin=1
    )
    async with LeaseThread() as thread:
        runner = ElectionRunner(
            election,
            lambda: Client.connect(config),
            thread=thread,
            on_started_leading=lambda: write_line("leading"),
            on_stopped_leading=lambda reason: write_line(f"stopped {reason or 'in order'}"),
        )
        async with Client.connect(config, guard=runner.fence) as client, asyncio.TaskGroup() as group:
            competing = group.create_task(runner.run())
            while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
                try:
                    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))
                    write_line(f"created {name}")
                except WriteRefused:
                    write_line(f"refused {name}")
            runner.stop()
            await competing


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
