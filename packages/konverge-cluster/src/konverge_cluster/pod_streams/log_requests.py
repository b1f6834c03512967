"""The log of a container: `pods/log`, as the API server and a kubelet answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from konverge.objects import wall_clock
from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.responses import Response
from konverge_cluster.nodes.container_states import ContainerState
from konverge_cluster.pod_streams.log_files import read_log
from konverge_cluster.pod_streams.process_pods import SimulatedPod, find_process_pod
from konverge_cluster.pod_streams.requests import LogOptions, check_node, find_pod, select_container
from konverge_cluster.processes.containers import ProcessContainer
from konverge_cluster.processes.runtime import Processes

__all__ = ["log_handler", "log_run"]

_PULL_REASONS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def log_handler(runtime: Processes | None) -> Callable[[Cluster, Call], Awaitable[Response]]:
    """Return the handler of `pods/log`."""

    async def handle(cluster: Cluster, call: Call) -> Response:
        options = LogOptions.read(call.query, call.name, wall_clock())
        pod = find_pod(cluster, call)
        name = select_container(pod, options.container)
        if not pod["spec"].get("nodeName"):
            return Response(204)
        check_node(cluster, pod)
        try:
            running = find_process_pod(runtime, pod, name, "it has no log")
        except SimulatedPod as simulated:
            if not options.follow:
                raise status_errors.bad_request(str(simulated)) from None
            # After an error kubectl would ask again, for ever.
            return Response(200, f"{simulated}\n".encode(), {"content-type": "text/plain"})
        if running is None:
            raise status_errors.bad_request(_waiting(name, call.name, "ContainerCreating"))
        container = running.containers[name]
        run = log_run(container.state, call.name, previous=options.previous)
        path = running.sandbox.log_path(name, run)
        stream = read_log(path, options, lambda: is_terminated(container, run))
        return Response(200, headers={"content-type": "text/plain"}, stream=stream)

    return handle


def is_terminated(container: ProcessContainer, run: int) -> bool:
    """Report whether a run of a container has ended."""
    return container.state.restarts != run or not container.is_running


def log_run(state: ContainerState, pod: str, *, previous: bool) -> int:
    """Return the number of the run whose log is read.

    Raises: StatusError 400, with the text of the kubelet, when there is none.
    """
    if previous:
        if state.last_terminated is None:
            text = f"previous terminated container {quote(state.name)} in pod {quote(pod)} not found"
            raise status_errors.bad_request(text)
        return state.restarts if state.is_waiting else state.restarts - 1
    if state.is_waiting and state.last_terminated is None:
        raise status_errors.bad_request(_waiting(state.name, pod, _PULL_REASONS.get(state.waiting, state.waiting)))
    return state.restarts


def _waiting(container: str, pod: str, reason: str) -> str:
    return f"container {quote(container)} in pod {quote(pod)} is waiting to start: {reason}"
