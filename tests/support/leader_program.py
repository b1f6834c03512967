"""A process that competes for a lease and writes when it is told to, to be frozen and killed by tests.

    python leader_program.py KUBECONFIG NAMESPACE IDENTITY

Each line on stdin is the name of a config map to create, behind the write guard. On stdout: "leading", "stopped WHY",
and for each name "created NAME" or "refused NAME".
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from konverge.client import Client, load_config
from konverge.errors import WriteRefused
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager.elector import Election
from konverge.manager.leadership import Leadership
from konverge.manager.lease_thread import LeaseThread
from konverge.objects import ObjectMeta


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    config = load_config(kubeconfig=Path(kubeconfig))
    election = Election("operator", namespace, identity=identity, lease=10, renew_deadline=8.5, retry=0.5, margin=1)
    async with LeaseThread() as side:
        leadership = Leadership(
            election,
            lambda: Client.connect(config),
            side=side,
            started=lambda: say("leading"),
            stopped=lambda why: say(f"stopped {why}"),
        )
        async with Client.connect(config, guard=leadership.guard) as client, asyncio.TaskGroup() as group:
            competing = group.create_task(leadership.run())
            while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
                try:
                    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))
                    say(f"created {name}")
                except WriteRefused:
                    say(f"refused {name}")
            leadership.stop()
            await competing


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
