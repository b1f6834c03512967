"""Event objects: valid fields of limited length, and errors that say what to write."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from konverge.objects import MicroTime, ObjectMeta
from konverge.reconcile.event_objects import check_controller, event_name, event_of, namespace_of, truncate, validate
from konverge.reconcile.event_series import RecordedEvent, Reference, Series

TIME = MicroTime.now()
POD = Reference(api_version="v1", kind="Pod", namespace="shop", name="web", uid="1", resource_version="7")
EVENT = RecordedEvent("widgets", POD, None, "Warning", "Failed", "Make", "no room", TIME)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "Error"}, "the type of an event is 'Normal' or 'Warning', got 'Error'"),
        ({"note": None}, "the message of an event is a str, got None"),
        ({"reason": "two words"}, "the reason of an event is one word like 'ScaledUp', got 'two words'"),
        ({"reason": 7}, "the reason of an event is one word like 'ScaledUp', got 7"),
        ({"action": ""}, "the action of an event is one word like 'ScaledUp', got ''"),
        ({"regarding": "web"}, "an event needs a Reference: write Reference.of(obj), got 'web'"),
        ({"related": "web"}, "an event needs a Reference: write Reference.of(obj), got 'web'"),
    ],
)
def test_the_message_of_an_error_says_what_to_write(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        validate(replace(EVENT, **change))


@pytest.mark.parametrize("name", ["kind", "name", "api_version"])
def test_an_object_needs_its_kind_and_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"^an event needs an object with apiVersion, kind and name, got Reference\("):
        validate(replace(EVENT, regarding=replace(POD, **{name: ""})))


def test_an_event_that_is_valid_stays_as_it_is() -> None:
    assert validate(EVENT) == EVENT
    assert validate(replace(EVENT, type="Normal", related=POD)).related == POD
    for word in ("A", "a1", "ScaledUp", "Scaled_Up", "a.b/c-d:e,f_"):
        assert validate(replace(EVENT, reason=word, action=word)).reason == word
    for word in ("-a", "a-", ".", "a b", "\u00e9", "a\n"):
        with pytest.raises(ValueError, match="is one word like"):
            validate(replace(EVENT, reason=word))


@pytest.mark.parametrize(("length", "kept"), [(127, 127), (128, 128), (129, 128)])
def test_words_have_at_most_128_characters(length: int, kept: int) -> None:
    event = validate(replace(EVENT, reason="R" * length, action="A" * length))
    assert (event.reason, event.action) == ("R" * kept, "A" * kept)


def test_a_text_is_truncated_in_whole_characters_and_only_if_it_is_too_long() -> None:
    assert truncate("x" * 10, 10) == "x" * 10
    assert truncate("x" * 11, 10) == "x" * 7 + "..."
    assert truncate("\u20ac" * 4, 10) == "\u20ac\u20ac..."
    assert truncate("a\ud800b", 10) == "a?b"
    assert validate(replace(EVENT, note="x" * 1024)).note == "x" * 1024
    assert validate(replace(EVENT, note="x" * 1025)).note == "x" * 1021 + "..."


def test_a_name_is_that_of_the_object_with_sixteen_digits_and_at_most_253_characters() -> None:
    assert re.fullmatch(r"web\.[0-9a-f]{16}", event_name(POD, Random(1)))
    longest = replace(POD, name="x" * 236)
    assert event_name(longest, Random(1)).startswith("x" * 236 + ".")
    for name in ("x" * 237, "x" * 300, "Not_A:Name"):
        made = event_name(replace(POD, name=name), Random(1))
        assert not made.startswith(name)
        assert len(made) <= 253
    assert event_name(POD, Random(1)) != event_name(POD, Random(2))


def test_a_reporting_controller_has_a_qualified_name() -> None:
    check_controller("example.com/widgets")
    with pytest.raises(ValueError, match=r"^controller 'not a name' cannot report events: "):
        check_controller("not a name")


def series(event: RecordedEvent = EVENT, count: int = 1) -> Series:
    made = Series(event, event.note, 0.0)
    made.name, made.count = "web.7f", count
    return made


def test_an_event_has_every_field_of_its_series() -> None:
    event = event_of(series(replace(EVENT, related=replace(POD, name="other"))), "pod-1")
    assert event.metadata == ObjectMeta(name="web.7f", namespace="shop")
    assert (event.type, event.reason, event.action, event.note) == ("Warning", "Failed", "Make", "no room")
    assert (event.event_time, event.series) == (TIME, None)
    assert (event.reporting_controller, event.reporting_instance) == ("widgets", "pod-1")
    regarding, related = event.regarding, event.related
    assert regarding is not None
    assert related is not None
    assert (regarding.api_version, regarding.kind, regarding.namespace, regarding.name) == ("v1", "Pod", "shop", "web")
    assert (regarding.uid, regarding.resource_version, regarding.field_path) == ("1", "7", None)
    assert related.name == "other"
    assert event_of(series(), "pod-1").related is None


def test_a_repeated_event_has_its_count_and_last_time() -> None:
    found = event_of(series(count=2), "pod-1").series
    assert found is not None
    assert (found.count, found.last_observed_time) == (2, TIME)


def test_an_event_is_in_the_namespace_of_its_object_or_in_the_default_one() -> None:
    assert namespace_of(series()) == "shop"
    assert namespace_of(series(replace(EVENT, regarding=replace(POD, namespace="")))) == "default"


def test_a_combined_series_says_so_and_is_truncated() -> None:
    combined = series(replace(EVENT, note="x" * 1024))
    combined.note = ""
    note = event_of(combined, "pod-1").note or ""
    assert note.startswith("(combined from similar events): xxx")
    assert (len(note), note[-4:]) == (1024, "x...")
