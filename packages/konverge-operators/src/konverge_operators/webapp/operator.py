"""The operator, as the commands `konverge run`, `dev` and `manifests` load it."""

from __future__ import annotations

from pathlib import Path

from konverge.manager import Operator
from konverge.workflow import PhaseMetrics
from konverge_operators.webapp.admission import check, fill_in
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1, conversion
from konverge_operators.webapp.reconciler import controllers

_FOLDER = Path(__file__).parent
_metrics = PhaseMetrics("webapp")

operator = Operator(
    name="webapp-operator",
    kinds=((WebApp, WebAppV1Beta1),),
    controllers=controllers(_metrics),
    webhooks=(check, fill_in, conversion),
    samples=(_FOLDER / "samples" / "nginx-app.yaml",),
    monitoring=(_FOLDER / "alerts" / "webapp-operator.yaml", _FOLDER / "dashboards" / "webapp-operator.json"),
    metrics=_metrics.collectors,
)
