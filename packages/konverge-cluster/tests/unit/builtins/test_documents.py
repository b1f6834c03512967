"""Strategies of the built-in kinds handle arbitrary documents of their kind."""

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
from konverge_cluster.builtins.registration import builtin_strategies
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.storage import Storage

STRATEGIES = {
    f"{each.info.kind.api_version}/{each.info.kind.kind}": each
    for each in builtin_strategies(StoredServiceIPs(Storage()))
}
KINDS = [kind for kind in Documents(random.Random(0)).kinds() if kind in STRATEGIES]
CONTEXT = RequestContext(now="2026-01-01T00:00:00Z", namespace="ns")


def decoded(strategy: BuiltinStrategy, document: dict[str, Any]) -> dict[str, Any]:
    kind = strategy.info.kind
    document, unknown = decode_and_default(strategy, {**document, "kind": kind.kind, "apiVersion": kind.api_version})
    assert unknown == []
    document["metadata"].update(uid="u", namespace="ns", creationTimestamp="2026-01-01T00:00:00Z")
    return document


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_decoding_is_idempotent(kind: str, seed: int) -> None:
    strategy = STRATEGIES[kind]
    once = decoded(strategy, Documents(random.Random(seed)).make(kind))

    assert decoded(strategy, copy.deepcopy(once)) == once


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_every_object_can_be_validated_printed_and_updated(kind: str, seed: int) -> None:
    strategy, documents = STRATEGIES[kind], Documents(random.Random(seed))
    old, new = (decoded(strategy, documents.make(kind)) for _ in range(2))

    strategy.prepare_create(old, CONTEXT)
    errors = [*strategy.check(old)]
    strategy.warnings_on_create(old)
    cells = strategy.cells(old, 1e9)
    endpoints = [strategy, *filter(None, (strategy.endpoint(each.name) for each in strategy.info.subresources))]
    for endpoint in endpoints:
        updated, stored = copy.deepcopy(new), copy.deepcopy(old)
        endpoint.prepare_update(updated, stored, CONTEXT)
        endpoint.warnings_on_update(updated, stored)
        assert stored == old, "an update does not modify the stored object"

    assert all(str(error) for error in errors)
    assert not strategy.columns or len(cells) >= len(strategy.columns)
