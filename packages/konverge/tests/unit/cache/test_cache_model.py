"""The rules of `konverge.cache.store`, against a model: random histories, own writes, late responses, cuts and lists.

The model has every state of the history. For each key a reader must see the state at the newest version that this
process knows: the delivered one, or the one after a recorded own write.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cached_objects import deleted
from konverge.cache.entries import Entry
from konverge.cache.events import Event, EventType
from konverge.cache.indexes import by_path
from konverge.cache.options import CacheOptions
from konverge.cache.store import Store
from konverge.errors import Expired
from konverge.objects import Key, Kind, LabelSelector
from model_server import NAMES, NAMESPACES, SELECTED, ModelServer, Scope, State

WIDGET = Kind("", "v1", "Widget", "widgets")

keys = st.builds(Key, st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
values = st.integers(0, 2)
owners = st.sampled_from(["owner-1", "owner-2"])


@dataclass
class Response:
    """The response of an own write, not yet received."""

    state: State
    created: bool = False
    base: str = ""
    writer: str = ""
    known: int = 0  # for a delete: the version that the deleter knew


@dataclass(frozen=True)
class WriteStyle:
    """An own write: its writer, whether it has a base version, and whether its response is received at once."""

    writer: str
    conditional: bool
    at_once: bool


WRITE_STYLES = [WriteStyle(*style) for style in product(("left", "right"), (True, False), (True, False))]


@dataclass
class EventRecorder:
    """Replays events, and checks that they are in order."""

    objects: dict[Key, Entry] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        known = self.objects.get(event.key)
        if event.type is EventType.ADDED:
            assert known is None
        elif event.type is EventType.UPDATED:
            assert known is event.old
            assert known.version < event.new.version  # type: ignore[union-attr,operator]
            assert known.uid == event.new.uid  # type: ignore[union-attr]
        else:
            assert known is not None
            assert event.old is not None
            assert known.uid == event.old.uid
            assert known.version <= event.old.version  # type: ignore[operator]
        if event.new is None:
            del self.objects[event.key]
        else:
            self.objects[event.key] = event.new
        self.events.append(event)


class CacheMachine(RuleBasedStateMachine):
    """Drives a store and a model of it."""

    @initialize(namespace=st.sampled_from(["", "shop"]), selected_only=st.booleans())
    def start(self, namespace: str, selected_only: bool) -> None:
        self.server = ModelServer()
        self.scope = Scope(namespace, selected_only)
        labels = ",".join(f"{name}={value}" for name, value in SELECTED.items()) if selected_only else ""
        options = CacheOptions(labels=labels, indexes=(("value", by_path(".spec.value")),))
        self.store = Store(WIDGET, namespace=namespace, options=options)
        self.high_water_mark = 0
        self.recorder = EventRecorder()
        self.late: EventRecorder | None = None
        self.store.subscribe(self.recorder)
        self.responses: list[Response] = []
        # Deletes without a version: until this version, the key may show an earlier state.
        self.uncertain: dict[Key, int] = {}
        self.pending: list[Response] = []
        self.writers: dict[int, str] = {}
        self._list(self.server.version)

    # Foreign writes

    @rule(key=keys, value=values, selected=st.booleans(), owner=owners)
    def others_write(self, key: Key, value: int, selected: bool, owner: str) -> None:
        write = self.server.create if self.server.at(key) is None else self.server.change
        write(key, value=value, selected=selected, owner=owner)

    @rule(key=keys)
    def others_delete(self, key: Key) -> None:
        if self.server.at(key) is not None:
            self.server.delete(key)

    @rule()
    def something_else_happens(self) -> None:
        self.server.tick()

    # Own writes; the response may come later

    @rule(key=keys, value=values, selected=st.booleans(), owner=owners, style=st.sampled_from(WRITE_STYLES))
    def we_write(self, key: Key, value: int, selected: bool, owner: str, style: WriteStyle) -> None:
        before = self.server.at(key)
        write = self.server.create if before is None else self.server.change
        state = write(key, value=value, selected=selected, owner=owner, writer=style.writer)
        base = str(before.version) if style.conditional and before is not None else ""
        created = style.conditional and before is None
        self._respond(Response(state, created=created, base=base, writer=style.writer), style)

    @rule(key=keys, style=st.sampled_from(WRITE_STYLES))
    def we_delete(self, key: Key, style: WriteStyle) -> None:
        before = self.server.at(key)
        if before is not None:
            gone = self.server.delete(key, writer=style.writer)
            self._respond(Response(gone, writer=style.writer, known=before.version if style.conditional else 0), style)

    def _respond(self, response: Response, style: WriteStyle) -> None:
        if style.at_once:
            self._record(response)
        else:
            self.pending.append(response)

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 5))
    def a_response_comes(self, place: int) -> None:
        self._record(self.pending.pop(place % len(self.pending)))

    def _record(self, response: Response) -> None:
        state = response.state
        self.responses.append(response)
        if state.gone:
            version = str(response.known) if response.known else ""
            self.store.record_delete(state.key, deleted(state.uid), version=version, writer=response.writer)
            if not response.known:
                self.uncertain[state.key] = max(state.version, self.uncertain.get(state.key, 0))
            return
        pure = response.created or (response.base and response.base != str(state.version))
        if pure and state.version > self.high_water_mark and self.scope.contains(state.key):
            self.writers[state.version] = response.writer
        self.store.record_write(
            state.json(), created=response.created, base_version=response.base, writer=response.writer
        )

    # The reflector

    @rule(count=st.integers(1, 4))
    def the_watch_delivers(self, count: int) -> None:
        for event in self.server.events_since(self.high_water_mark, self.scope)[:count]:
            before = len(self.recorder.events)
            (self.store.remove if event.gone else self.store.put)(event.state.json())
            self.high_water_mark = event.state.version
            self._check_event(event.state, event.gone, self.recorder.events[before:])

    @rule(back=st.integers(1, 8))
    def the_watch_repeats_events(self, back: int) -> None:
        events = len(self.recorder.events)
        for event in self.server.events_since(self.high_water_mark - back, self.scope):
            if event.state.version <= self.high_water_mark:
                (self.store.remove if event.gone else self.store.put)(event.state.json())
        assert len(self.recorder.events) == events

    @rule()
    def a_bookmark_comes(self) -> None:
        pending = self.server.events_since(self.high_water_mark, self.scope)
        self.high_water_mark = max(
            self.high_water_mark, pending[0].state.version - 1 if pending else self.server.version
        )
        self.store.progress(str(self.high_water_mark))

    @rule(back=st.sampled_from([0, 0, 0, 1, 2, 5, 9]), cut=st.booleans())
    def a_list_comes(self, back: int, cut: bool) -> None:
        version = max(1, self.server.version - back)
        if cut:
            self._stage(self.server.version)
        if version >= self.high_water_mark:
            self._list(version)
            return
        self._stage(version)
        with pytest.raises(Expired):
            asyncio.run(self.store.swap(str(version)))

    @rule()
    def another_handler_subscribes(self) -> None:
        late = self.late = EventRecorder()
        self.store.subscribe(late)
        self.store.notify_pending(1)

    def _list(self, version: int) -> None:
        self._stage(version)
        asyncio.run(self.store.swap(str(version)))
        self.high_water_mark = version
        self.writers.clear()
        self.late = None  # all handlers have received everything

    def _stage(self, version: int) -> None:
        self.store.begin()
        for state in self.server.all_at(version, self.scope).values():
            self.store.put(state.json())

    # Invariants

    def _check_event(self, state: State, gone: bool, events: list[Event]) -> None:
        assert [event.type is EventType.DELETED for event in events] == [gone]
        assert not events[0].listed
        writer = events[0].writer
        deleters = {one.writer for one in self.responses if one.state.gone and one.state.uid == state.uid}
        if gone and deleters:
            assert writer in {None, *deleters}
        elif state.version in self.writers:
            assert writer == self.writers[state.version] == state.writer
        else:
            assert writer is None

    def _expected(self) -> dict[Key, State]:
        seen = {}
        for key in {state.key for state in self.server.history}:
            versions = [response.state.version for response in self.responses if response.state.key == key]
            state = self.server.at(key, max([self.high_water_mark, *versions]))
            if state is not None and self.scope.matches(state):
                seen[key] = state
        return seen

    def _exact(self, key: Key) -> bool:
        return self.uncertain.get(key, 0) <= self.high_water_mark

    @invariant()
    def readers_see_the_newest_known_state(self) -> None:
        expected = self._expected()
        for namespace in NAMESPACES:
            for name in NAMES:
                key = Key(namespace, name)
                seen, expected_entries = self.store.get(key), expected.get(key)
                if self._exact(key):
                    assert (seen and seen.version) == (expected_entries and expected_entries.version), key
                    assert (seen and seen.uid) == (expected_entries and expected_entries.uid), key

    @invariant()
    def lists_and_indexes_agree_with_get(self) -> None:
        by_key = {Key(ns, n): self.store.get(Key(ns, n)) for ns in NAMESPACES for n in NAMES}
        entries = [entry for entry in by_key.values() if entry is not None]
        assert _ids(self.store.list()) == _ids(entries)
        for namespace in NAMESPACES:
            assert _ids(self.store.list(namespace=namespace)) == _ids(
                [entry for entry in entries if entry.key.namespace == namespace]
            )
        for value in range(3):
            found = self.store.find("value", value)
            assert _ids(found) == _ids([entry for entry in entries if _value(entry) == value])
        for owner in ("owner-1", "owner-2"):
            assert _ids(self.store.owned_by(owner)) == _ids([entry for entry in entries if owner in entry.owners])
        for selector in ("app=web", "app in (web,other)", "app!=web", "app"):
            chosen = LabelSelector.parse(selector)
            expected_entries = [entry for entry in entries if chosen.matches(entry.label_map())]
            assert _ids(self.store.list(labels=chosen)) == _ids(expected_entries)

    @invariant()
    def replayed_events_equal_what_is_delivered(self) -> None:
        delivered = self.server.all_at(self.high_water_mark, self.scope)
        replayed = {key: entry.version for key, entry in self.recorder.objects.items()}
        assert replayed == {key: state.version for key, state in delivered.items()}
        if self.late is not None:
            pending = self.store._subscriptions[-1]._pending
            known = {key: entry.version for key, entry in self.late.objects.items()}
            assert known == {key: version for key, version in replayed.items() if key not in pending}

    @invariant()
    def no_pending_write_is_below_the_high_water_mark(self) -> None:
        assert all(write.version > self.high_water_mark for write in self.store._layers._overlay._writes.values())

    def teardown(self) -> None:
        self._list(self.server.version)
        self.uncertain.clear()
        self.readers_see_the_newest_known_state()
        assert len(self.store._layers._overlay) == 0


def _ids(entries: list[Entry]) -> list[tuple[Key, object]]:
    return sorted((entry.key, entry.version) for entry in entries)


def _value(entry: Entry) -> int:
    value: int = json.loads(entry.json)["spec"]["value"]
    return value


TestTheCacheAgainstItsModel = CacheMachine.TestCase
TestTheCacheAgainstItsModel.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    phases=set(Phase) - {Phase.shrink},  # it takes minutes here; remove this line to look into a failure
)
