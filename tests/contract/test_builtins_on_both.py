"""Built-in kinds on both servers: valid and invalid objects get the same responses and the same table rows."""

from __future__ import annotations

import pytest

from builtin_cases import cases, tables
from builtin_rows import rows
from two_servers import Api


@pytest.mark.parametrize("kind", tables())
def test_both_servers_respond_alike(both: tuple[Api, Api], kind: str) -> None:
    embedded, real = both

    for case in cases(kind):
        assert case.run(embedded) == case.run(real), case.title


def test_both_servers_return_the_same_rows(both: tuple[Api, Api]) -> None:
    embedded, real = both

    assert rows(embedded) == rows(real)
