"""Faults by request: `konverge fault` posts them to the embedded API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from konverge.errors import ApiError
from konverge.objects import Key
from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.responses import Response, text_response
from konverge_cluster.processes.faults import Faults

__all__ = ["FAULTS", "FAULTS_PATH", "Fault", "FaultRequests"]

FAULTS_PATH: Final = "/konverge/faults"


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault: `name` is that of a pod, a node or a claim, `part` that of a container or a volume of the pod."""

    fault: str
    name: str
    namespace: str = "default"
    part: str = ""

    @property
    def key(self) -> Key:
        """The key of the pod or the claim."""
        return Key(self.namespace, self.name)


FAULTS: Final[Mapping[str, Callable[[Faults, Fault], Awaitable[None]]]] = {
    "kill": lambda faults, fault: faults.kill(fault.key, fault.part),
    "freeze": lambda faults, fault: faults.freeze(fault.key, fault.part),
    "resume": lambda faults, fault: faults.resume(fault.key, fault.part),
    "fill-volume": lambda faults, fault: faults.fill_volume(fault.key, fault.part),
    "clear-volume": lambda faults, fault: faults.clear_volume(fault.key, fault.part),
    "delete-claim": lambda faults, fault: faults.delete_claim(fault.key),
    "stop-node": lambda faults, fault: faults.stop_node(fault.name),
    "start-node": lambda faults, fault: faults.start_node(fault.name),
    "block-api-server": lambda faults, fault: faults.block_api_server(fault.key),
    "unblock-api-server": lambda faults, fault: faults.unblock_api_server(fault.key),
    "block-services": lambda faults, fault: faults.block_services(fault.key),
    "unblock-services": lambda faults, fault: faults.unblock_services(fault.key),
}
"""The faults by their name on the command line."""


class FaultRequests:
    """Handles requests for faults."""

    def __init__(self, faults: Callable[[], Faults]) -> None:
        self._faults = faults

    async def handle(self, request: Request) -> Response:
        """Cause the fault of a request.

        Raises: StatusError 405 for another method than POST, 400 for a fault that cannot be caused.
        """
        if request.method != "POST":
            raise status_errors.method_not_allowed()
        try:
            fault = msgspec.json.decode(request.body, type=Fault)
            if fault.fault not in FAULTS:
                raise ValueError(f"unknown fault {fault.fault!r} (known: {', '.join(FAULTS)})")
            await FAULTS[fault.fault](self._faults(), fault)
        except (msgspec.DecodeError, ApiError, ValueError, OSError, RuntimeError) as error:
            raise status_errors.bad_request(str(error)) from error
        return text_response(200, "ok\n")
