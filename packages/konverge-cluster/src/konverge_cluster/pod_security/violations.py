"""What all checks share: the violation that a check finds, and walks over the containers of a pod.

A check is a function of the metadata and the spec of a pod or of a pod template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Check",
    "Document",
    "Violation",
    "containers",
    "list_containers",
    "plural",
    "quote_all",
    "security_context",
    "setters",
    "setters_of",
]

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a check forbids a pod: a short reason, and which containers and values it is about."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


Check = Callable[[Document, Document], Violation | None]


def containers(spec: Document) -> Iterator[Document]:
    """Yield init containers, containers and ephemeral containers."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(name) or ()


def security_context(owner: Document) -> Document:
    """Return the security context of a pod spec or of a container; {} when there is none."""
    return owner.get("securityContext") or {}


def quote_all(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def list_containers(names: list[str]) -> str:
    return f"{plural('container', len(names))} {quote_all(names)}"


def setters(pod: bool, names: list[str]) -> str:
    """Return who sets a field: the pod, some containers, or both; "" when nobody does."""
    return " and ".join([*(["pod"] if pod else ()), *([list_containers(names)] if names else ())])


def setters_of(spec: Document, is_forbidden: Callable[[Document], bool]) -> str:
    """Return who has a security context that is forbidden: the pod, some containers, or both."""
    names = [str(each["name"]) for each in containers(spec) if is_forbidden(security_context(each))]
    return setters(is_forbidden(security_context(spec)), names)
