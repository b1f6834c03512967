"""The real control plane that other tests rely on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane, HttpResponse, kubernetes_version

# A test that starts its own control planes needs the real programs, like one that requests the fixture.
needs_programs = pytest.mark.usefixtures("control_plane")


def config_map(plane: ControlPlane, namespace: str, name: str) -> str:
    """Create a config map and return its version."""
    answer = plane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body={"metadata": {"name": name}})
    assert answer.status == 201, answer.body
    return str(answer.json()["metadata"]["resourceVersion"])


def watch(plane: ControlPlane, path: str, **query: str) -> HttpResponse:
    """Return the events of a watch within a second."""
    asked = "&".join(f"{name}={value}" for name, value in {"watch": "1", "timeoutSeconds": "1", **query}.items())
    return plane.request("GET", f"{path}?{asked}")


def events(answer: HttpResponse) -> list[dict[str, object]]:
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def test_server_and_kubectl_are_of_the_pinned_version(control_plane: ControlPlane) -> None:
    said = control_plane.kubectl("version")

    assert f"Client Version: {kubernetes_version()}" in said
    assert f"Server Version: {kubernetes_version()}" in said
    assert control_plane.request("GET", "/version").json()["minor"] == "36"


def test_kubectl_lists_the_namespaces_of_the_system_and_of_the_test(
    control_plane: ControlPlane, namespace: str
) -> None:
    names = control_plane.kubectl("get", "namespaces", "-o", "name").split()

    assert {"namespace/default", "namespace/kube-system", f"namespace/{namespace}"} <= set(names)


def test_a_user_may_do_what_rbac_allows_and_nothing_else(control_plane: ControlPlane, namespace: str) -> None:
    alice = control_plane.kubeconfig_for("alice", groups=["readers"])
    with pytest.raises(ControlPlaneError, match=r'Forbidden.*User "alice" cannot list resource "configmaps"'):
        control_plane.kubectl("get", "configmaps", "-n", namespace, kubeconfig=alice)

    control_plane.kubectl("create", "role", "read", "--verb=list", "--resource=configmaps", "-n", namespace)
    control_plane.kubectl("create", "rolebinding", "read", "--role=read", "--group=readers", "-n", namespace)

    # The server's authorizer reads roles from its own cache, which lags behind.
    assert any(may_list_config_maps(control_plane, namespace, alice) for _ in range(50))
    with pytest.raises(ControlPlaneError, match="cannot create resource"):
        control_plane.kubectl("create", "configmap", "mine", "-n", namespace, kubeconfig=alice)


def may_list_config_maps(plane: ControlPlane, namespace: str, kubeconfig: Path) -> bool:
    try:
        plane.kubectl("get", "configmaps", "-n", namespace, kubeconfig=kubeconfig)
    except ControlPlaneError:
        return False
    return True


def test_certificate_and_token_are_both_the_admin(control_plane: ControlPlane) -> None:
    trust = [f"--server={control_plane.url}", f"--certificate-authority={control_plane.ca_file}"]
    pair = [f"--client-certificate={control_plane.admin_cert}", f"--client-key={control_plane.admin_key}"]
    for proof in (pair, [f"--token={control_plane.admin_token}"]):
        who = control_plane.kubectl(*trust, *proof, "auth", "whoami", "-o", "json", kubeconfig=Path("/dev/null"))

        user = json.loads(who)["status"]["userInfo"]
        assert user["username"] == "admin"
        assert "system:masters" in user["groups"]


def test_service_account_tokens_are_signed_and_accepted(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "serviceaccount", "robot", "-n", namespace)
    token = control_plane.kubectl("create", "token", "robot", "-n", namespace)
    trust = [f"--server={control_plane.url}", f"--certificate-authority={control_plane.ca_file}"]

    who = control_plane.kubectl(
        *trust, f"--token={token}", "auth", "whoami", "-o", "json", kubeconfig=Path("/dev/null")
    )

    assert json.loads(who)["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:robot"


def test_a_pod_can_be_made_without_a_controller_manager(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("run", "web", "--image=web:1", "-n", namespace)

    assert "Pending" in control_plane.kubectl("get", "pod", "web", "-n", namespace)


def test_a_list_is_streamed_up_to_the_bookmark_that_ends_it(control_plane: ControlPlane, namespace: str) -> None:
    config_map(control_plane, namespace, "a")
    config_map(control_plane, namespace, "b")

    answer = watch(
        control_plane,
        f"/api/v1/namespaces/{namespace}/configmaps",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )

    *added, end = events(answer)
    assert [event["type"] for event in added] == ["ADDED", "ADDED"]
    assert end["type"] == "BOOKMARK"
    assert "k8s.io/initial-events-end" in json.dumps(end)


@pytest.fixture(scope="module")
def own_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane that no other test file uses."""
    assert control_plane.url
    with ControlPlane(audit=True) as plane:
        yield plane


def test_what_was_written_survives_a_crash_of_the_api_server(own_plane: ControlPlane) -> None:
    url = own_plane.url
    config_map(own_plane, "default", "kept")

    own_plane.stop_apiserver()
    with pytest.raises(OSError, match="refused"):
        own_plane.request("GET", "/readyz")
    own_plane.start_apiserver()

    assert own_plane.url == url
    assert own_plane.request("GET", "/api/v1/namespaces/default/configmaps/kept").status == 200


def test_after_a_compaction_and_a_restart_an_old_version_is_gone(own_plane: ControlPlane) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    old = config_map(own_plane, "default", "first")
    config_map(own_plane, "default", "second")
    assert own_plane.request("GET", f"{path}?resourceVersion={old}&resourceVersionMatch=Exact").status == 200

    assert own_plane.compact() > int(old)
    own_plane.stop_apiserver()
    own_plane.start_apiserver()

    assert own_plane.request("GET", f"{path}?resourceVersion={old}&resourceVersionMatch=Exact").status == 410
    (event,) = events(watch(own_plane, path, resourceVersion=old))
    assert event["type"] == "ERROR"
    assert '"code": 410' in json.dumps(event)


def test_the_audit_log_has_every_request(own_plane: ControlPlane) -> None:
    own_plane.request("GET", "/api/v1/namespaces/default/configmaps/asked-for")

    entries = [json.loads(line) for line in own_plane.audit_log.read_text().splitlines()]
    (asked,) = [entry for entry in entries if entry["requestURI"].endswith("/asked-for")]
    assert (asked["verb"], asked["user"]["username"], asked["responseStatus"]["code"]) == ("get", "admin", 404)


@needs_programs
def test_with_a_controller_manager_controllers_run_and_nothing_is_left_after_it() -> None:
    with ControlPlane(controller_manager=True) as plane:
        directory, pids = plane.directory, plane.pids
        plane.kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
        plane.kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=2", "--timeout=30s")
        pods = json.loads(plane.kubectl("get", "pods", "-o", "json"))["items"]
        assert [pod["spec"]["serviceAccountName"] for pod in pods] == ["default", "default"]

    assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager"}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())
    assert not directory.exists()
