"""What the commands print is what a real API server takes."""

from __future__ import annotations

import subprocess
import sys

from konverge.testing import ControlPlane


def test_kubectl_applies_what_the_module_prints(control_plane: ControlPlane) -> None:
    printed = subprocess.run([sys.executable, "-m", "konverge"], capture_output=True, text=True, check=True).stdout
    control_plane.kubectl("delete", "crd", "webapps.example.com", "--ignore-not-found")  # another test may leave it
    assert "created" in control_plane.kubectl("apply", "-f", "-", input=printed)
    control_plane.kubectl("wait", "--for=condition=Established", "crd/webapps.example.com", "--timeout=20s")
    control_plane.kubectl("delete", "crd", "webapps.example.com")
