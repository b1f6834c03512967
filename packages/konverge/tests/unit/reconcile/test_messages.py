"""Errors that tell an author what to write."""

from __future__ import annotations

from typing import Any

import pytest

from konverge import Context, Reconciler
from konverge.k8s.core.v1 import ConfigMap, Pod
from konverge.objects import kind_of
from konverge.reconcile.declared import DeclaredKinds
from konverge.reconcile.journal import render
from konverge.reconcile.reconciler import reconciler_of
from konverge.reconcile.shared import find_shared

NOT_SHARED = (
    r"^no float is shared: add a function that opens it with Operator\(shared=\(\.\.\.,\)\) \(shared: str, int\)$"
)


def test_a_shared_object_is_the_first_of_its_type() -> None:
    assert find_shared(("a", 1, "b"), str) == "a"
    with pytest.raises(ValueError, match=NOT_SHARED):
        find_shared(("a", 1), float)
    with pytest.raises(ValueError, match=r"\(shared: nothing\)$"):
        find_shared((), float)


def test_an_undeclared_kind_is_logged_once_with_what_to_add(caplog: pytest.LogCaptureFixture) -> None:
    declared = DeclaredKinds("gadget", frozenset({("", "configmaps")}))
    for _ in range(2):
        declared.check(kind_of(ConfigMap), owned=True)
        declared.check(kind_of(Pod), owned=True)
    (record,) = caplog.records
    fields = vars(record)
    assert (record.levelname, record.getMessage()) == ("WARNING", "kind applied but not declared")
    assert (fields["controller"], fields["kind"], fields["add"]) == ("gadget", "Pod", ".owns(Pod)")
    assert declared.errors() == ("controller gadget applies Pod, which it does not declare: add .owns(Pod)",)
    unowned = DeclaredKinds("gadget", frozenset())
    unowned.check(kind_of(Pod), owned=False)
    assert unowned.errors()[0].endswith('add .needs(Pod, "get", "create", "patch")')
    everything = DeclaredKinds()
    everything.check(kind_of(Pod), owned=True)
    assert everything.errors() == ()


class Empty(Reconciler[ConfigMap]):
    """Nothing was written."""


class Unnamed(Reconciler[ConfigMap]):
    """A finalizer without a name."""

    async def reconcile(self, obj: ConfigMap, ctx: Context) -> None: ...

    async def finalize(self, obj: ConfigMap, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Empty(), r"^Empty has no reconcile: write `async def reconcile\(self, obj, ctx\)`"),
        (Unnamed(), "^Unnamed has finalize but no finalizer: write `finalizer = 'example.com/unnamed'`"),
        (Unnamed, "is not a reconciler: pass an instance of a Reconciler class, or a function"),
        (7, "^7 is not a reconciler: pass an instance of a Reconciler class, or a function"),
    ],
)
def test_what_is_no_reconciler_is_rejected(value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=f"{words}$"):
        reconciler_of(value)


async def test_a_reconciler_without_a_method_cannot_be_called() -> None:
    with pytest.raises(TypeError, match=r"^Empty has no reconcile: write `async def reconcile\(self, obj, ctx\)`$"):
        await Empty().reconcile(ConfigMap(), None)  # type: ignore[arg-type]


RUN: dict[str, Any] = {
    "result": "error",
    "started": "2026-01-02T03:04:05Z",
    "attempt": 3,
    "wait_seconds": 0.0125,
    "duration_seconds": 2.25,
    "reconcile_id": "7f",
    "error": "KeyError: a\nsecond line",
    "warning": "hot loop",
    "enqueued_by": [
        {"trigger": "timer"},
        {"trigger": "owns Pod", "kind": "Pod", "key": "shop/a", "what": "changed", "version": "7"},
        {"trigger": "owns Pod", "kind": "Pod", "key": "shop/b", "what": "added", "listed": True},
        {"trigger": "for WebApp", "kind": "WebApp", "key": "shop/c", "what": "resync", "listed": True},
    ],
    "more_reasons": 2,
    "reads": [{"kind": "Pod", "key": "shop/a", "found": "7"}, {"kind": "Pod", "key": "shop/b", "found": ""}],
    "writes": [
        {"verb": "apply", "kind": "Pod", "key": "shop/a", "version": "8"},
        {"verb": "delete", "kind": "Pod", "key": "shop/b", "version": ""},
    ],
    "dropped": 5,
}

TEXT = """\
2026-01-02T03:04:05Z  error  (attempt 3, waited 12.5 ms, took 2.2 s, id 7f)
  error     KeyError: a
            second line
  warning   hot loop
  enqueued  timer
  enqueued  owns Pod: Pod shop/a changed, version 7
  enqueued  owns Pod: Pod shop/b added (found by a list)
  enqueued  for WebApp: WebApp shop/c resync
  enqueued  ... and 2 more
  read      Pod shop/a: 7
  read      Pod shop/b: not found
  wrote     apply Pod shop/a, now version 8
  wrote     delete Pod shop/b
            ... and 5 more
"""


def test_a_history_reads_as_a_text() -> None:
    assert render([RUN]) == TEXT
    assert render([{"result": "waiting", "attempt": 1}, {}]) == "waiting\nunknown\n"
    assert render([{"result": "done", "duration_seconds": 1.0}]) == "done  (took 1.0 s)\n"
    assert render([{"result": "done", "attempt": 2, "duration_seconds": 0.5}]) == "done  (attempt 2, took 500.0 ms)\n"
    empty = "no entries: this key was not enqueued since the process started, or its entries were dropped\n"
    assert render([]) == empty
