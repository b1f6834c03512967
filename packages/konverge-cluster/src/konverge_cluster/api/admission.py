"""The admission chain: plug-ins that may change or reject a write after it is decoded and before it is stored.

The chain runs in order: first every `mutate`, then, after validation, every `validate`. Webhooks, the namespace rules
and the built-in plug-ins all implement `Admission`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge_cluster.api.authorization import ADMIN, UserInfo
from konverge_cluster.api.strategy import Document, Strategy

__all__ = ["Admission", "AdmissionRequest"]


@dataclass(slots=True)
class AdmissionRequest:
    """One write in admission. `object` is what will be stored; `mutate` may change it in place or replace it.

    `operation` is CREATE, UPDATE, DELETE or CONNECT. On DELETE `object` is None, on CREATE `old_object` is None. `name`
    is "" while a generateName is not yet resolved. `verb` is that of the API call: an apply that creates an object is a
    "patch". `warnings` are sent to the caller in order.
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
    user: UserInfo = ADMIN
    warnings: list[str] = field(default_factory=list)
    verb: str = ""


class Admission(Protocol):
    """One plug-in of the chain. It rejects a request by raising `StatusError`."""

    def handles(self, request: AdmissionRequest) -> bool:
        """Report whether the plug-in applies to this request; if not, neither method below is called. Must be fast."""
        ...

    async def mutate(self, request: AdmissionRequest) -> None: ...

    async def validate(self, request: AdmissionRequest) -> None: ...
