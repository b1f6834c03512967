"""The operator as one value, for `konverge run`, `dev` and `manifests`."""

from __future__ import annotations

from pathlib import Path

from operators.webapp.admission import check, fill_in
from operators.webapp.api import WebApp
from operators.webapp.beta import WebAppV1Beta1, conversion
from operators.webapp.lifecycle import Lifecycle
from operators.webapp.reconciler import controllers

from konverge.manager import Operator

_lifecycle = Lifecycle()

operator = Operator(
    name="webapp-operator",
    kinds=((WebApp, WebAppV1Beta1),),
    controllers=controllers(_lifecycle),
    webhooks=(check, fill_in, conversion),
    samples=(Path(__file__).parent / "samples" / "nginx-app.yaml",),
    metrics=_lifecycle.metrics,
)
