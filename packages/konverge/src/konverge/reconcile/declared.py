"""The kinds that a controller declares, and what it applies beyond them.

The changes of an undeclared kind are not watched, and generated RBAC rules do not allow its writes: it works on a
developer's machine, and is forbidden in production.
"""

from __future__ import annotations

import logging

from konverge.objects import Kind

__all__ = ["DeclaredKinds"]

_log = logging.getLogger("konverge.controller")


class DeclaredKinds:
    """The kinds that a controller may apply, as group and plural; None is all.

    Promises: an undeclared kind is logged once, with what to add to the controller.
    """

    def __init__(self, controller: str = "", kinds: frozenset[tuple[str, str]] | None = None) -> None:
        self._controller = controller
        self._kinds = kinds
        self._undeclared: dict[Kind, str] = {}

    def check(self, kind: Kind, *, owned: bool) -> None:
        """Log that a kind is not declared, unless it is; `owned` is whether the applied object is a child."""
        if self._kinds is None or (kind.group, kind.plural) in self._kinds or kind in self._undeclared:
            return
        add = f".owns({kind.kind})" if owned else f'.needs({kind.kind}, "get", "create", "patch")'
        self._undeclared[kind] = add
        extra = {"controller": self._controller, "kind": kind.kind, "add": add}
        _log.warning("kind applied but not declared", extra=extra)

    def errors(self) -> tuple[str, ...]:
        """Return a line for each undeclared kind that was applied."""
        return tuple(
            f"controller {self._controller} applies {kind.kind}, which it does not declare: add {add}"
            for kind, add in self._undeclared.items()
        )
