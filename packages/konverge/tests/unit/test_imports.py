"""What an import loads: the start of an operator, a command or a test must not pay for what it does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

NAMES = "Manager, controller_for, CustomResource, Reconciler, Context"
NEEDED_LATER = {
    "aiohttp": "WebSockets and the servers",
    "email": "dates in Retry-After, metadata of distributions",
    "importlib.metadata": "the User-Agent of a client",
    "konverge.client.access.loading": "a client without a configuration",
    "konverge.client.transport": "a client that uses sockets",
    "konverge.controller.running_controller": "a manager that runs",
    "konverge.k8s": "the kinds that an operator imports",
    "konverge.manager.running_manager": "a manager that runs",
    "konverge.webhooks": "webhooks",
    "konverge.telemetry.snapshots": "metrics",
    "opentelemetry": "traces",
    "prometheus_client": "metrics",
    "tempfile": "client certificates in memory",
    "yaml": "kubeconfig files, and CRDs as YAML",
}
"""Modules that the names above do not need, and what needs them."""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    code = f"import sys; from konverge import {NAMES}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", NEEDED_LATER)
def test_the_names_of_an_operator_do_not_load(module: str, loaded: set[str]) -> None:
    assert module not in loaded
    assert "konverge.manager.manager" in loaded


def test_every_exported_name_can_be_loaded() -> None:
    import konverge
    from konverge import client, controller, telemetry

    for package in (konverge, client, controller, telemetry):
        assert all(getattr(package, name) is not None for name in package.__all__)
