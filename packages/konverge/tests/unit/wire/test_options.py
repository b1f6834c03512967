from __future__ import annotations

import json

import pytest

from konverge.wire import DeleteOptions, ListOptions, WatchOptions, WriteOptions


def test_options_that_are_not_set_are_not_written() -> None:
    assert ListOptions().query() == ()
    assert WriteOptions().query() == ()
    assert DeleteOptions().body() == b""


def test_a_list_says_which_objects_and_how_fresh() -> None:
    options = ListOptions(
        label_selector="app=web",
        field_selector="metadata.name=a",
        limit=500,
        resource_version="0",
        resource_version_match="NotOlderThan",
    )
    assert options.query() == (
        ("labelSelector", "app=web"),
        ("fieldSelector", "metadata.name=a"),
        ("limit", "500"),
        ("resourceVersion", "0"),
        ("resourceVersionMatch", "NotOlderThan"),
    )


def test_the_next_page_is_asked_for_with_its_token() -> None:
    assert ListOptions(limit=500, continue_="abc").query() == (("limit", "500"), ("continue", "abc"))


def test_a_watch_asks_for_bookmarks_and_ends_on_a_whole_second() -> None:
    assert WatchOptions(resource_version="7", timeout=299.3).query() == (
        ("watch", "true"),
        ("resourceVersion", "7"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "300"),
    )


def test_a_streaming_list_is_a_watch_with_initial_events() -> None:
    assert WatchOptions(send_initial_events=True, label_selector="a", field_selector="b").query() == (
        ("watch", "true"),
        ("labelSelector", "a"),
        ("fieldSelector", "b"),
        ("allowWatchBookmarks", "true"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
    )


def test_a_write_says_who_writes_and_how() -> None:
    assert WriteOptions(dry_run=True, field_manager="shop", field_validation="Strict", force=True).query() == (
        ("dryRun", "All"),
        ("fieldManager", "shop"),
        ("fieldValidation", "Strict"),
        ("force", "true"),
    )


def test_a_delete_carries_its_options_as_a_body() -> None:
    options = DeleteOptions(propagation="Foreground", grace_period=0, uid="u1", resource_version="7", dry_run=True)
    assert json.loads(options.body()) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u1", "resourceVersion": "7"},
        "dryRun": ["All"],
    }


def test_no_grace_is_not_the_same_as_none_said() -> None:
    assert json.loads(DeleteOptions(grace_period=0).body())["gracePeriodSeconds"] == 0
    assert "gracePeriodSeconds" not in json.loads(DeleteOptions(uid="u1").body())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: ListOptions(limit=-1), "limit: expected a number of objects"),
        (lambda: ListOptions(continue_="t", resource_version="7"), "continue_ contains the version"),
        (lambda: ListOptions(resource_version_match="Exact"), "needs a resource_version"),
        (lambda: WatchOptions(send_initial_events=True, bookmarks=False), "needs bookmarks=True"),
        (lambda: WatchOptions(timeout=0), "timeout: expected a number of seconds above 0"),
        (lambda: WatchOptions(timeout=float("nan")), "timeout: expected a number of seconds above 0"),
        (lambda: DeleteOptions(grace_period=-1), "grace_period: expected a number of seconds"),
    ],
)
def test_what_the_server_would_refuse_is_refused_at_once(wrong: object, says: str) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=says):
        wrong()
