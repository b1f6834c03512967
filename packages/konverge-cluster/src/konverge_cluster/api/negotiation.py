"""Content negotiation: JSON or YAML; the object itself, a table, or only its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import JSON, YAML

__all__ = ["PROTOBUF", "STREAMS", "View", "is_pretty", "negotiate"]

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_SUPPORTED: Final = (JSON, YAML)
_ALL: Final = (JSON, YAML, PROTOBUF)
STREAMS: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_TARGETS: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_META_VERSIONS: Final = ("v1", "v1beta1")
_INTERACTIVE_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")


@dataclass(frozen=True, slots=True)
class View:
    """The negotiated format: media type, target kind ("" for the object itself) and its meta version."""

    media: str = JSON
    target: str = ""
    version: str = "v1"

    @property
    def plain(self) -> bool:
        return not self.target and self.media == JSON


@lru_cache(maxsize=256)
def negotiate(accept: str, *, custom: bool = False, collection: bool = False) -> View:
    """Return the format for an Accept header: the first media range that can be served.

    Raises: StatusError 406.
    """
    if not accept:
        return View()
    clauses = _clauses(accept)
    # For built-in kinds the real server has a router that requires an exact media type.
    if not custom and not any(media in (*_SUPPORTED, "*/*") for media, _ in clauses):
        listed = ", ".join((*_ALL, *STREAMS) if collection else _ALL)
        message = f"406: Not Acceptable\n\nAvailable representations: {listed}"
        raise status_errors.failure(406, message, "NotAcceptable", {})
    for media, parameters in clauses:
        view = _view_for(media, parameters)
        if view is not None:
            return view
    raise status_errors.not_acceptable(_ALL)


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for part in accept.split(","):
        media, *rest = (part.strip() for part in part.split(";"))
        parameters = dict(_parameter(part) for part in rest)
        found.append((media, parameters))
    # A stable sort: by quality, then */* and type/* after exact media types.
    return sorted(found, key=lambda each: (-_quality(each[1]), each[0] == "*/*", each[0].endswith("/*")))


def _parameter(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name.strip(), value.strip()


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 1.0


def _matches(media: str, supported: str) -> bool:
    return media in (supported, "*/*", "application/*")


def _view_for(media: str, parameters: dict[str, str]) -> View | None:
    supported = next((each for each in _SUPPORTED if _matches(media, each)), None)
    if supported is None or parameters.get("stream", "watch") not in ("", "watch"):
        return None
    if not any(name in parameters for name in ("as", "g", "v")):
        return View(supported)
    target, group, version = (parameters.get(name, "") for name in ("as", "g", "v"))
    if target in _TARGETS and group == "meta.k8s.io" and version in _META_VERSIONS:
        return View(supported, target, version)
    return None


def is_pretty(query: str | None, agent: str) -> bool:
    """Report whether the response is indented: on request, or for the User-Agent of an interactive tool."""
    if query:
        return query.lower() in ("1", "t", "true")
    return agent.startswith(_INTERACTIVE_AGENTS)
