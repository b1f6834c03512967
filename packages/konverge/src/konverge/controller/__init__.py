"""Controllers: declared with `controller_for(...)`, run by a manager."""

from konverge.controller.builder import Builder, controller_for
from konverge.controller.controller import Controller
from konverge.controller.permissions import EVENTS, LEASES, Permission, permissions_on, rules_of
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
