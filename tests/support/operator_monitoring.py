"""What the alerts and the dashboard that an operator ships have to be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import yaml

from konverge.manager import Manager
from promql_queries import labels_of_groups, metrics_in

__all__ = ["check_panels", "check_queries", "check_rule", "panels_of", "rules_of", "samples_of"]

SCRAPED = {"namespace", "pod", "le"}
"""Labels that Prometheus adds, and that of histograms."""


def rules_of(folder: Path) -> list[dict[str, Any]]:
    """Return the alerts in the folder of an operator."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted((folder / "alerts").glob("*.yaml"))]
    return [rule for document in documents for group in document["spec"]["groups"] for rule in group["rules"]]


def panels_of(folder: Path) -> list[dict[str, Any]]:
    """Return the panels of the dashboards in the folder of an operator."""
    documents = [json.loads(path.read_text()) for path in sorted((folder / "dashboards").glob("*.json"))]
    return [panel for document in documents for panel in document["panels"]]


def samples_of(manager: Manager) -> dict[str, set[str]]:
    """Return the samples that a running operator exports, with their labels."""
    assert manager._running is not None
    found: dict[str, set[str]] = {}
    for family in manager._running.monitoring.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def check_queries(folder: Path, there: dict[str, set[str]]) -> None:
    """Check that every metric and label of a query exists."""
    targets = [target for panel in panels_of(folder) for target in panel["targets"]]
    for query in [one["expr"] for one in (*rules_of(folder), *targets)]:
        named = metrics_in(query)
        assert named, query
        for metric, labels in named.items():
            assert metric in there, query
            assert labels | labels_of_groups(query) <= there[metric] | SCRAPED, query


def check_rule(folder: Path, rule: dict[str, Any]) -> None:
    """Check that an alert is described, and that the README says what to do."""
    texts = rule["annotations"]
    assert set(texts) == {"summary", "description"}
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    promql_parser.parse_duration(rule.get("for", "1m"))
    assert set(re.findall(r"\$labels\.(\w+)", str(texts))) <= labels_of_groups(rule["expr"])
    assert f"| `{rule['alert']}` |" in (folder / "README.md").read_text()


def check_panels(folder: Path) -> None:
    """Check that panels do not overlap, and that legends have existing labels."""
    panels = panels_of(folder)
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels]
    assert len(set(places)) == len(places) > 0
    assert {(one["gridPos"]["w"], one["gridPos"]["h"]) for one in panels} == {(8, 8)}
    assert all(x % 8 == y % 8 == 0 and x < 24 for x, y in places)
    for target in [one for panel in panels for one in panel["targets"]]:
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels_of_groups(target["expr"])
