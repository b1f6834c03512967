"""The operator as one value, for `konverge run`, `dev` and `manifests`."""

from __future__ import annotations

from operators.webapp.api import WebApp
from operators.webapp.lifecycle import Lifecycle
from operators.webapp.reconciler import controllers

from konverge.manager import Operator

_lifecycle = Lifecycle()

operator = Operator(
    name="webapp-operator",
    kinds=(WebApp,),
    controllers=controllers(_lifecycle),
    metrics=(_lifecycle.transitions, _lifecycle.undeclared),
)
