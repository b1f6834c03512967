"""The alert rules of the WebApp operator in Prometheus itself: promtool checks them, and evaluates them on series.

promtool is in Debian's package `prometheus`; `KONVERGE_PROMTOOL` names another one. Without it these tests are skipped:
`make test` parses every rule and compares its metrics and labels with those that a running operator exports.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from repository import ROOT

pytestmark = pytest.mark.interop

SOURCE = ROOT / "packages/konverge-operators/src/konverge_operators/webapp/alerts/webapp-operator.yaml"
GROUPS: list[dict[str, Any]] = yaml.safe_load(SOURCE.read_text())["spec"]["groups"]
RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
LEADER = 'konverge_leader{lease="webapp-operator",pod="%s"}'
DURATIONS = 'reconcile_duration_seconds_bucket{controller="webapp",le="%s"}'
HEALTHY = {
    'webapp_objects{phase="Ready"}': "7+0x90",
    'webapp_objects{phase="Scaling"}': "1+0x90",
    'webapp_objects{phase="Degraded"}': "0+0x90",
    'webapp_transitions_total{before="Scaling",after="Ready"}': "0+1x90",
    'webapp_unexpected_transitions_total{before="Deleting",after="Ready"}': "1+0x90",
    LEADER % "a": "1+0x90",
    LEADER % "b": "0+0x90",
    'reconcile_total{controller="webapp"}': "0+60x90",
    'reconcile_errors_total{controller="webapp"}': "0+1x90",
    DURATIONS % "1": "0+60x90",
    DURATIONS % "+Inf": "0+60x90",
    'konverge_longest_running_reconcile_seconds{controller="webapp"}': "3+0x90",
    'konverge_queue_oldest_wait_seconds{controller="webapp"}': "1+0x90",
    'konverge_watch_idle_seconds{kind="Deployment"}': "60+0x90",
}


@dataclass(frozen=True)
class Case:
    """Series that differ from the healthy ones, and the alert: its summary, and the labels beside its severity."""

    series: dict[str, str]
    summary: str
    labels: dict[str, str] = field(default_factory=dict)


CASES = {
    "WebAppDegraded": Case({'webapp_objects{phase="Degraded"}': "2+0x90"}, "2 WebApps are degraded"),
    "WebAppsNotProgressing": Case(
        {'webapp_transitions_total{before="Scaling",after="Ready"}': "5+0x90"},
        "1 WebApps are progressing, but no phase has changed for 30 minutes",
    ),
    "WebAppOperatorWithoutLeader": Case({LEADER % "a": "0+0x90"}, "The WebApp operator has no leader"),
    "WebAppOperatorWithTwoLeaders": Case(
        {LEADER % "b": "1+0x90"}, "2 replicas of the WebApp operator report that they are the leader"
    ),
    "WebAppReconcileErrors": Case(
        {'reconcile_errors_total{controller="webapp"}': "0+30x90"}, "50% of the reconciles of WebApps fail"
    ),
    "WebAppReconcileSlow": Case(
        {DURATIONS % "1": "0+0x90", DURATIONS % "20": "0+60x90"}, "Reconciles of WebApps take 19.81s (p99)"
    ),
    "WebAppReconcileStuck": Case(
        {'konverge_longest_running_reconcile_seconds{controller="webapp"}': "150+0x90"},
        "A reconcile of a WebApp has been running for 2m 30s",
    ),
    "WebAppQueueBacksUp": Case(
        {'konverge_queue_oldest_wait_seconds{controller="webapp"}': "90+0x90"},
        "WebApps wait 1m 30s to be reconciled",
    ),
    "WebAppOperatorWatchStale": Case(
        {'konverge_watch_idle_seconds{kind="Deployment"}': "200+0x90"},
        "The watch of Deployment has received nothing for 3m 20s",
        {"kind": "Deployment"},
    ),
    "WebAppUnexpectedTransition": Case(
        {'webapp_unexpected_transitions_total{before="Deleting",after="Ready"}': "0+0x60 1+0x30"},
        "A WebApp went from Deleting to Ready",
        {"before": "Deleting", "after": "Ready"},
    ),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    found = os.environ.get("KONVERGE_PROMTOOL") or shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: it is in Debian's package prometheus")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": GROUPS}))
    return tmp_path


def run(promtool: str, *arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [promtool, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def scenario(series: dict[str, str], fires: dict[str, Case]) -> dict[str, Any]:
    """Return a test of promtool: after 75 minutes exactly these alerts fire, and before their time none."""
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    checks = [
        {"eval_time": "75m", "alertname": name, "exp_alerts": [_alert(name, fires[name])] if name in fires else []}
        for name in RULES
    ]
    early = [{"eval_time": "0m", "alertname": name, "exp_alerts": []} for name in RULES]
    return {"interval": "1m", "input_series": inputs, "alert_rule_test": [*early, *checks]}


def _alert(name: str, case: Case) -> dict[str, Any]:
    rule = RULES[name]
    annotations = {"summary": case.summary, "description": rule["annotations"]["description"]}
    return {"exp_labels": {**rule["labels"], **case.labels}, "exp_annotations": annotations}


def test_promtool_accepts_every_rule(promtool: str, folder: Path) -> None:
    printed = run(promtool, "check", "rules", "rules.yaml", folder=folder)
    assert re.search(rf"{len(RULES)} rules found", printed)


def test_every_alert_fires_when_it_should_and_none_otherwise(promtool: str, folder: Path) -> None:
    assert CASES.keys() == RULES.keys()
    tests = [scenario({**HEALTHY, **case.series}, {name: case}) for name, case in CASES.items()]
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [scenario(HEALTHY, {}), *tests]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(document))
    assert "SUCCESS" in run(promtool, "test", "rules", "tests.yaml", folder=folder)
