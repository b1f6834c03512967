"""The dashboard and the alerts of the operator: each query is valid PromQL for exported metrics."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import promql_parser
import pytest
import yaml

from konverge.manager import LeaderElection
from konverge_operators.webapp.api import Phase
from promql_queries import labels_of_groups, metrics_in
from repository import ROOT
from webapps import webapp, webapp_environment

FOLDER = ROOT / "packages/konverge-operators/src/konverge_operators/webapp"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboards" / "webapp-operator.json").read_text())
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts" / "webapp-operator.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]
QUERIES = [rule["expr"] for rule in RULES] + [
    target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
]
FROM_SCRAPING = {"pod", "namespace", "job", "instance"}
"""Labels that Prometheus adds by itself."""


async def exported() -> dict[str, set[str]]:
    """Return the samples that a running operator exports, each with its labels."""
    async with webapp_environment(strict=False) as env:
        election = LeaderElection("webapp-operator", "default", clock=asyncio.get_running_loop().time)
        async with env.operating(leader_election=election) as manager:
            await env.client.create(webapp())
            await env.reaches(Phase.READY)
            env.lifecycle.unexpected.labels("Deleting", "Ready")
            assert manager._running is not None
            found: dict[str, set[str]] = {}
            for family in manager._running.monitoring.registry.collect():
                for sample in family.samples:
                    found.setdefault(sample.name, set()).update(sample.labels)
            return found


async def test_every_metric_and_label_in_a_query_is_exported() -> None:
    there = await exported()
    for query in QUERIES:
        named = metrics_in(query)
        assert named, query
        for metric, labels in named.items():
            assert metric in there, f"{metric} in {query}"
            assert labels <= there[metric] | FROM_SCRAPING, query
            if "sum by" in query and len(named) == 1:
                assert labels_of_groups(query) <= there[metric] | FROM_SCRAPING, query


@pytest.mark.parametrize("query", ["sum(rate(x[5m])", "rate(x)", "x[5m] > 1", "sum by x", "nothing_such(x)"])
def test_an_invalid_query_is_detected(query: str) -> None:
    with pytest.raises(ValueError):
        promql_parser.parse(query)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_summary_and_a_description(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"WebApp[A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")
    promql_parser.parse_duration(rule.get("for", "1m"))
    shown = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert shown <= labels_of_groups(rule["expr"])


def test_the_panels_of_the_dashboard_do_not_overlap_and_show_existing_labels() -> None:
    panels = DASHBOARD["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
        for target in panel["targets"]:
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert shown <= labels_of_groups(target["expr"])
