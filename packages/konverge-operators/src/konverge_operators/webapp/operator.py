"""The operator, as the commands `konverge run`, `dev` and `manifests` load it."""

from __future__ import annotations

from pathlib import Path

from konverge.manager import Operator
from konverge_operators.webapp.admission import check, fill_in
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1, conversion
from konverge_operators.webapp.lifecycle import Lifecycle
from konverge_operators.webapp.reconciler import controllers

_lifecycle = Lifecycle()

operator = Operator(
    name="webapp-operator",
    kinds=((WebApp, WebAppV1Beta1),),
    controllers=controllers(_lifecycle),
    webhooks=(check, fill_in, conversion),
    samples=(Path(__file__).parent / "samples" / "nginx-app.yaml",),
    metrics=_lifecycle.metrics,
)
