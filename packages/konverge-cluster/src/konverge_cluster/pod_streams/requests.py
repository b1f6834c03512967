"""Requests for streams of a pod, checked as the API server does before it calls a kubelet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from konverge.wire.channels import V4_CHANNELS, V5_CHANNELS
from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.field_errors import FieldError, forbidden, invalid
from konverge_cluster.api.options import Query
from konverge_cluster.api.request_info import request_attributes
from konverge_cluster.api.routes import route
from konverge_cluster.api.strategy import Document
from konverge_cluster.builtins.timestamps import read_time
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError

__all__ = [
    "LogOptions",
    "StreamOptions",
    "check_create",
    "check_node",
    "choose_protocol",
    "find_pod",
    "select_container",
]

_GREATER: Final = "must be greater than 0"
_PROTOCOLS: Final = (V5_CHANNELS, V4_CHANNELS)
_COMMAND_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """What to read of a log. `since` is a time as in the log without its zone, "" for all; None is no limit."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: str = ""
    tail_lines: int | None = None
    limit_bytes: int | None = None

    @classmethod
    def read(cls, query: Query, pod: str, now: float) -> LogOptions:
        """Read the options of a request.

        Raises: StatusError 400 or 422.
        """
        seconds, since = query.number("sinceSeconds"), _time(query.text("sinceTime"))
        options = cls(
            container=query.text("container"),
            follow=bool(query.flag("follow")),
            previous=bool(query.flag("previous")),
            timestamps=bool(query.flag("timestamps")),
            since=since,
            tail_lines=query.number("tailLines"),
            limit_bytes=query.number("limitBytes"),
        )
        errors = [*options._errors(seconds, stream=query.text("stream"))]
        if errors:
            raise status_errors.invalid("", "PodLogOptions", pod, errors)
        return options if seconds is None else replace(options, since=_log_time(now - seconds))

    def _errors(self, seconds: int | None, *, stream: str) -> Iterator[FieldError]:
        if self.tail_lines is not None and self.tail_lines < 0:
            yield invalid("tailLines", self.tail_lines, "must be greater than or equal to 0")
        if self.limit_bytes is not None and self.limit_bytes < 1:
            yield invalid("limitBytes", self.limit_bytes, _GREATER)
        if seconds is not None and self.since:
            yield forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
        elif seconds is not None and seconds < 1:
            yield invalid("sinceSeconds", seconds, _GREATER)
        if stream:
            yield forbidden("stream", "may not be specified")


def _log_time(seconds: float) -> str:
    """Return a time for a comparison with the times of a log: without the zone, a prefix comes first."""
    return datetime.fromtimestamp(max(0.0, seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def _time(text: str) -> str:
    try:
        return read_time(text).removesuffix("Z") if text else ""
    except UnmarshalError as error:
        raise status_errors.bad_request(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Which streams a client wants of a command or of a container."""

    container: str = ""
    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    @classmethod
    def read(cls, query: Query) -> StreamOptions:
        """Read the options of a request.

        Raises: StatusError 400.
        """
        options = cls(
            container=query.text("container"),
            command=tuple(query.every("command")),
            stdin=bool(query.flag("stdin")),
            stdout=bool(query.flag("stdout")),
            stderr=bool(query.flag("stderr")),
            tty=bool(query.flag("tty")),
        )
        if sum(map(len, options.command)) > _COMMAND_BYTES:
            raise status_errors.bad_request("the command is too long")
        return replace(options, stderr=False) if options.tty else options


def find_pod(cluster: Cluster, call: Call) -> Document:
    """Return the pod of a request.

    Raises: StatusError 404.
    """
    pod = cluster.lookup("", "pods", call.namespace, call.name)
    if pod is None:
        raise status_errors.not_found("", "pods", call.name)
    return pod


def check_node(cluster: Cluster, pod: Document) -> None:
    """Check that the node of a pod exists.

    Raises: StatusError 404, with the text of the real server, which names the node as a pod.
    """
    node = pod["spec"]["nodeName"]
    if cluster.lookup("", "nodes", "", node) is None:
        raise status_errors.not_found("", "pods", node)


def select_container(pod: Document, requested: str) -> str:
    """Return the name of the requested container; "" is the only one.

    Raises: StatusError 400 when there is no such container, or more than one.
    """
    name, spec = pod["metadata"]["name"], pod["spec"]
    groups = (spec.get(part) or () for part in ("initContainers", "containers", "ephemeralContainers"))
    names = [one["name"] for group in groups for one in group]
    if not requested:
        if len(spec["containers"]) > 1:
            text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
            raise status_errors.bad_request(text)
        return str(spec["containers"][0]["name"])
    if requested not in names:
        raise status_errors.bad_request(f"container {requested} is not valid for pod {name}")
    return requested


def check_create(cluster: Cluster, call: Call) -> None:
    """Check that the user of a WebSocket may also create: its method is GET, but a command is no read.

    Raises: StatusError 403. As on the real server its text has only the reason of the authorizer.
    """
    attributes = request_attributes(call.request, route(call.request.path), call.user)
    decision = cluster.authorizer.authorize(replace(attributes, verb="create"))
    if not decision.allowed:
        raise status_errors.forbidden("", "pods", call.name, decision.reason)


def choose_protocol(call: Call, supported: Sequence[str] = _PROTOCOLS) -> str:
    """Return the subprotocol for a WebSocket: the first one of the client that is supported.

    Raises: StatusError 400 when the request is no upgrade to a WebSocket, or offers none.
    """
    headers: Any = call.request.headers
    upgrade = headers.get("upgrade", "").lower()
    if not upgrade:
        raise status_errors.bad_request("Upgrade request required")
    if upgrade != "websocket":
        text = f"unable to upgrade: {upgrade} is not supported by the embedded API server, use a WebSocket"
        raise status_errors.bad_request(f"{text} ({supported[0]})")
    offered = [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",")]
    found = next((one for one in offered if one in supported), "")
    if not found:
        text = f"unable to upgrade: the client offers {', '.join(filter(None, offered)) or 'no subprotocol'}"
        raise status_errors.bad_request(f"{text}, supported are {', '.join(supported)}")
    return found
