"""The operator as one value, for `konverge run`, `dev` and `manifests`."""

from __future__ import annotations

from operators.webapp.api import WebApp
from operators.webapp.reconciler import controllers

from konverge.manager import Operator

operator = Operator(name="webapp-operator", kinds=(WebApp,), controllers=controllers())
