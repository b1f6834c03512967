"""What every test may ask for."""

from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = ["konverge.testing.fixtures", "konverge.testing.asynctests", "pytester"]

# Time is no property of what is tested here, and machines are shared. In CI every run draws the same examples, so that
# a red run is about the change; on a desk they differ, so that something new is found.
settings.register_profile("konverge", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("konverge")
