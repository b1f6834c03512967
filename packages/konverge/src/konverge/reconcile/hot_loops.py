"""Keys that come to no rest: run after run writes the same object, though nothing was asked anew.

Somebody else sets the same fields, or what is wanted is never the same twice: a date, a random name, a list in another
order. Nothing is held up for it; it is counted, logged at growing intervals, and told in the journal. Rules that hold
here:

1. A run counts when it wrote the object and had no news. Another spec of its own begins the count anew. A channel, a
   change of an object that it does not write, and a status of the written object that moved on (a rollout, step by
   step) leave the count as it is, unless the run puts back just what it wrote before.
2. A run that ends well without writing the object ends the count, unless the next write makes the same again within
   the hour: somebody else changes it back. A run that fails first says nothing.
3. A status does not count: it tells of a world that may be another in each run, and wakes nobody. Nor does a Lease,
   which is there to be written, nor a write that changes nothing.
4. Fields are named, their values never.
5. The number of keys that are followed is bounded; those that wrote long ago make room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from konverge.cache import Cache
from konverge.client import Written
from konverge.objects import AnyObject, Key, Kind, Model, Resource, decode
from konverge.reconcile.habits import Habit, Place
from konverge.reconcile.journal import Reason, Run

__all__ = ["PATIENCE", "HotLoopDetector"]

_log = logging.getLogger("konverge.reconcile")

PATIENCE: Final = 10
"""After so many runs in a row a key is taken for restless."""

_FIRST_SILENCE: Final = 600.0
_LONGEST_SILENCE: Final = 86_400.0
_MOST_KEYS: Final = 1000
_LONG_AGO: Final = 60.0
_WRITTEN_ANYWAY: Final = "coordination.k8s.io"


@dataclass(slots=True)
class _Streak:
    """The runs in a row of a key that wrote something."""

    stamp: str  # tells one spec of the key's object from another
    since: float  # when it last wrote, by the loop
    habits: dict[Place, Habit] = field(default_factory=dict)
    under_way: bool = False
    asked_anew: bool = False

    def enter(self, stamp: str) -> None:
        """Take the first write of a run, which found its object so."""
        if not self.under_way:
            self.under_way, self.asked_anew = True, stamp != self.stamp
            self.stamp = stamp

    def end_run(self, *, well: bool, news: bool) -> tuple[Place, Habit] | None:
        """Take the end of a run; give what it has written most often, and did so once more."""
        for habit in self.habits.values():
            habit.end_run(well=well, anew=self.asked_anew, news=news)
        self.under_way = self.asked_anew = False
        counted = [(place, habit) for place, habit in self.habits.items() if habit.counted]
        return max(counted, key=lambda one: one[1].runs, default=None)


@dataclass(slots=True)
class _Alarm:
    """When a key may be complained about again."""

    due: float
    silence: float = _FIRST_SILENCE


class HotLoopDetector:
    """Watches the writes of one controller for keys that never come to rest.

    Promises: a run of a key that has not written lately costs a look into a dict; at most 1000 keys are followed at a
    time, and nothing is held of one that ran and has written nothing for an hour, but for when it may be logged again;
    `told` is called for each run that is one too many.
    """

    def __init__(self, controller: str, *, told: Callable[[], None] = lambda: None) -> None:
        self._controller = controller
        self._told = told
        self._streaks: dict[Key, _Streak] = {}  # those that ran longest ago in front
        self._alarms: dict[Key, _Alarm] = {}

    def __len__(self) -> int:
        return len(self._streaks)

    def wrote(self, written: Written, *, by: AnyObject, kind: Kind, cache: Cache) -> None:
        """Take a write that a run for `by` made, before the cache knows of it."""
        streak = self._streaks.get(by.key)
        counts = not written.subresource and written.kind.group != _WRITTEN_ANYWAY
        if streak is None:
            if not counts or not self._has_room():
                return
            streak = self._streaks[by.key] = _Streak(_stamp_of(by), _now())
        streak.enter(_stamp_of(by))
        head = _Metadata() if written.verb == "delete" else decode(_Head, written.answer).metadata
        if written.key == by.key and written.kind == kind:
            streak.stamp = _stamp(head.generation, head.resource_version)  # an own write is no news
        if counts:
            place = (written.kind, written.key)
            streak.since = _now()
            habit = streak.habits.setdefault(place, Habit(streak.since))
            habit.wrote(written, head.resource_version, cache=cache, now=streak.since)

    def began(self, key: Key, cache: Cache) -> None:
        """Take the beginning of a run."""
        streak = self._streaks.get(key)
        if streak is not None:
            for place, habit in streak.habits.items():
                habit.begin_run(place, cache)

    def ended(self, run: Run, *, well: bool) -> None:
        """Take the end of a run, before the journal does, and remark on one that is too many."""
        key = run.key
        streak = self._streaks.pop(key, None)
        if streak is None:
            return
        news = any(_is_news(one, key, streak.habits) for one in run.reasons)
        most = streak.end_run(well=well, news=news)
        now = _now()
        streak.habits = {place: habit for place, habit in streak.habits.items() if not habit.is_over(now)}
        if streak.habits:
            self._streaks[key] = streak
        if most is not None and most[1].runs >= PATIENCE:
            run.remark = self._complain(key, *most)

    def forget(self, key: Key) -> None:
        """Forget a key whose object is gone."""
        self._streaks.pop(key, None)
        self._alarms.pop(key, None)

    def _has_room(self) -> bool:
        """Make room for one more key, if the one that ran longest ago wrote long ago."""
        if len(self._streaks) < _MOST_KEYS:
            return True
        oldest = next(iter(self._streaks))
        if _now() - self._streaks[oldest].since < _LONG_AGO:
            return False
        del self._streaks[oldest]
        return True

    def _complain(self, key: Key, place: Place, habit: Habit) -> str:
        self._told()
        kind, name = place
        text = f"wrote {kind.kind} {name} in {habit.runs} runs in a row, with nothing new to do: {habit.in_words()}"
        if self._is_due(key):
            facts = {"controller": self._controller, "key": str(key), "object": f"{kind.kind} {name}"}
            _log.warning("Never at rest: %s", text, extra=facts)
        return text

    def _is_due(self, key: Key) -> bool:
        now = _now()
        alarm = self._alarms.get(key)
        if alarm is None:
            self._alarms[key] = _Alarm(now + _FIRST_SILENCE)
            return True
        if now < alarm.due:
            return False
        rested = now >= alarm.due + alarm.silence
        alarm.silence = _FIRST_SILENCE if rested else min(_LONGEST_SILENCE, alarm.silence * 2)
        alarm.due = now + alarm.silence
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_news(reason: Reason, key: Key, written: Iterable[Place]) -> bool:
    """Tell whether a run may have had something new to do [1]; echoes of its own writes and lists are nothing new."""
    if not reason.kind:
        return reason.what == "channel"
    if reason.listed or reason.key == key:
        return False
    return all((kind.kind, name) != (reason.kind, reason.key) for kind, name in written)


def _stamp_of(obj: AnyObject) -> str:
    generation = obj.metadata.generation if isinstance(obj, Resource) else obj.metadata.get("generation")
    return _stamp(generation, obj.resource_version)


def _stamp(generation: int | None, version: str) -> str:
    # Kinds without a generation (ConfigMap, Service) have nothing but their version to tell one state from another.
    return str(generation) if generation else version


class _Metadata(Model):
    generation: int | None = None
    resource_version: str = ""


class _Head(Model):
    """Any object, for its version and generation."""

    metadata: _Metadata
