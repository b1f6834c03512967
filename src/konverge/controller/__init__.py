"""THE WORKERS: controllers, written down as sentences and brought to life by a manager."""

from konverge.controller.builder import Builder, controller_for
from konverge.controller.controller import Controller
from konverge.controller.permissions import Permission, rules_of
from konverge.controller.running import ControllerStats, Running
from konverge.controller.worker import Outcome

__all__ = ["Builder", "Controller", "ControllerStats", "Outcome", "Permission", "Running", "controller_for", "rules_of"]
