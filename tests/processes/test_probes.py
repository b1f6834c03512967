"""Probes and hooks of containers that run as processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from process_clusters import (
    ONE_MODE,
    SLEEP,
    ProcessCluster,
    alone,
    is_ready,
    python_container,
    readable_python,
    shared,
    status_of,
)

pytestmark = pytest.mark.processes

VOLUME: dict[str, Any] = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNT: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": "/state"}]}


def executes(*command: str, **settings: Any) -> dict[str, Any]:
    return {"exec": {"command": list(command)}, "periodSeconds": 1, "timeoutSeconds": 5, **settings}


@shared
async def test_a_readiness_probe_decides_whether_a_pod_is_ready(cluster: ProcessCluster) -> None:
    probe = {"readinessProbe": executes("test", "-e", "/state/ready", failureThreshold=1)}
    await cluster.create("p", {"args": [SLEEP], **MOUNT, **probe}, **VOLUME)
    before = await cluster.wait("p", lambda obj: bool(status_of(obj).get("started")))

    await cluster.execute("p", "touch", "/state/ready")
    await cluster.wait("p", is_ready)
    await cluster.execute("p", "rm", "/state/ready")
    after = await cluster.wait("p", lambda obj: not is_ready(obj))

    assert not is_ready(before)
    assert status_of(after)["restartCount"] == 0


@shared
async def test_a_failing_liveness_probe_restarts_a_container(cluster: ProcessCluster) -> None:
    probe = {"livenessProbe": executes("test", "-e", "/state/alive", failureThreshold=2)}
    script = f"[ -e /state/second ] && touch /state/alive; touch /state/second; {SLEEP}"
    await cluster.create("p", {"args": [script], **MOUNT, **probe}, **VOLUME)

    found = await cluster.wait("p", lambda obj: status_of(obj).get("restartCount") == 1 and is_ready(obj))

    assert status_of(found)["lastState"]["terminated"]["exitCode"] == 0


@shared
async def test_a_startup_probe_holds_the_other_probes_back(cluster: ProcessCluster) -> None:
    probes = {
        "startupProbe": executes("test", "-e", "/state/up", failureThreshold=60),
        "livenessProbe": executes("test", "-e", "/state/up", failureThreshold=1),
    }
    await cluster.create("p", {"args": [f"sleep 2; touch /state/up; {SLEEP}"], **MOUNT, **probes}, **VOLUME)

    found = await cluster.wait("p", is_ready)

    assert status_of(found)["restartCount"] == 0
    assert status_of(found)["started"] is True


@shared
async def test_http_and_tcp_probes_reach_the_address_of_the_pod(cluster: ProcessCluster) -> None:
    ports = {"ports": [{"name": "http", "containerPort": 8080}]}
    probes = {
        "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
        "livenessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 30},
    }
    command = [readable_python(), "-m", "http.server", "8080", "--bind", "$(IP)"]
    env = {"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}
    await cluster.create("p", {"image": "python:3", "command": command, **ports, **probes, **env})

    found = await cluster.wait("p", is_ready)

    assert status_of(found)["restartCount"] == 0


@shared
async def test_hooks_run_after_the_start_and_before_sigterm(cluster: ProcessCluster) -> None:
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo postStart >> /state/order"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "sleep 0.3; echo preStop >> /state/order"]}},
    }
    script = "trap 'echo sigterm >> /state/order; cp /state/order /keep/order; exit 0' TERM; sleep 3600 & wait"
    mounts = [*MOUNT["volumeMounts"], {"name": "keep", "mountPath": "/keep"}]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "keep"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.create_object(claim)
    volumes = [*VOLUME["volumes"], {"name": "keep", "persistentVolumeClaim": {"claimName": "keep"}}]
    await cluster.create(
        "p",
        {"args": [script], "lifecycle": hooks, "volumeMounts": mounts},
        volumes=volumes,
        terminationGracePeriodSeconds=30,
    )
    await cluster.wait("p", is_ready)
    (kept,) = [one.source for one in cluster.mounts("p") if one.target == "/keep"]

    await cluster.delete("p")
    await cluster.wait_until_gone("p")

    assert (await asyncio.to_thread(Path(kept, "order").read_text)).split() == ["postStart", "preStop", "sigterm"]


RECORDER = """
import http.server, os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers["Host"], self.headers["X-Word"], flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *arguments):
        pass
http.server.HTTPServer((os.environ["POD_IP"], 8080), Handler).serve_forever()
"""


@ONE_MODE
@shared
async def test_hooks_may_be_requests(cluster: ProcessCluster) -> None:
    probe = {"startupProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 60}}
    ports = {"ports": [{"name": "http", "containerPort": 8080}]}
    recorder = {"name": "r", "image": "sh:1", "restartPolicy": "Always", **python_container(RECORDER), **probe}
    hooks = {
        "postStart": {"httpGet": {"port": 8080, "path": "/started"}},
        "preStop": {"httpGet": {"port": "http", "httpHeaders": [{"name": "X-Word", "value": "bye"}]}},
    }
    container = {"args": [SLEEP], "lifecycle": hooks, **ports}
    await cluster.create("p", container, initContainers=[recorder], terminationGracePeriodSeconds=30)
    found = await cluster.wait("p", is_ready)

    with cluster.process_pod("p").sandbox.log_path("r", 0).open() as log:  # the file is removed with the pod
        await cluster.delete("p")
        await cluster.wait_until_gone("p")
        requests = [line.split()[3:] for line in log]

    host = f"{found['status']['podIP']}:8080"
    assert requests == [["/started", host, "None"], ["/", host, "bye"]]
    assert status_of(found)["restartCount"] == 0


@ONE_MODE
@shared
async def test_a_deleted_pod_is_ready_until_its_readiness_probe_fails(cluster: ProcessCluster) -> None:
    probes = {
        "readinessProbe": executes("sh", "-c", "echo >> /state/probes; test ! -e /state/closed", failureThreshold=1),
        "livenessProbe": executes("test", "!", "-e", "/state/closed", failureThreshold=1),
    }
    hook = {"exec": {"command": ["sh", "-c", "while [ ! -e /state/end ]; do sleep 0.1; done"]}}
    container = {"args": [SLEEP], "lifecycle": {"preStop": hook}, **MOUNT, **probes}
    await cluster.create("p", container, **VOLUME, terminationGracePeriodSeconds=30)
    await cluster.wait("p", is_ready)

    async def probed_again() -> None:
        count = int(await cluster.execute("p", "sh", "-c", "wc -l < /state/probes"))
        await cluster.until_async(lambda: cluster.execute("p", "sh", "-c", enough.format(count + 1)), "yes\n")

    enough = "[ $(wc -l < /state/probes) -ge {} ] && echo yes || echo no"
    await cluster.delete("p")
    await cluster.until_event("p", "Stopping container c")
    await probed_again()
    before = await cluster.client.get("pods", "p")
    await cluster.execute("p", "touch", "/state/closed")
    await cluster.wait("p", lambda obj: not is_ready(obj))
    await probed_again()
    cluster.touch("p", "end")
    await cluster.wait_until_gone("p")

    assert is_ready(before)
    assert "deletionTimestamp" in before.metadata
    events = await cluster.events("p")
    assert any("Readiness probe failed" in one for one in events)
    assert not [one for one in events if "Liveness" in one or "restarted" in one]


@shared
async def test_a_failing_post_start_hook_kills_the_container(cluster: ProcessCluster) -> None:
    hooks = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 4"]}}}
    await cluster.create("p", {"args": [SLEEP], "lifecycle": hooks})

    await cluster.wait("p", lambda obj: (status_of(obj).get("restartCount") or 0) >= 1)


@ONE_MODE
@shared
@alone
async def test_a_command_whose_caller_is_cancelled_ends_without_an_error(cluster: ProcessCluster) -> None:
    await cluster.create("p", {"args": [SLEEP]})
    await cluster.wait("p", is_ready)
    loop, errors = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: errors.append(context["message"]))
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await cluster.execute("p", "sleep", "0.5")
        supervisor = cluster.process_pod("p").sandbox.supervisor
        await cluster.until(lambda: not any(name.startswith("exec-") for name in supervisor._running))
    finally:
        loop.set_exception_handler(None)

    assert errors == []
