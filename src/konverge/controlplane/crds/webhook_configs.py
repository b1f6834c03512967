"""Where a conversion webhook is reached: a URL or a service, as the server checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from konverge.controlplane.api.problems import FieldProblem, invalid, required
from konverge.objects.names import dns_subdomain_errors

__all__ = ["client_config_problems"]

_FORM: Final = "; desired format: https://host[/path]"


def client_config_problems(config: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    """Say what is wrong with the address of a webhook."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_problems(url, f"{path}.url")
    elif service is not None:
        yield from _service_problems(service, f"{path}.service")


def _url_problems(url: str, path: str) -> Iterator[FieldProblem]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield invalid(path, "", f"host must be specified{_FORM}")
    if user:
        yield invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service_problems(service: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    # The server mixes up the two: what is missing is reported under the name of the other.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    yield from _path_problems(service.get("path") or "", f"{path}.path")


def _path_problems(path: str, where: str) -> Iterator[FieldProblem]:
    if path in ("", "/"):
        return
    if path == "//":
        yield invalid(where, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid(where, path, "must start with a '/'")
    for index, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid(where, path, f"segment[{index}] may not be empty")
            continue
        for text in dns_subdomain_errors(segment):
            yield invalid(where, path, f"segment[{index}]: {text}")
