"""What is wrong with a `clientConfig`, in the words of the real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from konverge.objects.names import dns_subdomain_errors
from konverge_cluster.api.field_errors import FieldError, invalid, required

__all__ = ["client_config_errors"]

Problems = Iterator[FieldError]

_URL_FORM: Final = "; desired format: https://host[/path]"


def client_config_errors(config: Mapping[str, Any], path: str) -> Problems:
    """Say what is wrong with the address of a webhook."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    else:
        yield from _service(service or {}, f"{path}.service")


def _url(url: str, path: str) -> Problems:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        unreadable = _port_problem(host)
    except ValueError as error:
        unreadable = str(error)
    if unreadable:
        yield required(path, f'url must be a valid URL: parse "{url}": {unreadable}{_URL_FORM}')
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    if not host:
        yield invalid(path, host, f"host must be specified{_URL_FORM}")
    yield from _extra_parts(parts, path)


def _port_problem(host: str) -> str:
    colon, port = host.rpartition("]")[2].rpartition(":")[1:]
    return f'invalid port ":{port}" after host' if colon and port and not port.isdigit() else ""


def _extra_parts(parts: SplitResult, path: str) -> Problems:
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service(service: Mapping[str, Any], path: str) -> Problems:
    # The real server takes the one for the other here, and blames the wrong field.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    yield from _service_path(service.get("path") or "", f"{path}.path")


def _service_path(wanted: str, path: str) -> Problems:
    if wanted in ("", "/"):
        return
    if wanted == "//":
        yield invalid(path, wanted, "segment[0] may not be empty")
        return
    if not wanted.startswith("/"):
        yield invalid(path, wanted, "must start with a '/'")
    for index, step in enumerate(wanted[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(path, wanted, f"segment[{index}] may not be empty")
            continue
        for error in dns_subdomain_errors(step):
            yield invalid(path, wanted, f"segment[{index}]: {error}")
