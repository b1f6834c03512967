"""The embedded control plane answers about built-in kinds as a real server did when it was asked: recorded answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from builtin_cases import cases, recorded, tables
from builtin_rows import RECORDED_ROWS, rows
from konverge_cluster.embedded_server import EmbeddedServer
from two_servers import EmbeddedApi, with_namespace


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def embedded(runner: asyncio.Runner) -> EmbeddedApi:
    api = EmbeddedApi(EmbeddedServer(), runner)
    api.namespace = "golden-builtins"
    return with_namespace(api)


@pytest.mark.parametrize("kind", tables())
def test_the_answers_are_those_of_the_real_server(embedded: EmbeddedApi, kind: str) -> None:
    expected = recorded()

    answers = {case.title: case.run(embedded) for case in cases(kind)}

    assert answers == {title: expected[title] for title in answers}


def test_every_recorded_answer_belongs_to_a_case() -> None:
    assert recorded().keys() == {case.title for case in cases()}


def test_the_rows_of_tables_are_those_of_the_real_server(runner: asyncio.Runner) -> None:
    api = EmbeddedApi(EmbeddedServer(), runner)
    api.namespace = "golden-rows"

    assert rows(with_namespace(api)) == json.loads(RECORDED_ROWS.read_text())
