"""Validation of a webhook's `clientConfig`, with the texts of the real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from konverge.objects.names import dns_subdomain_errors
from konverge_cluster.api.field_errors import FieldError, invalid, required

__all__ = ["client_config_errors"]

FieldErrors = Iterator[FieldError]

_URL_FORM: Final = "; desired format: https://host[/path]"


def client_config_errors(config: Mapping[str, Any], path: str) -> FieldErrors:
    """Yield the errors in a `clientConfig`."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    else:
        yield from _service(service or {}, f"{path}.service")


def _url(url: str, path: str) -> FieldErrors:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        _check_port(host)
    except ValueError as error:
        yield required(path, f'url must be a valid URL: parse "{url}": {error}{_URL_FORM}')
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    if not host:
        yield invalid(path, host, f"host must be specified{_URL_FORM}")
    yield from _extra_parts(parts, path)


def _check_port(host: str) -> None:
    colon, port = host.rpartition("]")[2].rpartition(":")[1:]
    if colon and port and not port.isdigit():
        raise ValueError(f'invalid port ":{port}" after host')


def _extra_parts(parts: SplitResult, path: str) -> FieldErrors:
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service(service: Mapping[str, Any], path: str) -> FieldErrors:
    # The real server confuses the two here, and reports the wrong field.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    yield from _service_path(service.get("path") or "", f"{path}.path")


def _service_path(value: str, path: str) -> FieldErrors:
    if value in ("", "/"):
        return
    if value == "//":
        yield invalid(path, value, "segment[0] may not be empty")
        return
    if not value.startswith("/"):
        yield invalid(path, value, "must start with a '/'")
    for index, step in enumerate(value[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(path, value, f"segment[{index}] may not be empty")
            continue
        for error in dns_subdomain_errors(step):
            yield invalid(path, value, f"segment[{index}]: {error}")
