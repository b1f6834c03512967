"""What every test may ask for."""

from __future__ import annotations

pytest_plugins = ["konverge.testing.fixtures", "konverge.testing.asynctests", "pytester"]
