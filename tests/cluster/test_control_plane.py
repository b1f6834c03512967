"""The real control plane is what later tests take it for."""

from __future__ import annotations

from konverge.testing import ControlPlane, kubernetes_version


def test_server_and_kubectl_are_of_the_pinned_version(control_plane: ControlPlane) -> None:
    said = control_plane.kubectl("version")

    assert f"Client Version: {kubernetes_version()}" in said
    assert f"Server Version: {kubernetes_version()}" in said


def test_a_test_has_a_namespace_of_its_own(control_plane: ControlPlane, namespace: str) -> None:
    assert f"namespace/{namespace}" in control_plane.kubectl("get", "namespaces", "-o", "name").split()
