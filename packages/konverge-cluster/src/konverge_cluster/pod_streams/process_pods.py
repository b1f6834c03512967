"""The running pod of a request."""

from __future__ import annotations

from konverge.objects import Unstructured
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.strategy import Document
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.runtime import Processes

__all__ = ["SimulatedPod", "find_process_pod"]


class SimulatedPod(Exception):
    """A pod that runs nothing; the text says so, and what to do."""

    def __init__(self, pod: str, container: str, what: str) -> None:
        name = f"container {quote(container)} in pod {quote(pod)}"
        hint = "add its image to the local images of `konverge cluster --run FILE`"
        super().__init__(f"{name} is simulated and runs nothing, so {what} ({hint})")


def find_process_pod(runtime: Processes | None, pod: Document, container: str, what: str) -> ProcessPod | None:
    """Return the pod that runs, None when it has not started.

    Raises: SimulatedPod, where `what` is what it cannot do.
    """
    obj = Unstructured(pod)
    if runtime is None or not runtime.runs(obj):
        raise SimulatedPod(obj.name, container, what)
    running = runtime.pod(obj.key)
    return running if running is not None and running.uid == obj.uid else None
