"""The pytest fixtures: which tests are marked, which are skipped, which fail when the control plane is required."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = """
def test_that_needs_it(control_plane):
    assert control_plane.request("GET", "/readyz").status == 200

def test_that_needs_a_namespace(namespace):
    assert namespace == "test-fresh"

def test_that_needs_nothing():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Create a project with tests that need a control plane, on a machine without one."""
    pytester.makeconftest('pytest_plugins = ["konverge.testing.fixtures"]')
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")  # pytest-asyncio warns without it
    pytester.makepyfile(TESTS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("KONVERGE_REQUIRE_CONTROL_PLANE", raising=False)
    return pytester


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "workers"])
def test_without_a_control_plane_its_tests_are_skipped_and_one_line_says_how_to_get_it(
    project: pytest.Pytester, options: tuple[str, ...]
) -> None:
    result = project.runpytest_inprocess("-q", *options)

    result.assert_outcomes(passed=1, skipped=2)
    lines = [line for line in result.outlines if "make control-plane" in line]
    assert len(lines) == 1
    assert lines[0].startswith("skipped the tests that need a control plane: find control plane: the cache ")


def test_where_it_is_required_a_missing_control_plane_fails_the_run(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KONVERGE_REQUIRE_CONTROL_PLANE", "1")

    result = project.runpytest_inprocess("-q")

    result.assert_outcomes(passed=1, errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*make control-plane*"])


def test_a_test_that_asks_for_it_is_marked_by_that(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("-q", "--strict-markers", "-m", "not control_plane")

    result.assert_outcomes(passed=1, deselected=2)


def test_with_a_control_plane_its_tests_run(
    project: pytest.Pytester, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs))

    result = project.runpytest_inprocess("-q")

    result.assert_outcomes(passed=3)
    assert "control plane:" not in result.stdout.str()
