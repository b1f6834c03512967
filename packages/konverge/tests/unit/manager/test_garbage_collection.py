"""What a started process changes in the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from konverge.manager.garbage_collection import collect_less


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Restore the garbage collector."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.parametrize(
    ("before", "after"),
    [((700, 10, 10), (10_000, 10, 10)), ((20_000, 5, 5), (20_000, 5, 5)), ((0, 10, 10), (0, 10, 10))],
)
def test_young_objects_are_examined_less_often_unless_the_process_has_said_so(
    before: tuple[int, int, int], after: tuple[int, int, int]
) -> None:
    gc.set_threshold(*before)
    collect_less()
    assert gc.get_threshold() == after


def test_objects_of_the_start_are_not_examined_again() -> None:
    start = [[]]  # type: ignore[var-annotated]
    collect_less()
    assert gc.get_freeze_count() > 0
    assert not any(one is start for one in gc.get_objects())
