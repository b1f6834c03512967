"""Discovery and OpenAPI of the built-in kinds are those of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from two_servers import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def groups_of(api: Api, builtin: set[str]) -> Any:
    found = api.request("GET", "/apis").json()
    return found | {"groups": [each for each in found["groups"] if each["name"] in builtin]}


@pytest.fixture
def builtin(embedded_api: Api) -> set[str]:
    """The groups of a fresh server; others may have defined more on the real one."""
    return {each["name"] for each in embedded_api.request("GET", "/apis").json()["groups"]}


def test_groups_and_resources_are_the_same(both: tuple[Api, Api], builtin: set[str]) -> None:
    embedded, real = both
    assert groups_of(embedded, builtin) == groups_of(real, builtin)
    paths = ["/api/v1"]
    for group in groups_of(real, builtin)["groups"]:
        paths += [f"/apis/{group['name']}", *(f"/apis/{each['groupVersion']}" for each in group["versions"])]

    for path in paths:
        assert embedded.request("GET", path).json() == real.request("GET", path).json(), path


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_is_the_same(both: tuple[Api, Api], builtin: set[str], path: str) -> None:
    ours, theirs = (api.request("GET", path, accept=f"{AGGREGATED},application/json") for api in both)

    assert ours.headers["content-type"] == theirs.headers["content-type"] == AGGREGATED
    wanted = [each for each in theirs.json()["items"] if each["metadata"].get("name", "") in {"", *builtin}]
    assert ours.json()["items"] == wanted


def test_unchanged_aggregated_discovery_is_not_sent_again(api: Api) -> None:
    first = api.request("GET", "/apis", accept=AGGREGATED)

    again = api.request("GET", "/apis", accept=AGGREGATED, if_none_match=first.headers["etag"])

    assert (again.status, again.body) == (304, b"")


def test_schemas_and_operations_are_the_same(both: tuple[Api, Api], builtin: set[str]) -> None:
    embedded, real = both
    paths = real.request("GET", "/openapi/v3").json()["paths"]
    ours = embedded.request("GET", "/openapi/v3").json()["paths"]
    names = [name for name in ours if name == "api/v1" or name.split("/")[1] in builtin]
    assert len(names) > 20

    for name in names:
        mine = embedded.request("GET", ours[name]["serverRelativeURL"]).json()
        theirs = real.request("GET", paths[name]["serverRelativeURL"]).json()
        assert operations(mine) == operations(theirs), name
        schemas = mine["components"]["schemas"]
        for each, schema in theirs["components"]["schemas"].items():
            assert schemas[each] == schema, each


def operations(document: Any) -> dict[tuple[str, str], tuple[str, str, tuple[str, ...]]]:
    """What clients read of the paths: method, action, kind, media types; without old watches and connections."""
    found = {}
    for path, item in document["paths"].items():
        if "/watch/" in path or path.endswith(("/", "{path}", "/proxy", "/exec", "/attach", "/portforward")):
            continue
        for method, each in item.items():
            if method == "parameters" or "x-kubernetes-group-version-kind" not in each:
                continue
            media = tuple(sorted(each.get("requestBody", {}).get("content", {})))
            kind = sorted(each["x-kubernetes-group-version-kind"].items())
            found[path, method] = (each["x-kubernetes-action"], str(kind), media)
    return found
