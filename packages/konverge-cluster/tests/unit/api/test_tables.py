"""Ages in tables, rounded as on the real server; the order of versions in discovery."""

from __future__ import annotations

import pytest

from konverge_cluster.api.discovery import version_sort_key
from konverge_cluster.api.tables import age_of, human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (5 * MINUTE + 34, "5m34s"),
        (10 * MINUTE + 5, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (2 * YEAR - DAY, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 4 * DAY, "3y4d"),
        (9 * YEAR + 40 * DAY, "9y"),
    ],
)
def test_a_duration_is_rounded_as_on_the_real_server(seconds: float, expected: str) -> None:
    assert human_duration(seconds) == expected


def test_an_age_is_unknown_without_a_time() -> None:
    assert age_of("1970-01-01T00:01:00Z", 90.0) == "30s"
    assert age_of(None, 0) == "<unknown>"


def test_versions_are_ordered_from_stable_to_early_and_from_new_to_old() -> None:
    versions = ["v1alpha1", "foo", "v1", "v2beta1", "v10", "v1beta2", "v2", "bar", "v1beta1"]

    ordered = sorted(versions, key=version_sort_key)

    assert ordered == ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]
