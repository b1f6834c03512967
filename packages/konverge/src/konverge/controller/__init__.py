"""Controllers: declared with `controller_for(...)`, run by a manager."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.controller.builder import Builder, controller_for
from konverge.controller.controller import Controller
from konverge.controller.permissions import EVENTS, LEASES, Permission, permissions_on, rules_of

if TYPE_CHECKING:
    from konverge.controller.running_controller import ControllerStats, RunningController

__all__ = [
    "EVENTS",
    "LEASES",
    "Builder",
    "Controller",
    "ControllerStats",
    "Permission",
    "RunningController",
    "controller_for",
    "permissions_on",
    "rules_of",
]


def __getattr__(name: str) -> Any:
    # A declaration does not need what runs it.
    if name not in ("ControllerStats", "RunningController"):
        raise AttributeError(f"module 'konverge.controller' has no attribute {name!r}")
    return getattr(import_module("konverge.controller.running_controller"), name)
