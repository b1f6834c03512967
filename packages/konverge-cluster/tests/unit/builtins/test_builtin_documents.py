"""Whatever an object of a built-in kind holds, the rules of its kind have an answer."""

from __future__ import annotations

import copy
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_documents import Documents
from konverge_cluster.api.documents import decode_and_default
from konverge_cluster.api.strategy import RequestContext
from konverge_cluster.builtins.addresses import StoredServiceIPs
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.registration import builtin_strategies
from konverge_cluster.storage import Storage

STRATEGIES = {
    f"{each.info.kind.api_version}/{each.info.kind.kind}": each
    for each in builtin_strategies(StoredServiceIPs(Storage()))
}
KINDS = [kind for kind in Documents(random.Random(0)).kinds() if kind in STRATEGIES]
AROUND = RequestContext(now="2026-01-01T00:00:00Z", namespace="ns")


def shaped(strategy: BuiltinStrategy, document: dict[str, Any]) -> dict[str, Any]:
    kind = strategy.info.kind
    found, unknown = decode_and_default(strategy, {**document, "kind": kind.kind, "apiVersion": kind.api_version})
    assert unknown == []
    found["metadata"].update(uid="u", namespace="ns", creationTimestamp="2026-01-01T00:00:00Z")
    return found


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_what_is_in_shape_stays_as_it_is(kind: str, seed: int) -> None:
    strategy = STRATEGIES[kind]
    once = shaped(strategy, Documents(random.Random(seed)).make(kind))

    assert shaped(strategy, copy.deepcopy(once)) == once


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_every_object_can_be_judged_shown_and_changed(kind: str, seed: int) -> None:
    strategy, documents = STRATEGIES[kind], Documents(random.Random(seed))
    old, new = (shaped(strategy, documents.make(kind)) for _ in range(2))

    strategy.prepare_create(old, AROUND)
    problems = [*strategy.check(old)]
    strategy.warnings_on_create(old)
    cells = strategy.cells(old, 1e9)
    doors = [strategy, *filter(None, (strategy.endpoint(each.name) for each in strategy.info.subresources))]
    for door in doors:
        changed, former = copy.deepcopy(new), copy.deepcopy(old)
        door.prepare_update(changed, former, AROUND)
        door.warnings_on_update(changed, former)
        assert former == old, "a change leaves the stored object alone"

    assert all(str(problem) for problem in problems)
    assert not strategy.columns or len(cells) >= len(strategy.columns)
