"""The rules of `konverge.cache.store`, against a model: random histories, own writes, late responses, cuts and lists.

The model knows every state that ever was. Of each key a reader must see the state at the newest version that this
process knows of: what is delivered, or what an own write that was noted has made of it.
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
from model_server import NAMES, NAMESPACES, SELECTED, ModelServer, State, Scope

WIDGET = Kind("", "v1", "Widget", "widgets")

keys = st.builds(Key, st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
values = st.integers(0, 2)
owners = st.sampled_from(["owner-1", "owner-2"])


@dataclass
class Response:
    """The answer to an own write, on its way."""

    state: State
    created: bool = False
    base: str = ""
    writer: str = ""
    known: int = 0  # of a delete: the version that the deleter knew


@dataclass(frozen=True)
class Way:
    """How we write: who, with a base version or without, and whether the response comes before anything else."""

    writer: str
    careful: bool
    at_once: bool


WAYS = [Way(*way) for way in product(("left", "right"), (True, False), (True, False))]


@dataclass
class Listener:
    """Replays what it is told, and checks that nothing is told out of order."""

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
        self.horizon = 0
        self.listener = Listener()
        self.late: Listener | None = None
        self.store.subscribe(self.listener)
        self.noted: list[Response] = []
        self.blurred: dict[Key, int] = {}  # deletes of unknown objects: until then, the key may show what was before
        self.pending: list[Response] = []
        self.signed: dict[int, str] = {}
        self._list(self.server.version)

    # What others do

    @rule(key=keys, value=values, selected=st.booleans(), owner=owners)
    def others_write(self, key: Key, value: int, selected: bool, owner: str) -> None:
        act = self.server.create if self.server.at(key) is None else self.server.change
        act(key, value=value, selected=selected, owner=owner)

    @rule(key=keys)
    def others_delete(self, key: Key) -> None:
        if self.server.at(key) is not None:
            self.server.delete(key)

    @rule()
    def something_else_happens(self) -> None:
        self.server.tick()

    # What we do; the response comes later

    @rule(key=keys, value=values, selected=st.booleans(), owner=owners, how=st.sampled_from(WAYS))
    def we_write(self, key: Key, value: int, selected: bool, owner: str, how: Way) -> None:
        before = self.server.at(key)
        act = self.server.create if before is None else self.server.change
        made = act(key, value=value, selected=selected, owner=owner, writer=how.writer)
        base = str(before.version) if how.careful and before is not None else ""
        created = how.careful and before is None
        self._answer(Response(made, created=created, base=base, writer=how.writer), how)

    @rule(key=keys, how=st.sampled_from(WAYS))
    def we_delete(self, key: Key, how: Way) -> None:
        before = self.server.at(key)
        if before is not None:
            gone = self.server.delete(key, writer=how.writer)
            self._answer(Response(gone, writer=how.writer, known=before.version if how.careful else 0), how)

    def _answer(self, response: Response, how: Way) -> None:
        if how.at_once:
            self._note(response)
        else:
            self.pending.append(response)

    @precondition(lambda self: self.pending)
    @rule(place=st.integers(0, 5))
    def a_response_comes(self, place: int) -> None:
        self._note(self.pending.pop(place % len(self.pending)))

    def _note(self, response: Response) -> None:
        state = response.state
        self.noted.append(response)
        if state.gone:
            version = str(response.known) if response.known else ""
            self.store.record_delete(state.key, deleted(state.uid), version=version, writer=response.writer)
            if not response.known:
                self.blurred[state.key] = max(state.version, self.blurred.get(state.key, 0))
            return
        pure = response.created or (response.base and response.base != str(state.version))
        if pure and state.version > self.horizon and self.scope.contains(state.key):
            self.signed[state.version] = response.writer
        self.store.record_write(
            state.json(), created=response.created, base_version=response.base, writer=response.writer
        )

    # What the reflector does

    @rule(count=st.integers(1, 4))
    def the_watch_tells(self, count: int) -> None:
        for told in self.server.events_since(self.horizon, self.scope)[:count]:
            before = len(self.listener.events)
            (self.store.remove if told.gone else self.store.put)(told.state.json())
            self.horizon = told.state.version
            self._check_told(told.state, told.gone, self.listener.events[before:])

    @rule(back=st.integers(1, 8))
    def the_watch_repeats_itself(self, back: int) -> None:
        events = len(self.listener.events)
        for told in self.server.events_since(self.horizon - back, self.scope):
            if told.state.version <= self.horizon:
                (self.store.remove if told.gone else self.store.put)(told.state.json())
        assert len(self.listener.events) == events

    @rule()
    def a_bookmark_comes(self) -> None:
        pending = self.server.events_since(self.horizon, self.scope)
        self.horizon = max(self.horizon, pending[0].state.version - 1 if pending else self.server.version)
        self.store.progress(str(self.horizon))

    @rule(back=st.sampled_from([0, 0, 0, 1, 2, 5, 9]), cut=st.booleans())
    def a_list_comes(self, back: int, cut: bool) -> None:
        version = max(1, self.server.version - back)
        if cut:
            self._stage(self.server.version)
        if version >= self.horizon:
            self._list(version)
            return
        self._stage(version)
        with pytest.raises(Expired):
            asyncio.run(self.store.swap(str(version)))
        self.store._layers._refused = 0  # how often that may happen is another test's matter

    @rule()
    def somebody_subscribes(self) -> None:
        late = self.late = Listener()
        self.store.subscribe(late)
        self.store.notify_pending(1)

    def _list(self, version: int) -> None:
        self._stage(version)
        asyncio.run(self.store.swap(str(version)))
        self.horizon = version
        self.signed.clear()
        self.late = None  # everybody has been told everything

    def _stage(self, version: int) -> None:
        self.store.begin()
        for state in self.server.all_at(version, self.scope).values():
            self.store.put(state.json())

    # What must hold

    def _check_told(self, state: State, gone: bool, events: list[Event]) -> None:
        assert [event.type is EventType.DELETED for event in events] == [gone]
        assert not events[0].listed
        writer = events[0].writer
        deleters = {noted.writer for noted in self.noted if noted.state.gone and noted.state.uid == state.uid}
        if gone and deleters:
            assert writer in {None, *deleters}
        elif state.version in self.signed:
            assert writer == self.signed[state.version] == state.writer
        else:
            assert writer is None

    def _expected(self) -> dict[Key, State]:
        seen = {}
        for key in {state.key for state in self.server.history}:
            noted = [response.state.version for response in self.noted if response.state.key == key]
            state = self.server.at(key, max([self.horizon, *noted]))
            if state is not None and self.scope.matches(state):
                seen[key] = state
        return seen

    def _exact(self, key: Key) -> bool:
        return self.blurred.get(key, 0) <= self.horizon

    @invariant()
    def readers_see_the_newest_that_is_known(self) -> None:
        expected = self._expected()
        for namespace in NAMESPACES:
            for name in NAMES:
                key = Key(namespace, name)
                seen, wanted = self.store.get(key), expected.get(key)
                if self._exact(key):
                    assert (seen and seen.version) == (wanted and wanted.version), key
                    assert (seen and seen.uid) == (wanted and wanted.uid), key

    @invariant()
    def lists_and_indexes_say_what_get_says(self) -> None:
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
            wanted = [entry for entry in entries if chosen.matches(entry.label_map())]
            assert _ids(self.store.list(labels=chosen)) == _ids(wanted)

    @invariant()
    def what_was_told_replays_to_what_is_delivered(self) -> None:
        delivered = self.server.all_at(self.horizon, self.scope)
        told = {key: entry.version for key, entry in self.listener.objects.items()}
        assert told == {key: state.version for key, state in delivered.items()}
        if self.late is not None:
            untold = self.store._subscriptions[-1]._untold
            known = {key: entry.version for key, entry in self.late.objects.items()}
            assert known == {key: version for key, version in told.items() if key not in untold}

    @invariant()
    def nothing_of_ours_outlives_the_horizon(self) -> None:
        assert all(own.version > self.horizon for own in self.store._layers._ours._written.values())

    def teardown(self) -> None:
        self._list(self.server.version)
        self.blurred.clear()
        self.readers_see_the_newest_that_is_known()
        assert len(self.store._layers._ours) == 0


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
