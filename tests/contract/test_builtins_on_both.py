"""Built-in kinds on both servers: the same objects, sound and wrong, get the same answers and the same rows."""

from __future__ import annotations

import pytest

from builtin_cases import cases, tables
from builtin_rows import rows
from two_servers import Api


@pytest.mark.parametrize("kind", tables())
def test_both_servers_say_the_same_about(both: tuple[Api, Api], kind: str) -> None:
    embedded, real = both

    for case in cases(kind):
        assert case.run(embedded) == case.run(real), case.title


def test_both_servers_show_the_same_rows(both: tuple[Api, Api]) -> None:
    embedded, real = both

    assert rows(embedded) == rows(real)
