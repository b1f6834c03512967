"""Predicates: which changes matter. They read as claims and combine with `&`, `|` and `~`.

    generation_changed | labels_changed
    has_labels("app=web") & ~in_namespaces("kube-system")

There are two sorts. *Changes* compare the old state with the new one; an object that comes or goes has changed in every
respect. *States* look at one state, and an object that changes sides passes both `has_labels("a")` and
`~has_labels("a")`: whoever cares for either side is told. So `p | ~p` always passes, `~~p` is `p`, and `~(p & q)` is
`~p | ~q`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from konverge.cache import Entry, Event
from konverge.objects import LabelSelector
from konverge.triggers.differences import changed_outside_status, differences_at, names_of

__all__ = [
    "Predicate",
    "annotations_changed",
    "anything",
    "deletion_started",
    "field_changed",
    "generation_changed",
    "has_labels",
    "in_namespaces",
    "labels_changed",
    "resource_version_changed",
    "spec_or_metadata_changed",
]


class Predicate:
    """A test of an event: `Predicate(function)`, and what `&`, `|` and `~` make of such.

    `repr()` is what an author writes to get it; `name` is for a function that has none.
    """

    __slots__ = ("_name", "_test")

    def __init__(self, test: Callable[[Event], bool], name: str = "") -> None:
        if not callable(test):
            raise TypeError(f"{test!r} is no function of an event: write Predicate(lambda event: ...)")
        self._test = test
        self._name = name or getattr(test, "__name__", "") or repr(test)

    def __call__(self, event: Event) -> bool:
        return bool(self._test(event))

    def __and__(self, other: Predicate) -> Predicate:
        return _All(*_parts(_All, self), *_parts(_All, _checked(other)))

    def __or__(self, other: Predicate) -> Predicate:
        return _Any(*_parts(_Any, self), *_parts(_Any, _checked(other)))

    def __invert__(self) -> Predicate:
        return _Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a predicate is no truth value: write & for `and`, | for `or`, ~ for `not`")

    def __repr__(self) -> str:
        return self._name


class _Not(Predicate):
    """Passes what another one does not."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Predicate) -> None:
        super().__init__(lambda event: not inner(event), f"~{inner!r}")
        self._inner = inner

    def __invert__(self) -> Predicate:
        return self._inner


class _All(Predicate):
    """Passes what every part passes."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Predicate) -> None:
        super().__init__(lambda event: all(part(event) for part in parts), " & ".join(map(_bracketed, parts)))
        self.parts = parts

    def __invert__(self) -> Predicate:
        return _Any(*(~part for part in self.parts))


class _Any(Predicate):
    """Passes what some part passes."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Predicate) -> None:
        super().__init__(lambda event: any(part(event) for part in parts), " | ".join(map(_bracketed, parts)))
        self.parts = parts

    def __invert__(self) -> Predicate:
        return _All(*(~part for part in self.parts))


class _State(Predicate):
    """Passes an event whose old or new state is as asked for."""

    __slots__ = ("_state_test",)

    def __init__(self, test: Callable[[Entry], bool], name: str) -> None:
        super().__init__(self._passes, name)
        self._state_test = test

    def __invert__(self) -> Predicate:
        test, name = self._state_test, repr(self)
        return _State(lambda entry: not test(entry), name.removeprefix("~") if name.startswith("~") else f"~{name}")

    def _passes(self, event: Event) -> bool:
        return any(entry is not None and self._state_test(entry) for entry in (event.new, event.old))


def _change(differ: Callable[[Entry, Entry], bool], name: str) -> Predicate:
    def test(event: Event) -> bool:
        return event.old is None or event.new is None or differ(event.old, event.new)

    return Predicate(test, name)


def _parts(sort: type[_All] | type[_Any], predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, sort) else (predicate,)


def _checked(other: Any) -> Predicate:
    if isinstance(other, Predicate):
        return other
    raise TypeError(f"{other!r} is no predicate: write Predicate({getattr(other, '__name__', '...')})")


def _bracketed(predicate: Predicate) -> str:
    return f"({predicate!r})" if isinstance(predicate, _All | _Any) else repr(predicate)


def _deletion_started(event: Event) -> bool:
    if event.new is None:
        return True
    return event.new.deleting and (event.old is None or not event.old.deleting)


anything = Predicate(lambda _: True, "anything")
"""Passes everything."""

generation_changed = _change(
    lambda old, new: not new.generation or old.generation != new.generation, "generation_changed"
)
"""The generation: a new spec, but no new labels or finalizers. Objects without one (ConfigMaps) pass each time."""

resource_version_changed = _change(lambda old, new: old.version != new.version, "resource_version_changed")
"""The resourceVersion: any change at all."""

labels_changed = _change(
    lambda old, new: old.labels != new.labels and old.label_map() != new.label_map(), "labels_changed"
)
"""The labels."""

annotations_changed = _change(differences_at(("metadata", "annotations")), "annotations_changed")
"""The annotations."""

spec_or_metadata_changed = _change(changed_outside_status, "spec_or_metadata_changed")
"""Anything outside of status, managedFields and resourceVersion: what wakes a controller for its own objects.

In a cache of metadata only, the generation tells whether the rest changed; objects without one pass with each change.
"""

deletion_started = Predicate(_deletion_started, "deletion_started")
"""The object is marked for deletion and was not before, or it is gone."""


def field_changed(path: str) -> Predicate:
    """Pass changes of the field at a wire path, `.spec.x` or `.metadata.annotations["example.com/mode"]`.

    The field may be a whole list or map. One that the cache does not hold is taken for changed.

    Raises: ValueError when it is no wire path.
    """
    return _change(differences_at(names_of(path)), f"field_changed({path!r})")


def has_labels(selector: str) -> Predicate:
    """Pass objects that a label selector selects: `app=web`, `tier in (a, b), !canary`.

    Raises: ValueError when it is no selector.
    """
    parsed = LabelSelector.parse(selector)
    return _State(lambda entry: parsed.matches(entry.label_map()), f"has_labels({selector!r})")


def in_namespaces(*namespaces: str) -> Predicate:
    """Pass objects of these namespaces.

    Raises: ValueError when there is none.
    """
    if not namespaces:
        raise ValueError("in_namespaces() passes nothing: name at least one namespace")
    chosen = frozenset(namespaces)
    return _State(lambda entry: entry.key.namespace in chosen, f"in_namespaces({', '.join(map(repr, namespaces))})")
