from __future__ import annotations

from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key, Kind, Scope
from konverge.wire import collection_path, group_path, object_path, request_target

POD = Kind("", "v1", "Pod", "pods")
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
NODE = Kind("", "v1", "Node", "nodes", Scope.CLUSTER)
ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", Scope.CLUSTER)

names = st.text(min_size=1).filter(lambda name: "/" not in name and name not in (".", ".."))


def test_the_core_group_has_its_own_root() -> None:
    assert group_path("", "v1") == "/api/v1"
    assert group_path("apps", "v1") == "/apis/apps/v1"


def test_a_collection_is_that_of_one_namespace_or_of_all() -> None:
    assert collection_path(POD) == "/api/v1/pods"
    assert collection_path(POD, "shop") == "/api/v1/namespaces/shop/pods"
    assert collection_path(DEPLOYMENT, "shop") == "/apis/apps/v1/namespaces/shop/deployments"
    assert collection_path(NODE) == "/api/v1/nodes"


def test_an_object_is_below_its_collection_and_a_subresource_below_its_object() -> None:
    assert object_path(DEPLOYMENT, Key("shop", "web")) == "/apis/apps/v1/namespaces/shop/deployments/web"
    assert object_path(NODE, Key("", "n1"), subresource="status") == "/api/v1/nodes/n1/status"


def test_names_that_other_kinds_allow_stay_as_they_are() -> None:
    path = object_path(ROLE, Key("", "system:controller:job-controller"))
    assert request_target(path) == "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:job-controller"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../secrets/x", "/", "\ud800"])
def test_a_name_that_would_point_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        object_path(POD, Key("shop", name))


@pytest.mark.parametrize("namespace", ["..", "a/b", "."])
def test_a_namespace_that_would_point_elsewhere_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="namespace"):
        collection_path(POD, namespace)


def test_an_object_of_a_namespaced_kind_needs_a_namespace() -> None:
    with pytest.raises(ValueError, match="Pod web needs a namespace"):
        object_path(POD, Key("", "web"))


def test_a_cluster_scoped_kind_has_no_namespace() -> None:
    with pytest.raises(ValueError, match=r"Node is cluster-scoped \(leave out the namespace 'shop'\)"):
        object_path(NODE, Key("shop", "n1"))


def test_an_escaped_name_is_escaped_again_and_does_not_become_a_slash() -> None:
    assert request_target(object_path(POD, Key("shop", "a%2Fb?c#d"))).endswith("/pods/a%252Fb%3Fc%23d")


def test_a_query_keeps_its_order_and_may_repeat_names() -> None:
    query = (("labelSelector", "app in (a, b),tier!=x"), ("dryRun", "All"), ("dryRun", "None"))
    assert request_target("/api/v1/pods", query) == (
        "/api/v1/pods?labelSelector=app%20in%20%28a%2C%20b%29%2Ctier%21%3Dx&dryRun=All&dryRun=None"
    )


@given(names, names)
def test_what_is_escaped_is_printable_ascii_and_reads_back_as_it_was(namespace: str, name: str) -> None:
    path = object_path(POD, Key(namespace, name), subresource="log")

    line = request_target(path)

    assert unquote(line) == path
    assert line.isascii()
    assert line.isprintable()
    assert not set(line) & set(' ?#"<>\\')
    assert line.count("/") == 7


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1))))
def test_a_query_reads_back_as_it_was(query: list[tuple[str, str]]) -> None:
    asked = request_target("/api", query).partition("?")[2]
    assert parse_qsl(asked, strict_parsing=bool(query)) == query
    assert asked.isascii()
    assert " " not in asked
