"""Predicates: which changes matter. They read as claims and combine with `&`, `|` and `~`.

    generation_changed | labels_changed
    has_labels("app=web") & ~in_namespaces("kube-system")

There are two types. *Change* predicates compare the old state with the new one; an added or deleted object has changed
in every respect. *State* predicates test one state. An update that changes the result passes both `has_labels("a")` and
`~has_labels("a")`, so that controllers interested in either side receive it. So `p | ~p` always passes, `~~p` is `p`,
and `~(p & q)` is `~p | ~q`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from konverge.cache import Entry, Event
from konverge.objects import LabelSelector
from konverge.triggers.differences import changed_outside_status, field_differs, parse_path

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
    """A test of an event: `Predicate(function)`, or a combination of predicates with `&`, `|` and `~`.

    `repr()` returns the expression that creates it; `name` is for a function without a name.
    """

    __slots__ = ("_name", "_test")

    def __init__(self, test: Callable[[Event], bool], name: str = "") -> None:
        if not callable(test):
            raise TypeError(f"{test!r} is not a function of an event: write Predicate(lambda event: ...)")
        self._test = test
        self._name = name or getattr(test, "__name__", "") or repr(test)

    def __call__(self, event: Event) -> bool:
        return bool(self._test(event))

    def __and__(self, other: Predicate) -> Predicate:
        return _All(*_parts(_All, self), *_parts(_All, _require_predicate(other)))

    def __or__(self, other: Predicate) -> Predicate:
        return _Any(*_parts(_Any, self), *_parts(_Any, _require_predicate(other)))

    def __invert__(self) -> Predicate:
        return _Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError("a predicate has no truth value: write & for `and`, | for `or`, ~ for `not`")

    def __repr__(self) -> str:
        return self._name


class _Not(Predicate):
    """Passes events that another predicate does not pass."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Predicate) -> None:
        super().__init__(lambda event: not inner(event), f"~{inner!r}")
        self._inner = inner

    def __invert__(self) -> Predicate:
        return self._inner


class _All(Predicate):
    """Passes events that every part passes."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Predicate) -> None:
        super().__init__(lambda event: all(part(event) for part in parts), " & ".join(map(_parenthesized, parts)))
        self.parts = parts

    def __invert__(self) -> Predicate:
        return _Any(*(~part for part in self.parts))


class _Any(Predicate):
    """Passes events that at least one part passes."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Predicate) -> None:
        super().__init__(lambda event: any(part(event) for part in parts), " | ".join(map(_parenthesized, parts)))
        self.parts = parts

    def __invert__(self) -> Predicate:
        return _All(*(~part for part in self.parts))


class _State(Predicate):
    """Passes an event if its old or its new state passes a test."""

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


def _parts(type_: type[_All] | type[_Any], predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, type_) else (predicate,)


def _require_predicate(other: Any) -> Predicate:
    if isinstance(other, Predicate):
        return other
    raise TypeError(f"{other!r} is not a Predicate: write Predicate({getattr(other, '__name__', '...')})")


def _parenthesized(predicate: Predicate) -> str:
    return f"({predicate!r})" if isinstance(predicate, _All | _Any) else repr(predicate)


def _deletion_started(event: Event) -> bool:
    if event.new is None:
        return True
    return event.new.terminating and (event.old is None or not event.old.terminating)


anything = Predicate(lambda _: True, "anything")
"""Passes everything."""

generation_changed = _change(
    lambda old, new: not new.generation or old.generation != new.generation, "generation_changed"
)
"""Passes a change of the generation: a new spec, but not new labels or finalizers. Objects without one (ConfigMaps)
always pass."""

resource_version_changed = _change(lambda old, new: old.version != new.version, "resource_version_changed")
"""Passes a change of the resourceVersion: any change at all."""

labels_changed = _change(
    lambda old, new: old.labels != new.labels and old.label_map() != new.label_map(), "labels_changed"
)
"""Passes a change of the labels."""

annotations_changed = _change(field_differs(("metadata", "annotations")), "annotations_changed")
"""Passes a change of the annotations."""

spec_or_metadata_changed = _change(changed_outside_status, "spec_or_metadata_changed")
"""Passes a change of anything but status, managedFields and resourceVersion: the default for a controller's own kind.

If only metadata is cached, the generation shows whether the rest changed; objects without one pass with each change.
"""

deletion_started = Predicate(_deletion_started, "deletion_started")
"""Passes when an object gets its deletionTimestamp, or is gone."""


def field_changed(path: str) -> Predicate:
    """Pass changes of the field at a wire path, `.spec.x` or `.metadata.annotations["example.com/mode"]`.

    The field may be a whole list or map. A field that is not cached counts as changed.

    Raises: ValueError when it is not a wire path.
    """
    return _change(field_differs(parse_path(path)), f"field_changed({path!r})")


def has_labels(selector: str) -> Predicate:
    """Pass objects that match a label selector: `app=web`, `tier in (a, b), !canary`.

    Raises: ValueError when it is not a label selector.
    """
    parsed = LabelSelector.parse(selector)
    return _State(lambda entry: parsed.matches(entry.label_map()), f"has_labels({selector!r})")


def in_namespaces(*namespaces: str) -> Predicate:
    """Pass objects of these namespaces.

    Raises: ValueError when no namespace is given.
    """
    if not namespaces:
        raise ValueError("in_namespaces() passes nothing: name at least one namespace")
    chosen = frozenset(namespaces)
    return _State(lambda entry: entry.key.namespace in chosen, f"in_namespaces({', '.join(map(repr, namespaces))})")
