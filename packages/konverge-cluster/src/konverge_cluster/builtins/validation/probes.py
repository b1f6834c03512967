"""Validation of probes and lifecycle hooks."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    regex_error,
    validate_nonnegative,
    validate_port_number,
    validate_port_number_or_name,
)

__all__ = ["validate_lifecycle", "validate_probes"]

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER_LETTERS: Final = frozenset("-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def validate_lifecycle(hooks: dict[str, Any], grace: int | None, path: str) -> FieldErrors:
    for name in ("postStart", "preStop"):
        if name in hooks:
            yield from _validate_handler(hooks[name], grace, f"{path}.{name}")


def validate_probes(container: dict[str, Any], grace: int | None, path: str) -> FieldErrors:
    """Validate the three probes of a container."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name not in container:
            continue
        probe, where = container[name], f"{path}.{name}"
        yield from _validate_probe(probe, grace, where)
        if name == "readinessProbe":
            seconds = probe.get("terminationGracePeriodSeconds")
            if seconds is not None:
                yield invalid(f"{where}.terminationGracePeriodSeconds", seconds, "must not be set for readinessProbes")
        elif probe["successThreshold"] != 1:
            yield invalid(f"{where}.successThreshold", probe["successThreshold"], "must be 1")


def _validate_probe(probe: dict[str, Any], grace: int | None, path: str) -> FieldErrors:
    yield from _validate_handler(probe, grace, path)
    for name in _NUMBERS:
        yield from validate_nonnegative(probe.get(name), f"{path}.{name}")
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")


def _validate_handler(handler: dict[str, Any], grace: int | None, path: str) -> FieldErrors:
    present = [name for name in _HANDLERS if name in handler]
    if not present:
        yield required(path, "must specify a handler type")
        return
    yield from _validate_action(present[0], handler[present[0]], grace, f"{path}.{present[0]}")
    for name in present[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _validate_action(name: str, action: dict[str, Any], grace: int | None, path: str) -> FieldErrors:
    if name == "exec" and not action.get("command"):
        yield required(f"{path}.command")
    elif name == "httpGet":
        yield from _validate_http_get(action, path)
    elif name == "tcpSocket":
        yield from validate_port_number_or_name(action["port"], f"{path}.port")
    elif name == "grpc":
        yield from validate_port_number(action["port"], f"{path}.port")
    elif name == "sleep" and grace is not None and not 0 <= action["seconds"] <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid(path, action["seconds"], text)


def _validate_http_get(action: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_port_number_or_name(action["port"], f"{path}.port")
    if action["scheme"] not in ("HTTP", "HTTPS"):
        yield unsupported(f"{path}.scheme", action["scheme"], ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders", ()):
        name = header["name"]
        if not name or not _HEADER_LETTERS.issuperset(name):
            rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
            yield invalid(f"{path}.httpHeaders", name, regex_error(rule, "[-A-Za-z0-9]+", "X-Header-Name"))
