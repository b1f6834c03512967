"""Environment variables for Services, as a kubelet sets them for pods with `enableServiceLinks` (the default).

The Services are those of the pod's namespace at the time a container starts. A headless Service has no variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.objects import Unstructured

__all__ = ["service_variables"]


def service_variables(services: Iterable[Unstructured]) -> dict[str, str]:
    """Return WEB_SERVICE_HOST, WEB_SERVICE_PORT and the variables of Docker links for each Service with an address."""
    found: dict[str, str] = {}
    for service in services:
        address, ports = service["spec"].get("clusterIP", ""), service["spec"].get("ports") or []
        if address not in ("", "None") and ports:
            found |= _variables(_variable_name(service.name), address, ports)
    return found


def _variables(name: str, address: str, ports: list[dict[str, Any]]) -> dict[str, str]:
    found = {f"{name}_SERVICE_HOST": address, f"{name}_SERVICE_PORT": str(ports[0]["port"])}
    for port in ports:
        if port.get("name"):
            found[f"{name}_SERVICE_PORT_{_variable_name(port['name'])}"] = str(port["port"])
    for number, port in enumerate(ports):
        protocol = str(port.get("protocol", "TCP"))
        url = f"{protocol.lower()}://{address}:{port['port']}"
        prefix = f"{name}_PORT_{port['port']}_{protocol}"
        if number == 0:
            found[f"{name}_PORT"] = url
        found |= {prefix: url, f"{prefix}_PROTO": protocol.lower(), f"{prefix}_PORT": str(port["port"])}
        found[f"{prefix}_ADDR"] = address
    return found


def _variable_name(name: str) -> str:
    return name.upper().replace("-", "_")
