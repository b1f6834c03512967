"""The events of containers that run as processes.

In the cluster of few tests: the recorder of the nodes limits the number of events.
"""

from __future__ import annotations

import pytest

from process_clusters import SLEEP, ProcessCluster, is_ready, limited, status_of

pytestmark = pytest.mark.processes


async def create_pods(cluster: ProcessCluster) -> None:
    fails = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5}
    await cluster.create("healthy", {"args": [SLEEP]})
    await cluster.create("unready", {"args": [SLEEP], "readinessProbe": fails})
    await cluster.create("dead", {"args": [SLEEP], "livenessProbe": fails})
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 4"]}}}
    await cluster.create("hook", {"args": [SLEEP], "lifecycle": hook})
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    await cluster.create("mount", {"args": [SLEEP], **mounts}, volumes=[{"name": "v", "configMap": {"name": "none"}}])


@limited
async def test_events_are_those_of_a_kubelet(cluster: ProcessCluster) -> None:
    await create_pods(cluster)
    await cluster.wait("healthy", is_ready)
    await cluster.wait("dead", lambda obj: (status_of(obj).get("restartCount") or 0) >= 1)
    await cluster.delete("healthy")

    for name, text in [
        ("healthy", f"Scheduled: Successfully assigned {cluster.namespace}/healthy to node-1"),
        ("healthy", 'Pulled: Container image "sh:1" already present on machine'),
        ("healthy", "Created: Container created"),
        ("healthy", "Started: Container started"),
        ("healthy", "Killing: Stopping container c"),
        ("unready", "Unhealthy: Readiness probe failed: "),
        ("dead", "Unhealthy: Liveness probe failed: "),
        ("dead", "Killing: Container c failed liveness probe, will be restarted"),
        ("hook", "FailedPostStartHook: PostStartHook failed: no"),
        ("mount", 'FailedMount: MountVolume.SetUp failed for volume "v" : configmap "none" not found'),
    ]:
        await cluster.until_event(name, text)
