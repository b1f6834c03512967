"""The embedded server returns the recorded responses of a real server for the built-in kinds."""

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
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def embedded(runner: asyncio.Runner) -> EmbeddedApi:
    api = EmbeddedApi(EmbeddedServer(), runner)
    api.namespace = "golden-builtins"
    return with_namespace(api)


@pytest.mark.parametrize("kind", tables())
def test_responses_equal_those_of_the_real_server(embedded: EmbeddedApi, kind: str) -> None:
    expected = recorded()

    responses = {case.title: case.run(embedded) for case in cases(kind)}

    assert responses == {title: expected[title] for title in responses}


def test_every_recorded_response_belongs_to_a_case() -> None:
    assert recorded().keys() == {case.title for case in cases()}


def test_table_rows_equal_those_of_the_real_server(runner: asyncio.Runner) -> None:
    api = EmbeddedApi(EmbeddedServer(), runner)
    api.namespace = "golden-rows"

    assert rows(with_namespace(api)) == json.loads(RECORDED_ROWS.read_text())
