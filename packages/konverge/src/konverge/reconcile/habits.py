"""One object that a key writes in run after run: how often, and what changes by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from konverge.cache import Cache
from konverge.client import Written
from konverge.objects import Key, Kind
from konverge.reconcile.changed_fields import changed_fields, content_and_status

__all__ = ["Habit", "Place"]

Place: TypeAlias = tuple[Kind, Key]

_LOOKED_AT: Final = 6  # from so many runs on, what changes is looked at
_PEACE: Final = 3600.0  # who has not written for so long has come to rest, whatever comes then
_MOST_FIELDS: Final = 5
_WHOLE: Final = frozenset({""})  # the path of an object itself: it was not there, or it was deleted
_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(slots=True)
class Habit:
    """The writes of one key to one object.

    A run in between that does not write it ends the count, unless the next write makes just what the last one made:
    then somebody else has changed it back meanwhile. Promise: what is held is a few hashes, and only of one that is
    nearly restless the object as it was.
    """

    at: float  # when it was written last, by the loop
    runs: int = 0
    version: str = ""  # that the last write made
    written: bool = False  # by the run that is under way
    rested: bool = False  # a run has ended well since then, and did not write
    progress: bool = False  # the run under way does something else than the last, and the status has moved
    counted: bool = False  # the last run counted
    content: bytes = b""  # a hash of what the last write made, without status
    status: bytes = b""  # and of the status
    before: bytes = b""  # the object when the run under way began, or as the last write made it
    watched: bool = False
    changed: frozenset[str] = _NOTHING  # by the run that is under way
    fields: frozenset[str] = _NOTHING  # by every run that was looked at

    def begin_run(self, place: Place, cache: Cache) -> None:
        """Remember the object as it is before a run, which is told of its own writes sooner than we are."""
        if self.runs < _LOOKED_AT:
            return
        view = cache.whole_view(place[0], place[1].namespace)
        self.watched = view is not None
        if view is not None:
            entry = view.entry(place[1])
            self.before = b"" if entry is None else entry.json

    def wrote(self, written: Written, version: str, *, cache: Cache, now: float) -> None:
        """Take one more write."""
        if version and version == self.version:
            return
        if written.verb == "delete":
            self.changed |= _WHOLE
        else:
            self._compare(written, cache, now)
        self.version, self.written, self.rested, self.at = version, True, False, now

    def end_run(self, *, well: bool, anew: bool, news: bool) -> None:
        """Take the end of a run; `anew` says that its own spec was another one, `news` that others told it more."""
        if not self.written:
            self.rested = self.rested or well
            self.counted = False
            return
        self.counted = not (anew or news or self.progress)
        if anew:
            self.runs = 0
        elif self.counted:
            self.runs += 1
            if self.changed:
                self.fields = self.fields & self.changed or self.changed
        self.written, self.progress, self.changed = False, False, _NOTHING

    def is_over(self, now: float) -> bool:
        """Tell whether nothing that comes can count any more."""
        return self.rested and now - self.at > _PEACE

    def in_words(self) -> str:
        """Say what changes."""
        if self.fields == _WHOLE:
            return "somebody deletes it, or it is made anew each time"
        if not self.fields:
            return "somebody changes it back, in fields that are not known since it is not watched"
        fields = sorted(self.fields)
        named = ", ".join(fields[:_MOST_FIELDS])
        more = f" and {len(fields) - _MOST_FIELDS} more" if len(fields) > _MOST_FIELDS else ""
        verb = "keeps" if len(fields) == 1 else "keep"
        return f"{named}{more} {verb} changing (somebody else sets the same, or what is wanted is never the same twice)"

    def _compare(self, written: Written, cache: Cache, now: float) -> None:
        content, status = content_and_status(written.answer)
        if content != self.content:
            if self.rested:
                self.runs = 0
            self.progress = self.progress or self._has_moved(written, cache)
        elif self.is_over(now):
            self.runs = 0
        if self.runs >= _LOOKED_AT:
            self.changed |= self._look(written.answer)
        self.content, self.status = content, status

    def _has_moved(self, written: Written, cache: Cache) -> bool:
        """Tell whether the status is another one than after the last write: the world has gone on."""
        view = cache.whole_view(written.kind, written.key.namespace)
        entry = None if view is None or not self.status else view.entry(written.key)
        return entry is not None and content_and_status(entry.json)[1] != self.status

    def _look(self, answer: bytes) -> frozenset[str]:
        before = self.before
        if not self.watched:
            self.before = answer
        if before:
            return frozenset(changed_fields(before, answer))
        return _WHOLE if self.watched else _NOTHING
