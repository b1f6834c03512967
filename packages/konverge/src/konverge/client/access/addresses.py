"""The addresses of the server and of its proxy: from the kubeconfig, else from the environment, by the rules of Go.

The proxy of the environment is not used for loopback servers. NO_PROXY contains addresses, networks (10.0.0.0/8),
domains with their subdomains (example.com), subdomains only (.example.com), each with an optional port, or `*`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from konverge.client.access.locations import Location

__all__ = ["check_proxy", "check_server", "environment_proxy", "redact_url"]

SCHEMES = ("http", "https", "socks5")


def check_server(server: str, location: Location) -> str:
    """Return the address of a server in canonical form: scheme, host, port, prefix; no slash at the end."""
    url = server if "://" in server else f"http://{server}"
    invalid = location.error("expected the address of a server", "https://host:port")
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise invalid from None
    if not usable or not url.isprintable() or " " in url or (url != server and parts.path.strip("/")):
        raise invalid
    if parts.scheme not in ("http", "https"):
        raise location.error(f"a server of scheme {parts.scheme[:20]!r} is not supported", "https://host:port")
    if "@" in parts.netloc:
        raise location.error("a user or password in the address is not supported", "set them in the users entry")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def check_proxy(url: str, location: Location) -> str:
    """Return the URL if it is one of a supported proxy."""
    try:
        parts = urlsplit(url)
        complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise location.error("expected the URL of a proxy", "http://host:port") from None
    if parts.scheme not in SCHEMES:
        raise location.error(
            f"a proxy of scheme {parts.scheme[:20]!r} is not supported", f"one of {', '.join(SCHEMES)}"
        )
    if not complete:
        raise location.error("expected the URL of a proxy", "http://host:port")
    return url


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy of the environment variables for this server, if any."""
    target = urlsplit(server)
    name = f"{target.scheme}_proxy"
    url = environ.get(name.upper()) or environ.get(name) or ""
    if not url or _bypassed(target, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    complete = url if "://" in url else f"http://{url}"
    return check_proxy(complete, Location(f"environment variable {name.upper()}"))


def redact_url(url: str | None) -> str | None:
    """Return the URL without user and password, for messages."""
    if url is None or "@" not in url:
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}"


def _bypassed(target: SplitResult, no_proxy: str) -> bool:
    host = (target.hostname or "").rstrip(".")
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    port = target.port or (443 if target.scheme == "https" else 80)
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    return any(_matches(entry, host, address, port) for entry in entries if entry)


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _matches(entry: str, host: str, address: _Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _in_network(address, entry)
    name, its_port = _split_port(entry)
    if its_port and its_port != str(port):
        return False
    if (named := _address(name)) is not None:
        return named == address
    name = name.removeprefix("*")
    return address is None and (host.endswith(name if name.startswith(".") else f".{name}") or host == name)


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    # More than one colon is an IPv6 address without brackets, which carries no port.
    return (entry, "") if entry.count(":") != 1 else (entry.partition(":")[0], entry.partition(":")[2])


def _address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _in_network(address: _Address, entry: str) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
