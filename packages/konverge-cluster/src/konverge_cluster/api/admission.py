"""Admission: those who may change or refuse a write between its decoding and its storing.

The chain runs in order, first every `mutate`, then (after validation) every `validate`. Webhooks, the namespace rules
and the built-in plug-ins are all of this one shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge_cluster.api.strategy import Document, Strategy

__all__ = ["Admission", "AdmissionRequest"]


@dataclass(slots=True)
class AdmissionRequest:
    """One write on its way: `object` is what will be stored and may be changed in place or replaced by `mutate`.

    `operation` is CREATE, UPDATE, DELETE or CONNECT. On DELETE `object` is None, on CREATE `old_object` is None. `name`
    is "" while a generateName is not yet resolved. `warnings` are sent to the caller in order.
    """

    strategy: Strategy
    operation: str
    namespace: str
    name: str
    object: Document | None
    old_object: Document | None = None
    subresource: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    user: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Admission(Protocol):
    """One plug-in of the chain. A refusal is raised as `StatusError`."""

    def handles(self, request: AdmissionRequest) -> bool:
        """Say quickly whether this request matters at all; when not, neither method below is called."""
        ...

    async def mutate(self, request: AdmissionRequest) -> None: ...

    async def validate(self, request: AdmissionRequest) -> None: ...
