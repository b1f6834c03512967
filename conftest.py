"""What every test may ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from konverge.testing import ControlPlane

pytest_plugins = [
    "konverge.testing.fixtures",
    "konverge.testing.async_tests",
    "konverge_cluster.testing.fixtures",  # loaded once: the entry point has the same name
    "pytester",
]

# Time is no property of what is tested here, and machines are shared. In CI every run draws the same examples, so that
# a red run is about the change; on a desk they differ, so that something new is found.
settings.register_profile(
    "konverge", deadline=None, derandomize=not os.environ.keys().isdisjoint({"CI", "KONVERGE_DERANDOMIZE"})
)
settings.load_profile("konverge")

# A shell starts background commands with SIGINT ignored, nohup any command with SIGHUP ignored, and the programs that
# tests start would inherit it. A handler is not inherited, and one that does nothing protects this process as before.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(scope="session")
def audited_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real server that keeps an audit log. Asking for the run's own first says whether the programs are there."""
    assert control_plane is not None
    with ControlPlane(audit=True) as plane:
        yield plane
