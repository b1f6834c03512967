"""The overlay by itself: which write and which tombstone is kept, until which version, and how many."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry
from konverge.cache.overlay import Overlay
from konverge.cache.removals import Removals
from konverge.objects import Key

A, B = at("a"), at("b")


class Difference(NamedTuple):
    """A change that a list found."""

    old: Entry | None
    new: Entry | None


def entry(name: str, version: int, uid: str = "") -> Entry:
    return Decoder(WIDGET).decode(widget(name, version, uid=uid))


def expire(overlay: Overlay, version: int, delivered_uid: str = "") -> list[tuple[Key, str]]:
    """Let the high-water mark reach a version; return what expired."""
    found = list(overlay.pop_expired(version))
    for key, uid in found:
        overlay.expire(key, uid, high_water_mark=version, delivered_uid=delivered_uid)
    return found


def nothing_delivered(_key: Key) -> str:
    return ""


# Writes


def test_an_empty_overlay_shows_what_is_delivered() -> None:
    overlay, delivered = Overlay(), entry("a", 5)
    assert overlay.resolve(A, delivered) is delivered
    assert (bool(overlay), len(overlay), overlay.pending_keys()) == (False, 0, set())


def test_the_newest_write_of_a_key_is_visible() -> None:
    overlay, first, second = Overlay(), entry("a", 11), entry("a", 12)
    overlay.add_write(A, 11, first)
    overlay.add_write(A, 12, second)
    overlay.add_write(A, 11, first)
    overlay.add_write(A, 12, entry("a", 12))
    assert overlay.resolve(A, entry("a", 5)) is second
    assert overlay.resolve(B, None) is None
    assert (bool(overlay), len(overlay), overlay.pending_keys()) == (True, 1, {A})


def test_a_write_out_of_the_scope_hides_the_object_and_keeps_its_last_state() -> None:
    overlay, last = Overlay(), entry("a", 11)
    overlay.add_write(A, 11, last)
    overlay.add_write(A, 12, None)
    assert overlay.resolve(A, entry("a", 5)) is None
    assert overlay.writes_until(11) == []
    assert overlay.writes_until(12) == [last]


def test_a_write_out_of_the_scope_without_an_earlier_one_has_no_last_state() -> None:
    overlay = Overlay()
    overlay.add_write(A, 12, None)
    assert overlay.writes_until(20) == []


def test_a_write_into_the_scope_again_is_its_own_last_state() -> None:
    overlay, again = Overlay(), entry("a", 13)
    overlay.add_write(A, 11, entry("a", 11))
    overlay.add_write(A, 12, None)
    overlay.add_write(A, 13, again)
    assert overlay.writes_until(13) == [again]


def test_a_write_expires_when_the_high_water_mark_reaches_its_version() -> None:
    overlay = Overlay()
    overlay.add_write(A, 12, entry("a", 12))
    overlay.add_write(B, 13, entry("b", 13))
    assert expire(overlay, 11) == []
    assert expire(overlay, 12) == [(A, "")]
    assert overlay.pending_keys() == {B}
    assert expire(overlay, 99) == [(B, "")]
    assert not overlay


def test_the_expiry_of_an_earlier_write_keeps_the_later_one() -> None:
    overlay, later = Overlay(), entry("a", 13)
    overlay.add_write(A, 12, entry("a", 12))
    overlay.add_write(A, 13, later)
    assert expire(overlay, 12) == [(A, "")]
    assert overlay.resolve(A, None) is later


# Tombstones


def test_a_tombstone_hides_one_uid_only() -> None:
    overlay, second = Overlay(), entry("a", 6, uid="second")
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    assert overlay.resolve(A, entry("a", 5)) is None
    assert overlay.resolve(A, second) is second
    assert (bool(overlay), len(overlay), overlay.pending_keys()) == (True, 1, {A})
    assert (overlay.is_deleted("uid-a"), overlay.is_deleted("second")) == (True, False)
    assert (overlay.deleter_of("uid-a"), overlay.deleter_of("second")) == ("me", None)


def test_a_tombstone_hides_the_pending_write_of_its_uid_and_lives_as_long() -> None:
    overlay = Overlay()
    overlay.add_write(A, 12, entry("a", 12))
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    assert overlay.resolve(A, None) is None
    assert len(overlay) == 2
    expire(overlay, 11)
    assert overlay.deleter_of("uid-a") == "me"
    expire(overlay, 12)
    assert overlay.deleter_of("uid-a") is None


def test_the_pending_write_of_another_uid_does_not_prolong_a_tombstone() -> None:
    overlay = Overlay()
    overlay.add_write(A, 12, entry("a", 12, uid="second"))
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    expire(overlay, 5)
    assert not overlay.deleter_of("uid-a")


def test_a_tombstone_newer_than_the_pending_write_keeps_its_version() -> None:
    overlay = Overlay()
    overlay.add_write(A, 12, entry("a", 12))
    overlay.add_tombstone(A, "uid-a", version=15, writer="me")
    expire(overlay, 14)
    assert overlay.deleter_of("uid-a") == "me"
    expire(overlay, 15)
    assert overlay.deleter_of("uid-a") is None


def test_a_later_write_of_a_deleted_uid_prolongs_its_tombstone_with_its_writer() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    overlay.add_write(A, 12, entry("a", 12))
    assert expire(overlay, 11) == [(A, "uid-a")]
    assert overlay.deleter_of("uid-a") == "me"
    expire(overlay, 12)
    assert overlay.deleter_of("uid-a") is None


def test_the_tombstone_of_an_object_that_is_still_delivered_does_not_expire() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    assert expire(overlay, 9, delivered_uid="uid-a") == [(A, "uid-a")]
    assert overlay.is_deleted("uid-a")
    overlay.record_removal("uid-a", 9)
    assert not overlay


def test_a_tombstone_is_dropped_at_its_version_and_not_before() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    overlay.drop_tombstone("uid-a", 4)
    overlay.drop_tombstone("uid-a", "9")
    overlay.drop_tombstone("unknown", 9)
    assert len(overlay) == 1
    overlay.drop_tombstone("uid-a", 5)
    assert len(overlay) == 0
    assert overlay.is_deleted("uid-a"), "it is remembered"


def test_a_thousand_tombstones_without_a_version_are_kept_and_the_oldest_goes_first() -> None:
    overlay = Overlay()
    for number in range(1000):
        overlay.add_tombstone(at(f"a-{number}"), f"uid-{number}", version=0, writer=None)
    overlay.add_tombstone(at("versioned"), "versioned", version=7, writer=None)
    assert len(overlay) == 1001
    overlay.add_tombstone(at("a-0"), "uid-0", version=0, writer=None)  # the newest from now on
    overlay.add_tombstone(at("last"), "last", version=0, writer=None)
    assert len(overlay) == 1001
    pending = {key.name for key in overlay.pending_keys()}
    assert "a-1" not in pending
    assert {"a-0", "a-2", "last", "versioned"} <= pending


def test_a_tombstone_that_gets_a_version_is_not_counted_among_those_without() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=0, writer=None)
    overlay.add_tombstone(A, "uid-a", version=20, writer=None)
    overlay.record_list([], 15, nothing_delivered)
    assert overlay.pending_keys() == {A}
    for number in range(1000):
        overlay.add_tombstone(at(f"a-{number}"), f"uid-{number}", version=0, writer=None)
    assert len(overlay) == 1001


# Removals and lists


def test_a_response_after_the_delivered_removal_is_recognized_for_256_objects() -> None:
    overlay = Overlay()
    for number in range(256):
        overlay.record_removal(f"uid-{number}", 9)
    assert overlay.record_delete_response("uid-0", "me")
    overlay.record_removal("last", 9)  # uid-1 is the oldest now
    assert [overlay.is_deleted(uid) for uid in ("uid-0", "uid-1", "uid-2", "last")] == [True, False, True, True]
    assert not overlay.record_delete_response("uid-1", "me")
    assert not overlay.is_deleted("uid-1")


def test_a_deleted_object_that_is_delivered_again_gets_its_tombstone_and_its_writer_back() -> None:
    overlay = Overlay()
    overlay.record_removal("uid-a", 9)
    overlay.record_delete_response("uid-a", "me")
    overlay.record_removal("uid-a", 10)  # a second removal does not forget whose delete it was
    overlay.restore_tombstone(entry("a", 12))
    assert overlay.resolve(A, entry("a", 12)) is None
    assert overlay.deleter_of("uid-a") == "me"
    assert expire(overlay, 11) == []
    assert expire(overlay, 12) == [(A, "uid-a")]


def test_an_object_that_others_removed_gets_no_tombstone_when_it_is_delivered_again() -> None:
    overlay = Overlay()
    overlay.record_removal("uid-a", 9)
    overlay.restore_tombstone(entry("a", 12))
    assert not overlay
    assert not overlay.is_deleted("uid-a"), "it exists"


def test_an_own_write_of_a_removed_object_restores_its_tombstone() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    overlay.record_removal("uid-a", 9)
    overlay.add_write(A, 12, entry("a", 12))
    assert overlay.resolve(A, None) is None
    assert overlay.deleter_of("uid-a") == "me"


def test_a_list_ends_the_writers_and_keeps_the_tombstones() -> None:
    overlay = Overlay()
    overlay.record_writer(12, "me")
    overlay.add_tombstone(A, "uid-a", version=20, writer="me")
    overlay.add_tombstone(B, "uid-b", version=0, writer="me")
    overlay.record_list([], 15, lambda key: f"uid-{key.name}")
    assert overlay.writer_of(12) is None
    assert (overlay.deleter_of("uid-a"), overlay.deleter_of("uid-b")) == (None, None)
    assert overlay.pending_keys() == {A, B}
    assert expire(overlay, 19) == []
    assert expire(overlay, 20) == [(A, "uid-a")]


def test_a_list_without_the_object_drops_a_tombstone_without_a_version() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=0, writer="me")
    overlay.record_list([], 15, nothing_delivered)
    assert not overlay
    assert overlay.is_deleted("uid-a")
    overlay.record_list([], 16, nothing_delivered)


@pytest.mark.parametrize("new", [None, entry("a", 12, uid="second")])
def test_a_removal_that_a_list_found_drops_the_tombstone(new: Entry | None) -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=15, writer="me")
    overlay.record_list([Difference(entry("a", 5), new)], 14, nothing_delivered)
    assert len(overlay) == 1
    overlay.record_list([Difference(entry("a", 5), new)], 15, nothing_delivered)
    assert len(overlay) == 0
    assert overlay.is_deleted("uid-a")


def test_a_change_or_an_addition_that_a_list_found_is_no_removal() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=3, writer="me")
    overlay.record_list([Difference(entry("a", 5), entry("a", 12)), Difference(None, entry("b", 9))], 15, lambda _: "")
    assert len(overlay) == 1
    assert not overlay.is_deleted("uid-b")


def test_a_deleted_object_in_a_list_gets_its_tombstone_back() -> None:
    overlay = Overlay()
    overlay.add_tombstone(A, "uid-a", version=5, writer="me")
    overlay.record_removal("uid-a", 9)
    overlay.record_list([Difference(None, entry("a", 12))], 15, nothing_delivered)
    assert overlay.resolve(A, entry("a", 12)) is None


# Writers


def test_a_version_has_its_writer_until_it_is_delivered() -> None:
    overlay = Overlay()
    overlay.record_writer(12, "me")
    assert (overlay.writer_of(12), overlay.writer_of(13), overlay.writer_of("12")) == ("me", None, None)
    assert not overlay, "a writer alone hides nothing"
    assert expire(overlay, 11) == []
    assert overlay.writer_of(12) == "me"
    assert expire(overlay, 12) == [], "nothing but the writer"
    assert overlay.writer_of(12) is None


def test_a_cleared_overlay_remembers_nothing() -> None:
    overlay = Overlay()
    overlay.add_write(A, 12, entry("a", 12))
    overlay.add_tombstone(B, "uid-b", version=0, writer="me")
    overlay.record_removal("gone", 9)
    overlay.record_writer(12, "me")
    overlay.clear()
    assert (len(overlay), overlay.pending_keys(), overlay.writer_of(12)) == (0, set(), None)
    assert not overlay.is_deleted("gone")
    assert expire(overlay, 99) == []
    overlay.record_list([], 15, nothing_delivered)


# The removals that were delivered


def test_a_state_up_to_its_removal_is_stale() -> None:
    removals = Removals()
    assert not removals.is_stale(A, 0)
    removals.record(A, 12)
    removals.record(A, 11)
    assert [removals.is_stale(A, version) for version in (11, 12, 13)] == [True, True, False]
    assert not removals.is_stale(B, 1)
    assert len(removals) == 1


def test_a_thousand_removals_are_remembered_one_by_one() -> None:
    removals = Removals()
    for number in range(1000):
        removals.record(at(f"a-{number}"), 20 + number)
    assert not removals.is_stale(B, 1)
    removals.record(at("a-0"), 2000)  # the newest from now on
    removals.record(at("last"), 2001)
    assert len(removals) == 1000
    assert [removals.is_stale(B, version) for version in (21, 22)] == [True, False], "as old as that of a-1"


def test_an_old_removal_that_is_forgotten_does_not_lower_what_is_known() -> None:
    removals = Removals()
    removals.reset(500)
    for number in range(1001):
        removals.record(at(f"a-{number}"), 20 + number)
    assert [removals.is_stale(B, version) for version in (500, 501)] == [True, False]


def test_everything_up_to_a_list_is_known() -> None:
    removals = Removals()
    removals.record(A, 30)
    removals.reset(20)
    assert len(removals) == 0
    assert [removals.is_stale(A, version) for version in (20, 21)] == [True, False]
