"""Limits and lengths at their exact values: versions, scopes, options, the length of watches, the backoff."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.backoff import RequestBackoff, Stagger
from konverge.cache.decoder import Decoder
from konverge.cache.deletions import Deletion, parse_delete_response, was_deleted
from konverge.cache.entries import parse_version
from konverge.cache.options import CacheOptions, ReflectorOptions
from konverge.cache.scopes import Scope
from konverge.cache.watch_length import WatchLength
from konverge.objects import FieldSelector, LabelSelector

# Versions


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("42", 42),
        ("9" * 100, int("9" * 100)),
        ("9" * 101, None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("x1", None),
        ("\u0661", None),
    ],
)
def test_a_version_of_up_to_a_hundred_digits_is_a_number(text: str, number: int | None) -> None:
    assert parse_version(text) == number


def test_the_size_of_an_entry_is_that_of_its_json() -> None:
    entry = Decoder(WIDGET).decode(widget("a", 1))
    assert entry.size == len(widget("a", 1))
    assert (entry.label_map(), entry.owner_references()) == ({}, [])


# Responses of deletes


@pytest.mark.parametrize(
    ("document", "deletion"),
    [
        ({"kind": "Status", "details": {"uid": "u"}, "metadata": {"uid": "x", "resourceVersion": "7"}}, ("u", 0)),
        ({"kind": "Status"}, ("", 0)),
        ({"kind": "Widget", "metadata": {"uid": "u", "resourceVersion": "7"}, "details": {"uid": "x"}}, ("u", 7)),
        ({"kind": "Widget", "metadata": {"uid": "u", "resourceVersion": "x"}}, ("u", 0)),
        ({"kind": "Widget", "metadata": {"uid": "u", "finalizers": []}, "spec": {"finalizers": []}}, ("u", 0)),
        ({"kind": "Widget", "metadata": {"uid": "u"}, "spec": "odd"}, ("u", 0)),
        ({"kind": "Widget", "metadata": {"uid": 7}}, ("", 0)),
        ({"metadata": {"uid": "u", "finalizers": ["f"]}}, None),
        ({"metadata": {"uid": "u", "deletionGracePeriodSeconds": 1}}, None),
        ({"metadata": {"uid": "u"}, "spec": {"finalizers": ["kubernetes"]}}, None),
    ],
)
def test_the_response_of_a_delete_names_uid_and_version(document: object, deletion: tuple[str, int] | None) -> None:
    expected = None if deletion is None else Deletion(*deletion)
    assert parse_delete_response(msgspec.json.encode(document)) == expected


@pytest.mark.parametrize(
    ("metadata", "gone"),
    [
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}, False),
        ({"deletionTimestamp": None}, False),
        ({"deletionTimestamp": 7}, False),
        ({"annotations": {"deletionTimestamp": "x"}}, False),
        ({}, False),
    ],
)
def test_a_write_deleted_its_object_if_nothing_is_left_to_wait_for(metadata: object, gone: bool) -> None:
    assert was_deleted(msgspec.json.encode({"metadata": metadata})) is gone
    assert not was_deleted(b'{"deletionTimestamp"')


# Scopes


def test_a_scope_without_a_namespace_contains_every_key() -> None:
    assert [Scope("", "", "").contains(at("a", namespace)) for namespace in ("shop", "")] == [True, True]
    assert [Scope("shop", "", "").contains(at("a", namespace)) for namespace in ("shop", "bank")] == [True, False]


@pytest.mark.parametrize(
    ("fields", "spec", "matches"),
    [
        ("", {}, True),
        ("spec.on=true", {"on": True}, True),
        ("spec.on=false", {"on": False}, True),
        ("spec.on!=false", {"on": False}, False),
        ("spec.on=", {}, True),
        ("spec.on=0", {}, True),
        ("spec.on=false", {}, True),
        ("spec.on=true", {}, False),
        ("spec.on!=true", {}, True),
        ("spec.on!=", {}, False),
        ("spec.a.b=x", {"a": {"b": "x"}}, True),
        ("spec.a.b=x", {"a": None}, False),
        ("spec.a.b=x", {"a": "text"}, None),
        ("spec.a=x", {"a": {"b": "x"}}, None),
        ("spec.a=x", {"a": ["x"]}, None),
        ("spec.a=x,spec.b=y", {"a": "x", "b": "y"}, True),
        ("spec.a=x,spec.b=y", {"a": "x", "b": "z"}, False),
        ("spec.a=x,spec.b=y", {"a": ["x"], "b": "z"}, None),
        ("spec.a=Text", {"a": "Text"}, True),
        ("spec.a=7", {"a": 7}, True),
    ],
)
def test_a_field_selector_is_evaluated_as_the_server_does(fields: str, spec: object, matches: bool | None) -> None:
    raw = widget("a", 1, spec=spec)
    assert Scope("", "", fields).matches({}, raw) is matches
    assert Scope("", "app=web", fields).matches({"app": "web"}, raw) is matches
    assert Scope("", "app=web", fields).matches({"app": "db"}, raw) is False


# Options


def test_the_error_for_a_namespace_that_is_no_tuple_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"^namespaces is a tuple: write namespaces=\('shop',\)$"):
        CacheOptions(namespaces="shop")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parse", "options"),
    [(LabelSelector.parse, {"labels": "=="}), (FieldSelector.parse, {"fields": "x"})],
)
def test_the_error_for_a_selector_is_that_of_its_parser(parse: object, options: dict[str, str]) -> None:
    with pytest.raises(ValueError) as expected:
        parse(*options.values())  # type: ignore[operator]
    with pytest.raises(ValueError) as caught:
        CacheOptions(**options)  # type: ignore[arg-type]
    assert str(caught.value) == str(expected.value)


def test_options_that_are_set_override_the_defaults_even_if_they_are_empty() -> None:
    defaults = CacheOptions(labels="app=web", manager="shop", compress=True, namespaces=("a",))
    options = CacheOptions(labels="", compress=False, namespaces=(), optional=True).over(defaults)
    assert options == CacheOptions(labels="", manager="shop", compress=False, namespaces=(), optional=True)


# The length of watches


def length(*updates: tuple[bool, bool], seed: int = 3) -> tuple[bool, float]:
    watch_length = WatchLength(ReflectorOptions(idle_timeout=40.0), Random(seed))
    for events, complete in updates:
        watch_length.update(events=events, complete=complete)
    return watch_length.is_short, watch_length.timeout()


EVENTS, COMPLETE, CUT = (True, True), (False, True), (False, False)


def test_watches_of_a_busy_collection_last_minutes() -> None:
    expected = (False, Random(3).uniform(300.0, 600.0))
    assert length() == length(EVENTS) == length(CUT, CUT, (True, False)) == expected


@pytest.mark.parametrize(
    ("updates", "seconds"),
    [
        ((COMPLETE,), 40.0),
        ((COMPLETE, COMPLETE), 40.0),
        ((CUT,), 40.0),
        ((CUT, CUT), 20.0),
        ((CUT, CUT, CUT), 10.0),
        ((CUT, CUT, CUT, CUT), 10.0),
        ((CUT, CUT, CUT, COMPLETE), 20.0),
        ((CUT, CUT, EVENTS, CUT), 40.0),
    ],
)
def test_watches_of_an_idle_collection_end_before_the_idle_timeout(
    updates: tuple[tuple[bool, bool], ...], seconds: float
) -> None:
    short, timeout = length(*updates)
    assert short
    assert timeout == pytest.approx(Random(3).uniform(0.8, 0.9) * seconds)


# The backoff


def jitter(count: int, seed: int = 1) -> float:
    """Return the factor of the delay after a number of failures."""
    random = Random(seed)
    return [1 + random.random() / 4 for _ in range(count)][-1]


def test_each_delay_is_a_step_and_its_jitter() -> None:
    backoff = RequestBackoff(ReflectorOptions(), Random(1))
    for count, step in enumerate((1, 2, 4, 8, 8), start=1):
        backoff.record_failure(0.0)
        assert backoff.delay(0.0) == pytest.approx(step * jitter(count))
        assert backoff.failures == count
    assert backoff.failing_since == 0.0


def test_the_delay_shrinks_with_the_time_and_ends_at_zero() -> None:
    backoff = RequestBackoff(ReflectorOptions(), Random(1))
    backoff.record_failure(10.0, retry_after=5.0)
    assert [backoff.delay(now) for now in (10.0, 14.5, 15.0, 20.0)] == [5.0, 0.5, 0.0, 0.0]


def test_the_next_request_starts_a_second_after_the_last_one() -> None:
    backoff = RequestBackoff(ReflectorOptions(initial_backoff=2.0), Random(1))
    backoff.record_failure(10.0)
    backoff.record_request(15.0)
    assert [backoff.delay(now) for now in (15.0, 16.5, 17.5)] == [2.0, 0.5, 0.0]


def test_failures_are_long_from_exactly_a_minute_on() -> None:
    backoff = RequestBackoff(ReflectorOptions(), Random(1))
    backoff.record_failure(0.0)
    backoff.record_request(59.5)
    assert backoff.delay(59.5) == 1.0
    backoff.record_request(60.0)
    assert backoff.delay(60.0) == 4.0
    backoff.record_failure(59.9)
    assert backoff.delay(59.9) == pytest.approx(2 * jitter(2))
    backoff.record_failure(60.0)
    assert backoff.delay(60.0) == pytest.approx(24 * jitter(3))


def test_the_step_stops_to_double_after_thirty_failures() -> None:
    backoff = RequestBackoff(ReflectorOptions(initial_backoff=1.0, max_backoff=1e30, long_failure_after=1e9), Random(1))
    delays = []
    for _ in range(33):
        backoff.record_failure(0.0)
        delays.append(backoff.delay(0.0))
    steps = [round(delay / jitter(count)) for count, delay in enumerate(delays, start=1)]
    assert steps[29:] == [2**29, 2**30, 2**30, 2**30]


def test_a_reset_forgets_the_failures() -> None:
    backoff = RequestBackoff(ReflectorOptions(), Random(1))
    backoff.record_failure(5.0)
    backoff.reset()
    assert (backoff.failures, backoff.failing_since) == (0, None)


async def test_a_single_collection_starts_once_in_the_whole_time() -> None:
    stagger, loop = Stagger(interval=100.0, max_total=10.0), asyncio.get_running_loop()
    for _ in range(3):
        await stagger.wait()
    assert loop.time() == 20.0
