from __future__ import annotations

import logging
from typing import Any

import pytest

from konverge.cache import Event, EventType
from konverge.objects import Key
from konverge.queue import Priority
from konverge.triggers import (
    EnqueueReason,
    Mapper,
    Predicate,
    Trigger,
    TriggerHandler,
    anything,
    generation_changed,
    spec_or_metadata_changed,
    to_self,
)
from trigger_objects import POD, added, deleted, document, entry, updated

WEB = Key("shop", "web")


def handler(
    *, predicate: Predicate = anything, mapper: Mapper | None = None, primary: bool = True, controller: str = "webapp"
) -> TriggerHandler:
    trigger = Trigger(name="for Pod", kind=POD, predicate=predicate, mapper=mapper or to_self(), primary=primary)
    return TriggerHandler(trigger, controller=controller)


def spec(size: int, generation: int | None = None, **metadata: Any) -> dict[str, Any]:
    marks = {} if generation is None else {"generation": generation}
    return document(metadata=metadata | marks, spec={"size": size}, status={"phase": "up"})


def resets(event: Event) -> list[bool]:
    return [request.reset_backoff for request in handler().handle(event)]


def test_a_change_enqueues_its_key_with_the_reason() -> None:
    ((key, reason, priority, reset_backoff, _),) = handler().handle(updated(spec(1, 1), spec(2, 2)))

    assert key == WEB
    assert reason == EnqueueReason("for Pod", "Pod", WEB, "2", "updated")
    assert str(reason) == "for Pod: Pod shop/web updated at version 2"
    assert (priority, reset_backoff) == (Priority.NORMAL, True)


def test_changes_found_by_a_list_have_low_priority() -> None:
    ((_, reason, priority, _, _),) = handler().handle(added(spec(1), listed=True))
    assert priority is Priority.LOW
    assert reason.listed
    assert reason.what == "added"


def test_an_event_that_the_predicate_does_not_pass_enqueues_nothing() -> None:
    assert handler(predicate=generation_changed).handle(updated(spec(1, 1), spec(1, 1))) == []


def test_a_key_that_is_mapped_twice_is_enqueued_once() -> None:
    def mapper(event: Event) -> list[Key]:
        return [event.key, WEB, Key("", "x"), WEB]

    assert [request.key for request in handler(mapper=mapper).handle(added(spec(1)))] == [WEB, Key("", "x")]


def test_a_request_names_the_writer_of_the_change() -> None:
    (request,) = handler().handle(updated(spec(1, 1), spec(2, 2), writer=("webapp", WEB)))

    assert request.writer == ("webapp", WEB)


def test_the_deletion_of_the_primary_object_has_no_writer() -> None:
    event = Event(EventType.DELETED, entry(spec(1, 1)), None, False, ("webapp", WEB))

    assert [request.writer for request in handler().handle(event)] == [None]
    assert [request.writer for request in handler(primary=False).handle(event)] == [("webapp", WEB)]


def test_new_input_is_a_new_spec_a_new_object_or_its_deletion() -> None:
    marked = spec(1, 2, deletionTimestamp="2026-01-01T00:00:00Z")
    assert resets(added(spec(1, 1))) == [True]
    assert resets(deleted(spec(1, 1))) == [True]
    assert resets(updated(spec(1, 1), spec(2, 2))) == [True]
    assert resets(updated(spec(1, 2), marked)) == [True]


def test_labels_annotations_and_status_are_not_new_input() -> None:
    assert resets(updated(spec(1, 1), spec(1, 1, labels={"a": "b"}))) == [False]
    assert resets(updated(spec(1, 1), spec(1, 1, annotations={"a": "b"}))) == [False]
    assert resets(updated(spec(1, 1), spec(1, 1))) == [False]


def test_new_content_is_new_input_for_a_kind_without_generation() -> None:
    assert resets(updated(spec(1), spec(2))) == [True]
    assert resets(updated(spec(1), spec(1, labels={"a": "b"}))) == [False]


def test_a_change_of_another_kind_is_not_new_input() -> None:
    (request,) = handler(primary=False).handle(updated(spec(1, 1), spec(2, 2)))
    assert not request.reset_backoff


def test_a_predicate_that_fails_passes(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> bool:
        raise RuntimeError("a mistake")

    with caplog.at_level(logging.ERROR):
        routes = handler(predicate=spec_or_metadata_changed & Predicate(broken)).handle(added(spec(1)))

    assert [request.key for request in routes] == [WEB]
    assert [record.message for record in caplog.records] == ["predicate failed"]


def test_a_mapper_that_fails_enqueues_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> list[Key]:
        raise RuntimeError("a mistake")

    with caplog.at_level(logging.ERROR):
        assert handler(mapper=broken).handle(added(spec(1))) == []
    assert [record.message for record in caplog.records] == ["mapper failed"]
