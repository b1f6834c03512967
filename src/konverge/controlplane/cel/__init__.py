"""The Common Expression Language as Kubernetes speaks it: parsed, checked against types, priced, evaluated.

An `Environment` names the variables and their types; `Environment.compile` turns a text into a `Program`, or raises
`CompileError` with the texts of the real server. Everything here is pure: no I/O, no clock, no state.

    text -> lexing -> parsing (with macros) -> checking -> closures
"""

from __future__ import annotations

from konverge.controlplane.cel.environments import CompileError, Environment, Program
from konverge.controlplane.cel.values import EvaluationError, Optional

__all__ = ["CompileError", "Environment", "EvaluationError", "Optional", "Program"]
