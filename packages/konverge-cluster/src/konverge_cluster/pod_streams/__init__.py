"""Logs of pods, commands in them, and connections to them: `pods/log`, `exec`, `attach` and `portforward`.

`requests` checks a request as the API server does; `log_requests`, `exec_requests` and `port_forwards` are the part of
the kubelet. `log_files` reads what containers wrote, `sessions` connects a process with the channels of a WebSocket,
`spdy_frames` are the frames of port-forward. Pods that are simulated run nothing: a request for one ends with an error
that says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.responses import Response
from konverge_cluster.pod_streams.exec_requests import attach_handler, exec_handler
from konverge_cluster.pod_streams.log_requests import log_handler
from konverge_cluster.pod_streams.port_forwards import port_forward_handler
from konverge_cluster.processes.runtime import Processes

__all__ = ["pod_stream_handlers"]

Handler = Callable[[Cluster, Call], Awaitable[Response]]


def pod_stream_handlers(runtime: Processes | None) -> dict[tuple[str, str, str], Handler]:
    """Return the handlers by group, plural and subresource; without a runtime every pod is simulated."""
    return {
        ("", "pods", "log"): log_handler(runtime),
        ("", "pods", "exec"): exec_handler(runtime),
        ("", "pods", "attach"): attach_handler(runtime),
        ("", "pods", "portforward"): port_forward_handler(runtime),
    }
