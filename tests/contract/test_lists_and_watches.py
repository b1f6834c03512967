"""Lists and watches keep their promises on the embedded server and on a real one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from two_servers import Api, Json

MERGE = "application/merge-patch+json"


def config(name: str, app: str = "w", **data: str) -> Json:
    return {"metadata": {"name": name, "labels": {"app": app}}, "data": data}


def version_of(found: Json) -> str:
    return str(found["metadata"]["resourceVersion"])


def told(events: list[Json]) -> list[tuple[str, str]]:
    return [(each["type"], each["object"]["metadata"].get("name", "")) for each in events]


def names(page: Json) -> list[str]:
    return [each["metadata"]["name"] for each in page["items"]]


def get(api: Api, path: str) -> Any:
    reply = api.request("GET", path)
    assert reply.status == 200, reply.body
    return reply.json()


def relabel(api: Api, name: str, app: str) -> Json:
    reply = api.request("PATCH", api.at("configmaps", name), {"metadata": {"labels": {"app": app}}}, content_type=MERGE)
    assert reply.status == 200
    return dict(reply.json())


def test_pages_are_a_snapshot(api: Api) -> None:
    for index in range(5):
        api.make("configmaps", config(f"w{index}"))
    path = api.at("configmaps")
    first = get(api, f"{path}?limit=2&labelSelector=app%3Dw")
    api.request("DELETE", api.at("configmaps", "w3"))
    api.make("configmaps", config("w2b"))

    second = get(api, f"{path}?limit=2&labelSelector=app%3Dw&continue={first['metadata']['continue']}")
    third = get(api, f"{path}?limit=2&labelSelector=app%3Dw&continue={second['metadata']['continue']}")

    assert [names(page) for page in (first, second, third)] == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    assert version_of(first) == version_of(second) == version_of(third)
    assert "continue" not in third["metadata"]


def test_an_exact_version_returns_that_state(api: Api) -> None:
    api.make("configmaps", config("a"))
    then = version_of(api.make("configmaps", config("b")))
    api.request("DELETE", api.at("configmaps", "a"))

    path = f"{api.at('configmaps')}?resourceVersion={then}&labelSelector=app%3Dw"

    assert names(get(api, f"{path}&resourceVersionMatch=Exact")) == ["a", "b"]
    assert names(get(api, f"{path}&resourceVersionMatch=NotOlderThan")) == ["b"]
    assert names(get(api, f"{path}&limit=1")) == ["a"]


def test_a_future_version_times_out(api: Api) -> None:
    reply = api.request("GET", f"{api.at('configmaps')}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan")

    assert (reply.status, reply.headers["retry-after"]) == (504, "1")
    assert reply.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_watch_resumes_where_it_left_off(api: Api) -> None:
    start = version_of(api.make("configmaps", config("a")))
    api.make("configmaps", config("b"))
    relabel(api, "a", "z")
    api.request("DELETE", api.at("configmaps", "b"))

    first = api.watch(api.at("configmaps"), resourceVersion=start)
    api.make("configmaps", config("c"))
    again = api.watch(api.at("configmaps"), resourceVersion=version_of(first[-1]["object"]))

    assert told(first) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert told(again) == [("ADDED", "c")]
    versions = [int(version_of(each["object"])) for each in (*first, *again)]
    assert versions == sorted(set(versions))


def test_a_selector_turns_changes_into_additions_and_deletions(api: Api) -> None:
    made = api.make("configmaps", config("a", k="old"))
    left = relabel(api, "a", "z")
    back = relabel(api, "a", "w")

    events = api.watch(api.at("configmaps"), resourceVersion=version_of(made), labelSelector=quote("app=w"))

    assert told(events) == [("DELETED", "a"), ("ADDED", "a")]
    assert [version_of(each["object"]) for each in events] == [version_of(left), version_of(back)]
    assert events[0]["object"]["metadata"]["labels"] == {"app": "w"}


def test_a_deletion_in_two_steps_sends_two_events(api: Api) -> None:
    wish = config("a")
    wish["metadata"]["finalizers"] = ["ex.io/f"]
    start = version_of(api.make("configmaps", wish))
    api.request("DELETE", api.at("configmaps", "a"))
    api.request("PATCH", api.at("configmaps", "a"), {"metadata": {"finalizers": None}}, content_type=MERGE)

    events = api.watch(api.at("configmaps"), resourceVersion=start)

    assert told(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert all("deletionTimestamp" in each["object"]["metadata"] for each in events)


def test_a_write_that_changes_nothing_sends_no_event(api: Api) -> None:
    made = api.make("configmaps", config("a", k="v"))

    again = api.request("PUT", api.at("configmaps", "a"), made).json()

    assert version_of(again) == version_of(made)
    assert api.watch(api.at("configmaps"), resourceVersion=version_of(made)) == []


def test_a_streamed_list_ends_with_its_bookmark(api: Api) -> None:
    for name in "ab":
        api.make("configmaps", config(name))
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    events = api.watch(api.at("configmaps"), labelSelector=quote("app=w"), **options)

    assert told(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    assert events[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert set(events[2]["object"]) == {"kind", "apiVersion", "metadata"}


def test_a_bookmark_is_never_older_than_the_events_before_it(api: Api) -> None:
    start = version_of(api.make("configmaps", config("a")))
    api.make("configmaps", config("b"))

    options = {"resourceVersion": start, "allowWatchBookmarks": "true", "timeoutSeconds": 5}
    events = api.watch(api.at("configmaps"), **options)

    # The real server sends one only when it has heard of something newer than what the watch began with.
    assert told(events)[0] == ("ADDED", "b")
    assert all(each["type"] == "BOOKMARK" for each in events[1:])
    assert all(int(version_of(each["object"])) >= int(version_of(events[0]["object"])) for each in events)


def test_the_deprecated_watch_paths_work(api: Api) -> None:
    for name in "ab":
        api.make("configmaps", config(name))
    root = f"/api/v1/watch/namespaces/{api.namespace}/configmaps"

    assert told(api.watch(f"{root}/a")) == [("ADDED", "a")]
    assert told(api.watch(root, labelSelector=quote("app=w"))) == [("ADDED", "a"), ("ADDED", "b")]


def test_metadata_and_tables_are_watched_too(api: Api) -> None:
    api.make("configmaps", config("a"))
    path = f"{api.at('configmaps')}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da"

    partial = api.request("GET", path, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").events()
    table = api.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").events()

    assert set(partial[0]["object"]) == {"kind", "apiVersion", "metadata"}
    assert [row["cells"][0] for row in table[0]["object"]["rows"]] == ["a"]
